"""The pages of `docs/systems`: their table, and what jaxobs printed about the examples.

python -m tools.zoo --systems      runs programs, and writes what it has seen of those
python -m tools.zoo.systems        runs nothing: writes the table again, after a change of `systems.toml`
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.zoo import table
from tools.zoo.comparing import BY_COST, Result
from tools.zoo.entry import Entry
from tools.zoo.running import ROOT

PAGES = ROOT / "docs" / "systems"
SYSTEMS = Path(__file__).with_name("systems.toml")
FIRST_SENTENCES = Path(__file__).with_name("first_sentences.json")
"""By the name of a system, as `tools.zoo.first_sentence` measured them: seconds, and compilations of a server."""
_COLUMNS = ("system", "version", "ran", "compilations", "causes", "seconds to the first sentence", "what is not seen")
_MARK = re.compile(r"<!-- printed by (\w+)(?:: (.+?))? -->\n+```text\n(.*?)\n?```", re.DOTALL)
"""Before a block of what `jaxobs explain` prints about an example, with the sections that it shows."""
_HEAD = """<!-- Written by `python -m tools.zoo --systems` from `tools/zoo/systems.toml`. Do not edit. -->

# Systems

Most people use JAX through other people's libraries and services. Each system has a page with the shortest way in, the
real output of jaxobs, and its blind spots. CI runs the examples of [examples/systems](../../examples/systems)
(`make test-zoo`) with the versions below, with jaxobs and without, and compares them with the judgement of
[someone who knows them](../zoo.md). Nobody has run a "recipe" here; its page says what we tried.
Eager operations are compilations of single operations outside `jit`. The seconds cover all commands of the
system's section, in a new environment with a warm package cache: `pip install`, `jaxobs run` or a server with its
requests, and `jaxobs explain`, which prints the first sentence about the program. `python -m tools.zoo.first_sentence`
measures them, here on two cores, and installs by `uv pip install`, so pip itself takes longer.

"""


@dataclass(frozen=True)
class System:
    """A row of the table: see the head of `systems.toml`."""

    name: str
    page: str
    unseen: str
    example: str = ""
    version: str = ""
    ran: str = ""
    compilations: str = ""
    causes: str = ""


def systems() -> list[System]:
    """All rows.

    Raises:
      ValueError: a row has neither an example nor what stands for one.
    """
    found = [System(**each) for each in tomllib.loads(SYSTEMS.read_text(encoding="utf-8"))["system"]]
    for system in found:
        if bool(system.example) == bool(system.version and system.ran):
            raise ValueError(f"{system.name} in {SYSTEMS.name}: give an `example`, or `version` and `ran`.")
    return found


def markdown(entries: Mapping[str, Entry], results: Mapping[str, Result], before: str = "") -> str:
    """The table's page; what did not run has the figures that the page had before."""
    cells = (re.split(r" *\| *", line.strip("| ")) for line in before.splitlines() if line.startswith("| ["))
    earlier = {row[0]: row for row in cells if len(row) == len(_COLUMNS)}
    measured = json.loads(FIRST_SENTENCES.read_text(encoding="utf-8"))
    lines = [_line(_COLUMNS), "|" + "---|" * len(_COLUMNS)]
    for system in systems():
        name = f"[{system.name}]({system.page})"
        first = measured.get(system.name, {})
        seen = (first.get("compilations", system.compilations) or "-", first.get("causes", system.causes) or "-")
        version, ran = system.version, system.ran
        if system.example:
            seen = (earlier[name][3], earlier[name][4]) if name in earlier else seen
            if system.example in results:
                said = results[system.example].said
                seen = counted(sum(map(Counter, said.causes.values()), Counter()), said.eager)
            version = table.versions(entries[system.example])
            ran = f"[`{system.example}.py`](../../examples/systems/{system.example}.py)"
        lines.append(_line((name, version, ran, *seen, str(first.get("seconds", "-")), system.unseen)))
    return _HEAD + "\n".join(lines) + "\n"


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def counted(causes: Counter[str], eager: int) -> tuple[str, str]:
    """The cells of the compilations of functions, with those of eager operations, and of the causes of the former."""
    told = ", ".join(f"{cause} {count}" for cause, count in causes.most_common())
    return f"{causes.total()}{f' and {eager} eager' if eager else ''}", told or "-"


def write(entries: Mapping[str, Entry], results: Mapping[str, Result]) -> None:
    """Writes the table, and what `jaxobs explain` printed about each program into the pages that show it."""
    page = PAGES / "README.md"
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    page.write_text(markdown(entries, results, before), encoding="utf-8")
    texts = {name: each.explained for name, each in results.items()}
    for page in PAGES.glob("*.md"):
        page.write_text(filled(page.read_text(encoding="utf-8"), texts), encoding="utf-8")


def filled(page: str, texts: Mapping[str, str]) -> str:
    """The text of a page, with what was printed about these programs."""
    return _MARK.sub(lambda found: _block(found, texts[found[1]]) if found[1] in texts else found[0], page)


def _block(found: re.Match[str], text: str) -> str:
    chosen = _shown(text, (found[2] or "").split(", "))
    return f"{found[0].partition('```text')[0]}```text\n{chosen}\n```"


def _shown(text: str, titles: list[str]) -> str:
    """The lines above the first title, and the sections with these titles, without the evidence of findings.

    Pauses of the garbage collector, which each run has others of or none, are left out.
    """
    shown, keep, evidence = [], True, False
    for line in text.strip("\n").splitlines():
        if "───" in line and (title := line.strip(" ─").partition(" ──")[0].strip()):
            keep = any(title.startswith(each) for each in titles if each)
        evidence = line.startswith("   - ") or (evidence and line.startswith("   "))
        if keep and not evidence and "pauses of the garbage collector" not in line:
            shown.append(line.removeprefix(" ").rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(shown)).strip("\n")


def untrue(name: str, text: str, pages: Path = PAGES) -> Iterator[str]:
    """Yields words of a page's block about a program that it no longer prints; figures may differ, and the account."""
    now = set(_words(text))
    for page in sorted(pages.glob("*.md")):
        for found in _MARK.finditer(page.read_text(encoding="utf-8")):
            if found[1] == name and (gone := [word for word in _words(found[3]) if word not in now]):
                yield f"{page.name} shows {', '.join(gone)}, which it does not print"


def _words(text: str) -> list[str]:
    """Words that depend on no clock: no headline, account, figures of loops, or findings that come by cost."""
    lasting = ""
    for section in re.split(r"\n(?= ?[A-Z][^\n]* ─{3})", text)[1:]:
        title, _, body = section.partition("\n")
        if title.strip().startswith("Steps"):  # a fast loop's calls are counted as far as they were seen
            body = re.sub(r"(?<=\S)  .*", "", body)
        for part in re.split(r"(?=▸ )", body):
            by_cost = any(part.startswith(f"▸ {each} ") for each in BY_COST)
            lasting += "" if by_cost or title.strip().startswith(("Where", "By line")) else part
    return [word for word in re.findall(r"[^\s\d`'\",.:()]+", lasting) if len(word) > 3 and word.isascii()]


if __name__ == "__main__":
    from tools.zoo.__main__ import entries

    write(entries(), {})
