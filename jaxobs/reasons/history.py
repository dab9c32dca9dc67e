"""The compilations so far: programs, and the signatures that each was compiled for, within bounds.

Signatures are small where they share: leaves are shared by all, trees within a program. What is given up for the
bounds is counted; a program whose signatures were given up is still known not to be new.
"""

import dataclasses
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from jaxobs.reasons.signature import Signature, equal, same_tree

MOST_PROGRAMS = 2048
MOST_SIGNATURES = 32
MOST_WORDS = 1_000_000
"""Memory for all signatures together, in words of 8 bytes, roughly."""

_WORDS_OF_SIGNATURE = 32
_WORDS_OF_LEAF = 24
_WORDS_IN_TREE = 24


@dataclass(slots=True)
class Seen:
    """A compilation of a program."""

    function: Callable[[], Any]
    """Gives the function object while it lives."""
    signature: Signature | None
    """None where the arguments were out of sight, and once it was given up."""
    words: int
    lines: tuple[str, ...] = ()
    """Which called it, for an operation outside any jitted function."""


@dataclass(slots=True)
class Program:
    """A program with the signatures that it was compiled for."""

    seen: deque[Seen] = field(default_factory=deque)
    objects: int = 0
    """Function objects seen for it."""
    cell: int | None = None
    """Which run of a notebook's cell compiled the latest of them."""
    words: int = 0

    def signatures(self, of: Any = None) -> list[Signature]:
        """Returns the remembered signatures, oldest first; those of one function object where `of` is given."""
        return [
            each.signature
            for each in self.seen
            if each.signature is not None and (of is None or same(each.function(), of))
        ]

    def signatures_at(self, lines: tuple[str, ...]) -> list[Signature]:
        """Returns the remembered signatures of calls from these lines, oldest first."""
        return [each.signature for each in self.seen if each.signature is not None and each.lines == lines]

    def knows(self, function: Any) -> bool:
        """Returns whether the function object was compiled before."""
        return any(same(each.function(), function) for each in self.seen)

    def sharing(self, signature: Signature | None) -> Signature | None:
        """Returns the signature with a tree that the program has already, where they are equal."""
        if signature is None:
            return None
        for seen in reversed(self.seen):
            if seen.signature is not None and same_tree(seen.signature.tree, signature.tree):
                return dataclasses.replace(signature, tree=seen.signature.tree)
        return signature

    def weigh(self) -> int:
        """Words by which it has grown since the last time."""
        before = self.words
        trees = {id(each.tree): each.tree for each in self.signatures()}
        in_trees = sum(tree.num_leaves for tree in trees.values())
        self.words = sum(each.words for each in self.seen) + _WORDS_IN_TREE * in_trees
        return self.words - before


class History:
    """The programs, the one that compiled last at the end. Not thread-safe: its owner locks."""

    def __init__(self, most_programs: int = MOST_PROGRAMS, most_words: int = MOST_WORDS) -> None:
        self._programs: OrderedDict[Hashable, Program] = OrderedDict()
        self._with_signatures: OrderedDict[Hashable, Program] = OrderedDict()
        self._most_programs = most_programs
        self._most_words = most_words
        self._words = 0
        self.given_up = 0
        """Signatures that the bounds cost; the next miss of their program knows less to compare with."""

    def __len__(self) -> int:
        """Programs that are known."""
        return len(self._programs)

    def program(self, key: Hashable) -> Program:
        """Returns the program of that key; a new one where it was not seen, or too long ago."""
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = Program()
            if len(self._programs) > self._most_programs:
                self._drop_oldest()
        self._programs.move_to_end(key)
        return program

    def remember(
        self, key: Hashable, function: Callable[[], Any], signature: Signature | None, lines: tuple[str, ...] = ()
    ) -> None:
        """Adds a compilation to the program of that key."""
        program = self._programs[key]
        program.seen.append(Seen(function, signature, _words(signature), lines))
        if len(program.seen) > MOST_SIGNATURES:
            self.given_up += program.seen.popleft().signature is not None
        self._words += program.weigh()
        if signature is not None:
            self._with_signatures[key] = program
            self._with_signatures.move_to_end(key)
        while self._words > self._most_words:
            self._give_up_oldest()

    def _drop_oldest(self) -> None:
        key, program = self._programs.popitem(last=False)
        self._with_signatures.pop(key, None)
        self._words -= program.words
        self.given_up += len(program.signatures())

    def _give_up_oldest(self) -> None:
        """Gives up the oldest signature of the program that compiled longest ago."""
        key, program = next(iter(self._with_signatures.items()))
        for seen in program.seen:
            if seen.signature is not None:
                seen.signature, seen.words = None, 0
                self.given_up += 1
                self._words += program.weigh()
                return
        del self._with_signatures[key]


def _words(signature: Signature | None) -> int:
    if signature is None:
        return 0
    different = len(set(map(id, signature.leaves)))
    return _WORDS_OF_SIGNATURE + len(signature.leaves) + _WORDS_OF_LEAF * different


def same(known: Any, fun: Any) -> bool:
    """Returns whether JAX takes the two for one function: the same object, or equal ones such as two bound methods."""
    return known is fun or (known is not None and type(known) is type(fun) and equal(known, fun))
