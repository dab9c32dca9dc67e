"""Instruments in a child of a fork, and where jaxobs is disabled."""

from helpers.run_programs import programs, run

PROGRAMS = programs(__file__)

FORKED = PROGRAMS["forked"]


def test_a_child_counts_what_it_does_itself_by_the_objects_of_its_parent() -> None:
    """Forked while other threads count, and hold a lock; the parent goes on."""
    done = run(FORKED)
    child = "{'train': 2, 'turns': 1} [3] [7]"
    assert (done.stdout.splitlines(), done.stderr) == (
        [child, "{'train': 2, 'turns': 1} []", child, "{'train': 4, 'turns': 3} []"], ""
    )  # fmt: skip


DISABLED = PROGRAMS["disabled"]


def test_where_jaxobs_is_disabled_nothing_is_counted_or_wrapped() -> None:
    """Blocks run, and what would be wrapped comes back itself."""
    done = run(DISABLED, JAXOBS_DISABLED="1")
    assert (done.stdout, done.stderr) == ("() () () () () ()\n{}\n", "")
