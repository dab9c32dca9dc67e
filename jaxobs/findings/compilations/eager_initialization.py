"""`eager_initialization`: most programs are single operations, each compiled by itself, as when a model is built."""

from collections import Counter
from collections.abc import Iterator

from jaxobs.facts.compilations import Compilation
from jaxobs.findings.compilations.support.case import MOST_SITES, Case, Telling, duration, plural

NAME = "eager_initialization"
FOLLOWS = ("unjitted_operations",)

PROGRAMS = 24
"""Different programs: a script that prints a few sums stays below, the smallest network of three layers does not."""

SECONDS = 0.5
"""Time that they took together: what is faster is not worth a change. Of 51 programs, those that build a model took
0.9 to 2.7 s, and a machine that is half as fast again would have left some of these below 1 s."""

ALIKE = 8
"""Programs of one operation at one line of the program, as a network has layers of so many widths: `eager_recompiles`
has a line with more."""
MOST_LINES = 512
"""Pairs of a line and an operation that are counted separately, at most."""

_CURES = {
    "flax/nnx": "build the model under one jit: model = nnx.jit(lambda: Model(rngs=nnx.Rngs(0)))()",
    "flax/": "initialize under one jit: variables = jax.jit(model.init)(key, x)",
    "haiku/": "initialize under one jit: parameters = jax.jit(transformed.init)(key, x)",
    "equinox/": "build the model under one jit: model = eqx.filter_jit(Model)(key=key)",
    "optax/": "initialize under one jit: state = jax.jit(optimizer.init)(parameters)",
    "penzai/": (
        "build the model under one jit, which must not return variables: model, variables = jax.jit(lambda key: "
        "pz.unbind_variables(build(key), freeze=True))(key), then pz.bind_variables(model, variables, "
        "unfreeze_as_copy=True)"
    ),
}
"""Cures by the library in whose code the operations are, the first that fits."""

_CACHED = (
    "A persistent cache avoids this at the next start: set jax_compilation_cache_dir, and set "
    "jax_persistent_cache_min_compile_time_secs to 0, because these programs compile quickly."
)


class EagerInitialization:
    """Sums the operations that compile for the first time at their line."""

    def __init__(self) -> None:
        self._case: Case | None = None
        self._libraries: Counter[str] = Counter()
        self._alike: Counter[tuple[str | None, str]] = Counter()

    def see(self, event: Compilation) -> Iterator[Case]:
        """The one case that a process may have."""
        if not event.eager or event.cache == "hit" or not _is_another_program(event):
            return
        line = event.call_site, event.function
        if event.library_site is None and (line in self._alike or len(self._alike) < MOST_LINES):
            self._alike[line] += 1
            if self._alike[line] > ALIKE:
                return
        if self._case is None:
            self._case = Case.of(NAME, event)
        self._case.add(event)
        if event.library_site is not None and (
            event.library_site in self._libraries or len(self._libraries) < MOST_SITES
        ):
            self._libraries[event.library_site] += 1
        if self._case.count >= PROGRAMS and self._case.seconds >= SECONDS:
            yield self._case

    def tell(self, case: Case) -> Telling:
        """Tells how many and how long, at which lines of the user's, and in which library."""
        # Files with their folders: three whole paths would fill the sentence.
        most = [(site.replace("\\", "/").split("/")[-2:], count) for site, count in case.sites.most_common(3)]
        places = [f"{'/'.join(site)} ({count:,})" for site, count in most]
        inside = [site.rpartition(":")[0] for site, _ in self._libraries.most_common(1)]
        where = f", called most often from {', '.join(places)}" if places else ""
        within = f", in {inside[0]}" if inside else ""
        own, cure = _advice(inside[0] if inside else "")
        return Telling(
            summary=(
                f"{plural(case.count, 'single operation')} outside any jitted function compiled one by one, which took "
                f"{duration(case.seconds)}{where}{within}."
            ),
            advice=f"{cure} {_CACHED}",
            severity="warning" if own else "info",
            data={"sites": dict(case.sites.most_common(8)), "library_sites": dict(self._libraries.most_common(8))},
        )


def _advice(library: str) -> tuple[bool, str]:
    """Returns whether the user's code can avoid the operations, and how."""
    cure = next((text for start, text in _CURES.items() if library.startswith(start)), None)
    if cure is not None:
        return True, f"If your code builds a model there, {cure}."
    if library:
        return False, f"These are operations of {library.partition('/')[0]}, not of your code."
    return True, "Put them into one jitted function: they are also dispatched one by one whenever they run."


def _is_another_program(event: Compilation) -> bool:
    """Returns whether this is a program of its own, not one more because something varies between calls."""
    if event.library_site is None:
        return event.cause == "first_call"
    return event.cause in ("first_call", "shape", "dtype", "weak_type", "structure", "static_argument")


watch = EagerInitialization
