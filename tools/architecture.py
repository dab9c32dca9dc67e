"""The picture of the rooms in `docs/architecture.md`, drawn from the imports, and the table of what each room holds.

python -m tools.architecture            writes docs/architecture.svg, and the table into docs/architecture.md
python -m tools.architecture --check    writes nothing; names what is stale and exits with 1
python -m tools.architecture --lines    lines of code by room; --since COMMIT compares with an earlier commit
"""

from __future__ import annotations

import argparse
import ast
import collections
import itertools
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "jaxobs"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "architecture.svg"
BEGIN, END = "<!-- rooms: written by `python -m tools.architecture` -->", "<!-- end of rooms -->"

Edge = tuple[str, str]


# --------------------------------------------------------------------------------------------- what there is


def floors() -> list[list[str]]:
    """The rooms of each floor, the highest first, from the contract of import-linter in pyproject.toml.

    Raises:
      LookupError: the contract is not there.
    """
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in declared["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers" and contract["containers"] == [PACKAGE]:
            return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]
    raise LookupError("pyproject.toml has no contract of import-linter with the layers of `jaxobs`.")


def sentence(room: str) -> str:
    """The first sentence of the docstring of a room."""
    text = (ROOT / PACKAGE / room / "__init__.py").read_text(encoding="utf-8")
    first = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
    return " ".join(first.split())


