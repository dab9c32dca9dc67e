"""Position of a thread in a turn of a loop, by its stack and by the stack of the call which each turn makes.

The loop is in the frame where they part. If this frame is at a `for`, or it calls `next`, the loop waits for its input.
"""

import dis
import functools
import itertools
import os
import threading
from bisect import bisect_left
from types import CodeType

from jaxobs.internals.source_files import is_plumbing, line_of, runs_programs
from jaxobs.loops.call_places import MOST_FRAMES, Place, instruction, same_line

IN_CALL = "call"
IN_INPUT = "input"
IN_LIBRARY = "library"
IN_LOOP = "loop"
_ITERATES = frozenset(("FOR_ITER", "GET_ITER"))
_POOL = os.path.join("concurrent", "futures", "thread.py")
_NAMES = frozenset(("LOAD_ATTR", "LOAD_DEREF", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_METHOD", "LOAD_NAME"))
_BACK = frozenset(number for number, name in enumerate(dis.opname) if "BACKWARD" in name)
_INTERRUPTS = ("JUMP_BACKWARD", "RESUME")
_LEAVES = ("JUMP_BACKWARD", "JUMP_FORWARD", "RAISE_", "RERAISE", "RETURN_CONST", "RETURN_VALUE")


def position(here: Place, call: Place) -> str | None:
    """Returns where the thread is in a turn; None if it is outside of the loop.

    `IN_LIBRARY` is the code of a library around the call, as a trainer's method that a program's loop calls.

    Args:
      here: where the thread is.
      call: where a turn of the loop made its call.
    """
    if len(here) >= MOST_FRAMES or len(call) >= MOST_FRAMES:
        return None  # which frame lies on which is not known
    common = shared(here, call)
    if common in (len(here), len(call)):
        return IN_CALL  # in it, or on the way to it or back
    depth, (its_code, its_call) = len(here) - 1 - common, call[len(call) - 1 - common]
    if here[depth][0] is not its_code:
        depth += 1  # the same call as ever, which calls something else than before
    if depth == len(here):
        return None
    code, at = here[depth]
    frame = len(here) - 1 - depth
    loop = next((number for number, line in enumerate(call) if _makes_turns(*line)), len(call))
    if frame < len(call) - 1 - loop or (code is its_code and frame == common and not _same_loop(code, at, its_call)):
        # Behind the innermost loop, or before it: it may be in one around that.
        around = any(_makes_turns(*line) for line in call[len(call) - common :])
        around |= code is its_code and _makes_turns(its_code, its_call) and _same_loop(code, at, its_call)
        return IN_LOOP if around else None
    goes_on = iterates(code, at) or any(each[0].co_name == "__next__" for each in here[:depth])
    if goes_on or any(calls(*each, "next") for each in here[: depth + 1]):
        return IN_INPUT
    around_call = len(call) - 1 - common < loop < len(call)
    library = all(is_plumbing(code.co_filename) for code, _ in here[: len(here) - common])
    return IN_LIBRARY if around_call and library else IN_LOOP


def iterates(code: CodeType, at: int) -> bool:
    """Returns whether an instruction is at a `for`, on the way to the next element."""
    return _name(code, at) in _ITERATES


def locks(here: Place) -> bool:
    """Returns whether a thread takes a lock there; not where a queue or a condition waits, which takes locks, too."""
    (code, at), takes = here[0], ("__enter__", "acquire")
    if code.co_filename == threading.__file__:
        return code.co_name in takes
    enters = _name(code, at) == "BEFORE_WITH" or _name(code, at - 2) == "LOAD_SPECIAL"  # which Python 3.14 calls next
    return not runs_programs(code.co_filename) and (enters or calls(code, at, "acquire"))


def interrupted(code: CodeType, at: int) -> bool:
    """Returns whether a thread that is there was interrupted while it ran: Python looks for other threads there."""
    return _name(code, at).startswith(_INTERRUPTS)


def is_task(call: Place) -> bool:
    """Returns whether a call is in a task of a thread pool that makes no turns itself: a service answers so."""
    pooled = any(code.co_name == "_worker" and code.co_filename.endswith(_POOL) for code, _ in call)
    return pooled and not any(_makes_turns(*line) for line in call)


def shared(here: Place, call: Place) -> int:
    """Returns how many outer frames of two stacks are the same."""
    pairs = zip(reversed(here), reversed(call), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: same_line(*pair), pairs))


def _makes_turns(code: CodeType, at: int) -> bool:
    """Returns whether an instruction is in a loop of a program's or a trainer's, and not of what runs programs."""
    return bool(_loops(code, at)) and not runs_programs(code.co_filename)


def _name(code: CodeType, at: int) -> str:
    bytecode, at = code.co_code, instruction(code, at)
    return dis.opname[bytecode[at]] if 0 <= at < len(bytecode) else ""


def _loops(code: CodeType, at: int) -> list[set[int]]:
    """The instructions of each loop of the code that this instruction is in."""
    at = instruction(code, at)
    return [each for each in _all_loops(code) if at in each]


@functools.lru_cache(maxsize=256)
def _all_loops(code: CodeType) -> tuple[set[int], ...]:
    """Returns the natural loops of the code: the instructions from which a jump back to the loop's head is reached.

    They do not lie together: from Python 3.12 on, handlers of exceptions are behind all other code.
    """
    if _BACK.isdisjoint(code.co_code[::2]):
        return ()  # without a disassembly, which takes long for a large module
    every = list(bytecode := dis.Bytecode(code))
    after: dict[int, list[int]] = {each.offset: [] for each in every}
    for number, each in enumerate(every):
        if not each.opname.startswith(_LEAVES):
            after[each.offset] += [following.offset for following in every[number + 1 : number + 2]]
        if each.opcode in dis.hasjrel and not each.opname.endswith("NO_INTERRUPT"):
            after[each.offset].append(each.argval)
    offsets = [*after]
    for entry in bytecode.exception_entries:  # type: ignore[attr-defined]  # typeshed lacks it
        for offset in offsets[bisect_left(offsets, entry.start) : bisect_left(offsets, entry.end)]:
            after[offset].append(entry.target)
    before: dict[int, list[int]] = {each: [] for each in offsets}
    loops: dict[int, set[int]] = {}
    jumps: list[tuple[int, int]] = []
    seen, path, ahead = {0}, {0}, [(0, iter(after[0]))]  # a search in depth: what leads back to its path closes a loop
    while ahead:
        offset, ways = ahead[-1]
        target = next(ways, None)
        if target is None:
            path.discard(ahead.pop()[0])
            continue
        before[target].append(offset)
        if target in path:
            jumps.append((offset, target))
        elif target not in seen:
            seen.add(target)
            path.add(target)
            ahead.append((target, iter(after[target])))
    for jump, target in jumps:
        body, within = loops.setdefault(target, {target}), [jump]
        while within:
            if (offset := within.pop()) not in body:
                body.add(offset)
                within.extend(before[offset])
    return tuple(loops.values())


def _same_loop(code: CodeType, at: int, call: int) -> bool:
    """Whether an instruction is in the outermost loop that the call is in; True where that is in none."""
    loops = _loops(code, call)
    return not loops or any(instruction(code, at) in each for each in loops)


@functools.lru_cache(maxsize=256)
def calls(code: CodeType, at: int, name: str | None = None) -> bool:
    """Returns whether the instruction there is a call, or one of a function or method of that name."""
    if "CALL" not in _name(code, at):
        return False
    if name is None or name not in (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars):
        return name is None
    starts = [(line, column) for line, _, column, _ in code.co_positions()]
    call = starts[instruction(code, at) // 2]
    names = [each for each in dis.get_instructions(code) if each.opname in _NAMES and each.argval == name]
    return call[0] is not None and any(starts[each.offset // 2] == call for each in names)


@functools.lru_cache(maxsize=256)
def takes_difference(code: CodeType, at: int) -> bool:
    """Returns whether the line of an instruction subtracts, or has a variable that is assigned a difference."""
    lines: dict[int | None, list[dis.Instruction]] = {}
    for each in dis.get_instructions(code):
        lines.setdefault(each.positions.lineno if each.positions else None, []).append(each)
    here = line_of(code, at)
    names = {name for each in lines.get(here, ()) if each.opname.startswith("LOAD_") for name in _names_in(each)}
    assigned = [
        line
        for line, some in lines.items()
        if any(each.opname.startswith("STORE_") and names.intersection(_names_in(each)) for each in some)
    ]
    there = [each for line in (here, *assigned) for each in lines.get(line, ())]
    return any(each.opname == "BINARY_OP" and each.argrepr == "-" for each in there)


def _names_in(one: dis.Instruction) -> tuple[object, ...]:
    """Returns the name that an instruction has, or both if Python joined two instructions."""
    return one.argval if isinstance(one.argval, tuple) else (one.argval,)
