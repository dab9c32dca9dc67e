"""`unbounded_shapes`: one dimension of one argument takes changing sizes, and each new size is a new program."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxobs.facts.compilations import Compilation
from jaxobs.findings.compilations.support import sizes
from jaxobs.findings.compilations.support.case import Case, Telling, plural
from jaxobs.reasons import cures

NAME = "unbounded_shapes"

CLOSES = True

MOST_CHANGES = 16
"""Changes of one compilation that are looked at: a look has a cost, and the leaves of a batch change alike."""

GROWS = 0.5
"""Share of compilations for the size of a result: the argument is a cache that grows, which no padding helps."""

MOST_DIMENSIONS = 4
MOST_SIZES = 64

_Key = tuple[str, int]


@dataclass(slots=True)
class _Dimension:
    path: str
    number: int
    case: Case
    sizes: dict[int, None] = field(default_factory=dict)
    unbounded: bool = False
    returned: int = 0
    """Compilations for the size of a result of the call before."""
    followers: dict[_Key, None] = field(default_factory=dict)
    """Dimensions that change with it, to sizes of their own: one finding stands for all."""

    def take(self, *found: int) -> None:
        """Takes in the sizes before and after a change; of very many the latest are kept."""
        known = len(self.sizes)
        for size in found:
            self.sizes[size] = None
        if not self.unbounded and len(self.sizes) > known:
            self.unbounded = not sizes.bucket_like(self.sizes)
        while len(self.sizes) > MOST_SIZES:
            del self.sizes[next(iter(self.sizes))]


class UnboundedShapes:
    """Looks at the dimensions of the arguments whose shapes changed; of very many, at those that changed latest."""

    def __init__(self) -> None:
        self._dimensions: dict[_Key, _Dimension] = {}

    def see(self, event: Compilation) -> Iterator[Case]:
        """The first of the unbounded dimensions that changed; the others follow it."""
        if event.eager or not event.changes:
            return
        unbounded = []
        for varied in sizes.dimensions(event.changes[:MOST_CHANGES])[:MOST_DIMENSIONS]:
            dimension = self._dimension(event, (varied.path, varied.number))
            dimension.take(varied.before, varied.after)
            dimension.case.add(event, varied.change)
            dimension.returned += varied.path in event.grown
            if dimension.unbounded:
                unbounded.append(dimension)
        for leader in unbounded[:1]:
            for other in unbounded[1:]:
                leader.followers[other.path, other.number] = None
            yield leader.case

    def _dimension(self, event: Compilation, key: _Key) -> _Dimension:
        known = self._dimensions.pop(key, None)
        if known is None:
            known = _Dimension(*key, Case.of(NAME, event, f"{key[0]} dimension {key[1]}"))
            known.case.about = known
            if len(self._dimensions) >= MOST_DIMENSIONS:
                del self._dimensions[next(iter(self._dimensions))]
        self._dimensions[key] = known
        return known

    def is_grid(self, case: Case) -> bool:
        """Returns whether the sizes are multiples of one step, and none that only grows."""
        seen = list(case.about.sizes)
        return sizes.aligned(seen) and seen not in (sorted(seen), sorted(seen, reverse=True))

    def tell(self, case: Case) -> Telling:
        """The sizes, the buckets, and what these would cost."""
        told: _Dimension = case.about
        seen = sorted(told.sizes)
        buckets = sizes.suggested(told.sizes)
        also = [f"{path} dimension {number}" for path, number in told.followers]
        with_it = f", and with it {plural(len(also), 'other dimension')}" if also else ""
        count = len(seen) if len(seen) < MOST_SIZES else case.count + 1
        programs = plural(len(buckets.sizes), "program")
        share = f"{buckets.padding:.0%}"
        grows = told.returned >= GROWS * case.count
        return Telling(
            summary=(
                f"Dimension {told.number} of `{told.path}` has taken {count:,} sizes from {seen[0]:,} to {seen[-1]:,}"
                f"{with_it}; each new size recompiles `{case.function}`."
                f"{' The function returns it one longer, and is called with that.' if grows else ''}"
            ),
            advice=(
                cures.returned_longer([told.path])
                if grows
                else f"Pad `{told.path}` to {buckets.rule}{_listed(buckets.sizes)} and mask the padding: at most "
                f"{programs} instead of {count:,}; with the sizes seen, {share} of the computation would be padding."
            ),
            # The first program is none of the case's compilations, and of the buckets' it is one.
            saves=1.0 if grows else max(0.0, 1 - max(0, len(buckets.sizes) - 1) / max(case.count, 1)),
            data={
                "argument": told.path,
                "dimension": told.number,
                "sizes": seen,
                "buckets": list(buckets.sizes),
                "rule": buckets.rule,
                "padding": round(buckets.padding, 4),
                "programs": len(buckets.sizes),
                "also": also[:8],
            },
        )


def _listed(buckets: tuple[int, ...]) -> str:
    if len(buckets) == 1:
        return ""
    shown = ", ".join(f"{each:,}" for each in buckets[:8])
    return f" ({shown}{', ...' if len(buckets) > 8 else ''})"


watch = UnboundedShapes