def imports(rooms: Iterable[str]) -> set[Edge]:
    """Pairs of rooms of which the first imports the second, wherever in a module the import is."""
    known, graph = set(rooms), grimp.build_graph(PACKAGE, cache_dir=None)
    pairs = {
        (_room(module), _room(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }
    return {(one, other) for one, other in pairs if one != other and one in known and other in known}


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def found_by_folder() -> set[Edge]:
    """Pairs of rooms of which the first loads every module of the second: `discovery.modules(PROTOCOL_OF_THE_ROOM)`."""
    found = set()
    for path in (ROOT / PACKAGE).glob("*/**/*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        imported = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        rooms = {name.name: _room(str(node.module)) for node in imported for name in node.names}
        for node in nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "discovery.modules":
                found.add((path.relative_to(ROOT / PACKAGE).parts[0], rooms.get(ast.unparse(node.args[0]), "")))
    return {(one, other) for one, other in found if other not in ("", one)}


def reduced(edges: set[Edge]) -> set[Edge]:
    """The edges that no longer way implies."""
    following = collections.defaultdict(set)
    for one, other in edges:
        following[one].add(other)

    def reached(room: str) -> set[str]:
        return following[room].union(*(reached(each) for each in following[room]))

    return {(one, other) for one, other in edges if not any(other in reached(each) for each in following[one])}


# ------------------------------------------------------------------------------------------------- the picture

BOX, HEIGHT, STEP, GAP, LANE, MARGIN, LEFT = 186, 54, 92, 16, 22, 28, 24
"""Pixels: a room's width and height, from floor to floor, between rooms, the width of an arrow that passes, the outer
margin, and what the floors' numbers take."""

_STYLE = """
svg { --paper: #ffffff; --floor: #f4f6f8; --box: #ffffff; --line: #b6c0cc; --ink: #1b2733; --soft: #5a6876;
      --arrow: #7d8b9a; --loads: #b4540a; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0f151b; --floor: #161e26; --box: #1f2a35; --line: #42505e; --ink: #e8edf2; --soft: #9fadba;
        --arrow: #748494; --loads: #f0a05a; }
}
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--ink); }
.paper { fill: var(--paper); } .floor { fill: var(--floor); }
.box { fill: var(--box); stroke: var(--line); }
.name { font: 600 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.about, .number, .legend { font-size: 10.5px; fill: var(--soft); }
.arrow { fill: none; stroke: var(--arrow); stroke-width: 1.3; }
.loads { fill: none; stroke: var(--loads); stroke-width: 1.5; stroke-dasharray: 4 3; }
.tip { fill: var(--arrow); } .tip-loads { fill: var(--loads); }
"""


@dataclass(frozen=True)
class _Node:
    """A room, or the place where an arrow passes a floor."""

    room: str = ""
    passing: Edge | None = None

    @property
    def width(self) -> int:
        return BOX if self.room else LANE


class _Drawing:
    """Rooms on their floors, ordered so that few arrows cross; an arrow to a lower floor passes between the rooms."""

    def __init__(self, levels: Sequence[Sequence[str]], edges: Iterable[Edge]) -> None:
        self._levels = levels
        self._floor = {room: floor for floor, rooms in enumerate(levels) for room in rooms}
        self._ways = {edge: self._way(edge) for edge in sorted(edges)}
        self._rows: list[list[_Node]] = [[_Node(room) for room in rooms] for rooms in levels]
        for way in self._ways.values():
            for depth, node in enumerate(way[1:-1], self._floor[way[0].room] + 1):
                self._rows[depth].append(node)
        self._over: dict[_Node, list[_Node]] = collections.defaultdict(list)
        self._under: dict[_Node, list[_Node]] = collections.defaultdict(list)
        for way in self._ways.values():
            for one, other in itertools.pairwise(way):
                self._under[one].append(other)
                self._over[other].append(one)
        self._order()
        self.x = self._place()

    def _way(self, edge: Edge) -> list[_Node]:
        """A room, the floors between, and the other room."""
        between = range(self._floor[edge[0]] + 1, self._floor[edge[1]])
        passing = [_Node(passing=(str(depth), f"{edge[0]} {edge[1]}")) for depth in between]
        return [_Node(edge[0]), *passing, _Node(edge[1])]

    def _order(self) -> None:
        """By barycentres, downwards and upwards in turn, then neighbours are swapped as long as that helps."""
        best, least = [list(row) for row in self._rows], self._crossings()
        for turn in range(24):
            down = turn % 2 == 0
            neighbours = self._over if down else self._under
            for depth in range(len(self._rows)) if down else reversed(range(len(self._rows))):
                beside = depth - 1 if down else depth + 1
                if 0 <= beside < len(self._rows):
                    at = {node: place / len(self._rows[beside]) for place, node in enumerate(self._rows[beside])}
                    row = self._rows[depth]
                    here = {node: place / len(row) for place, node in enumerate(row)}
                    row.sort(key=lambda node: _mean([at[each] for each in neighbours[node]], here[node]))
            self._swap()
            if self._crossings() < least:
                best, least = [list(row) for row in self._rows], self._crossings()
        self._rows = best

    def _swap(self) -> None:
        better = True
        while better:
            better = False
            for row in self._rows:
                for place in range(len(row) - 1):
                    before = self._crossings()
                    row[place], row[place + 1] = row[place + 1], row[place]
                    if self._crossings() < before:
                        better = True
                    else:
                        row[place], row[place + 1] = row[place + 1], row[place]

    def _crossings(self) -> int:
        count = 0
        for upper, lower in itertools.pairwise(self._rows):
            at = {node: place for place, node in enumerate(lower)}
            ends = [at[other] for node in upper for other in sorted(self._under[node], key=at.__getitem__)]
            count += sum(one > other for one, other in itertools.combinations(ends, 2))
        return count

    def _place(self) -> dict[_Node, float]:
        """The middle of each node: near the middle of its neighbours, in order, without overlap."""
        x: dict[_Node, float] = {}
        for row in self._rows:
            edge = 0.0
            for node in row:
                x[node] = edge + node.width / 2
                edge += node.width + GAP
        ways = {node: way for way in self._ways.values() for node in way[1:-1]}
        for turn in range(80):
            for row in self._rows if turn % 2 else reversed(self._rows):
                wanted = []
                for node in row:
                    # An arrow that passes several floors is to do so in a straight line.
                    beside = ways.get(node) or self._over[node] + self._under[node]
                    wanted.append((_mean([x[each] for each in beside], x[node]), 1 if node.room else 4, node.width))
                x.update(zip(row, _apart(wanted), strict=True))
        left = min(x[node] - node.width / 2 for node in x)
        return {node: round(middle - left + MARGIN + LEFT, 1) for node, middle in x.items()}

    def text(self, abouts: Mapping[str, str], loads: set[Edge], legend: str) -> str:
        """The SVG."""
        width = round(max(self.x[node] + node.width / 2 for node in self.x) + MARGIN)
        height = MARGIN + STEP * len(self._rows) + 34
        top = [MARGIN + STEP * depth for depth in range(len(self._rows))]
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img" aria-labelledby="title">',
            '<title id="title">The rooms of jaxobs on their floors, with the imports between them</title>',
            f"<style>{_STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path class="tip" d="M0 0.8 L8 4 L0 7.2 z"/></marker><marker id="tip-loads" viewBox="0 0 8 8" refX="7" '
            'refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip-loads" d="M0 0.8 L8 4 L0 7.2 z"/>'
            "</marker></defs>",
            f'<rect class="paper" width="{width}" height="{height}" rx="8"/>',
        ]
        for depth, y in enumerate(top):
            parts.append(
                f'<rect class="floor" x="{MARGIN / 2}" y="{y - 8}" width="{width - MARGIN}" height="{HEIGHT + 16}" '
                f'rx="6"/>'
                f'<text class="number" x="{MARGIN / 2 + 12}" y="{y + HEIGHT / 2 + 4}">{len(top) - depth}</text>'
            )
        for edge, way in self._ways.items():
            kind, tip = ("loads", "tip-loads") if edge in loads else ("arrow", "tip")
            parts.append(f'<path class="{kind}" marker-end="url(#{tip})" d="{self._path(way, top)}"/>')
        for depth, row in enumerate(self._rows):
            parts += [self._box(node, top[depth], abouts[node.room]) for node in row if node.room]
        for number, line in enumerate(textwrap.wrap(legend, round(width / 6))):
            parts.append(f'<text class="legend" x="{MARGIN}" y="{height - 30 + 15 * number}">{escape(line)}</text>')
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _path(self, way: Sequence[_Node], top: Sequence[int]) -> str:
        """Curves from floor to floor, straight down where it passes one."""
        depth = self._floor[way[0].room]
        x, y = self._dock(way[0], way[1], self._under), top[depth] + HEIGHT
        steps = [f"M{x} {y}"]
        for number, node in enumerate(way[1:], 1):
            last = number == len(way) - 1
            to_x = self._dock(node, way[number - 1], self._over) if last else self.x[node]
            to_y = top[depth + number]
            middle = (y + to_y) / 2
            steps.append(f"C{x} {middle} {to_x} {middle} {to_x} {to_y - 1 * last}")
            x, y = to_x, to_y
            if not last:
                y += HEIGHT
                steps.append(f"V{y}")
        return " ".join(steps)

    def _dock(self, node: _Node, other: _Node, neighbours: Mapping[_Node, Sequence[_Node]]) -> float:
        """Returns the place on the edge of a room at which the arrow from or to a neighbour ends."""
        ordered = sorted(neighbours[node], key=self.x.__getitem__)
        space = min(24.0, (BOX - 24) / max(1, len(ordered)))
        return round(self.x[node] + (ordered.index(other) - (len(ordered) - 1) / 2) * space, 1)

    def _box(self, node: _Node, y: int, about: str) -> str:
        x = round(self.x[node] - BOX / 2, 1)
        lines = _wrapped(about, 31)
        first = y + 20 if len(lines) > 1 else y + 24
        texts = "".join(
            f'<text class="about" text-anchor="middle" x="{self.x[node]}" y="{first + 15 + 12 * number}">'
            f"{escape(line)}</text>"
            for number, line in enumerate(lines[:2])
        )
        return (
            f'<g><rect class="box" x="{x}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6"/><text class="name" '
            f'text-anchor="middle" x="{self.x[node]}" y="{first}">{node.room}</text>{texts}</g>'
        )


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _apart(wanted: Sequence[tuple[float, int, int]]) -> list[float]:
    """Places in this order without overlap, near the wanted ones, of which each has its weight and width."""
    offsets = [0.0]
    for (_, _, one), (_, _, other) in itertools.pairwise(wanted):
        offsets.append(offsets[-1] + (one + other) / 2 + GAP)
    blocks: list[list[tuple[float, int]]] = []
    for (place, weight, _), offset in zip(wanted, offsets, strict=True):
        blocks.append([(place - offset, weight)])
        while len(blocks) > 1 and _middle(blocks[-2]) > _middle(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return [_middle(block) + offset for block, offset in zip((b for b in blocks for _ in b), offsets, strict=True)]


def _middle(block: Sequence[tuple[float, int]]) -> float:
    return sum(place * weight for place, weight in block) / sum(weight for _, weight in block)


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of about the same length, as few as fit the width."""
    count = len(textwrap.wrap(text, width))
    while count > 1 and len(textwrap.wrap(text, width - 1)) == count:
        width -= 1
    return textwrap.wrap(text, width)


def picture() -> str:
    """The SVG of what there is."""
    levels = floors()
    rooms = [room for row in levels for room in row]
    loads = found_by_folder()
    edges = imports(rooms)
    shown = reduced(edges | loads)
    legend = (
        f"An arrow: a module of one room imports one of the other. {len(shown - loads)} of {len(edges)} are drawn; the "
        "others follow a longer way. Dashed: every module of the room is loaded, none by name. Imports point downwards."
    )
    abouts = {room: sentence(room).partition(":")[0].rstrip(".") for room in rooms}
    return _Drawing(levels, shown | loads).text(abouts, loads, legend)


# ----------------------------------------------------------------------------------------- the table, the lines


def table() -> str:
    """Markdown: each room on its floor, with the first sentence of its docstring."""
    levels = floors()
    rows = [
        f"| {len(levels) - depth} | `{room}/` | {sentence(room)} |"
        for depth, rooms in enumerate(levels)
        for room in rooms
    ]
    return "\n".join(("| floor | room | what it holds |", "|---:|---|---|", *rows))


def page() -> str:
    """The page with a fresh table.

    Raises:
      LookupError: the marks of the table are not in it.
    """
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise LookupError(f"{PAGE.name} has no table between `{BEGIN}` and `{END}`.")
    return f"{before}{begin}\n{table()}\n{end}{after}"


def lines(since: str | None) -> str:
    """Markdown: lines of Python by room, those of tests and tools too; before and after where `since` is given."""
    after = _counted({path: path for path in _files("HEAD")}, None)
    if since is None:
        rows = [f"| `{place}` | {count:,} |" for place, count in sorted(after.items())]
        return "\n".join(("| place | lines |", "|---|---:|", *rows, f"| all | {sum(after.values()):,} |"))
    before = _counted(_moved(since), since)
    places = sorted({*before, *after})
    rows = [f"| `{each}` | {before[each]:,} | {after[each]:,} | {after[each] - before[each]:+,} |" for each in places]
    total = f"| all | {before.total():,} | {after.total():,} | {after.total() - before.total():+,} |"
    return "\n".join(("| place | before | after | |", "|---|---:|---:|---:|", *rows, total))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _files(commit: str) -> list[str]:
    return [path for path in _git("ls-tree", "-r", "--name-only", commit).splitlines() if path.endswith(".py")]


def _moved(since: str) -> dict[str, str]:
    """The files of a commit, with the path that each has now, as far as commits that move files tell."""
    now = {path: path for path in _files(since)}
    for commit in _git("rev-list", "--reverse", f"{since}..HEAD").split():
        renames = _git("diff-tree", "-r", "-M", "--diff-filter=R", "--name-status", "--no-commit-id", commit)
        went = {old: new for _, old, new in (line.split("\t") for line in renames.splitlines())}
        now = {first: went.get(path, path) for first, path in now.items()}
    return now


def _counted(paths: Mapping[str, str], commit: str | None) -> collections.Counter[str]:
    found: collections.Counter[str] = collections.Counter()
    for path, now in paths.items():
        text = _git("show", f"{commit}:{path}") if commit else (ROOT / path).read_text(encoding="utf-8")
        parts = now.split("/")
        place = "/".join(parts[: 2 if parts[0] == PACKAGE and len(parts) > 2 else 1]) + "/"
        found[place] += text.count("\n")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; 1 when `--check` found something stale."""
    parser = argparse.ArgumentParser(description="Draws the rooms of jaxobs from its imports.")
    parser.add_argument("--check", action="store_true", help="write nothing; name what is stale and exit with 1")
    parser.add_argument("--lines", action="store_true", help="print the lines of code by room")
    parser.add_argument("--since", metavar="COMMIT", help="with --lines: compare with this commit")
    args = parser.parse_args(argv)
    if args.lines:
        print(lines(args.since))
        return 0
    wanted = {PICTURE: picture(), PAGE: page()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if args.check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale. Write it with: python -m tools.architecture", file=sys.stderr)
        return int(bool(stale))
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
