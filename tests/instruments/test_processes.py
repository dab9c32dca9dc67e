"""Instruments in a child of a fork, and where jaxobs is disabled."""

from __future__ import annotations

from helpers.run_programs import run

FORKED = """
    import itertools, os, signal, threading, time, warnings
    warnings.simplefilter("ignore")
    import jaxobs
    from jaxobs.instruments import generating

    ours = jaxobs.instrument(lambda: None, name="ours")
    scope, turns = jaxobs.step("train"), iter(jaxobs.steps(itertools.count(), "turns"))
    going, held = True, threading.Event()

    def work():
        while going:
            ours()

    def hold():
        with generating._lock:
            held.set()
            while going:
                time.sleep(0.01)

    def told():
        found = jaxobs.snapshot()
        return {each.name: each.steps for each in found.loops}, [each.output_tokens for each in found.routes]

    for installed in (False, True):
        if installed:
            jaxobs.install()
        going = True
        held.clear()
        threads = [threading.Thread(target=each) for each in (work, work, work, work, hold)]
        [each.start() for each in threads]
        held.wait()
        with scope:
            next(turns)
        time.sleep(0.1)
        if (child := os.fork()) == 0:
            signal.alarm(60)
            for _ in range(7):
                ours()
            for _ in range(2):
                with scope:
                    next(turns)
            with jaxobs.request("generate") as served:
                served.tokens(output=3)
            print(*told(), [each.calls for each in jaxobs.snapshot().functions], flush=True)
            os._exit(0)
        going = False
        [each.join() for each in threads]
        assert os.waitpid(child, 0)[1] == 0
        with scope:
            next(turns)
        print(*told(), flush=True)
"""


def test_a_child_counts_what_it_does_itself_by_the_objects_of_its_parent() -> None:
    """Forked while other threads count, and hold a lock; the parent goes on."""
    done = run(FORKED)
    child = "{'train': 2, 'turns': 1} [3] [7]"
    assert (done.stdout.splitlines(), done.stderr) == (
        [child, "{'train': 2, 'turns': 1} []", child, "{'train': 4, 'turns': 3} []"], ""
    )  # fmt: skip


DISABLED = """
    import asyncio
    import jaxobs

    with jaxobs.request("predict") as scope:
        scope.batch = (1, 2)
        scope.first_token()
        scope.tokens(input=1, output=2)
        jaxobs.request.current().finish_reason("stop")
    jaxobs.engine(running=1)

    async def main():
        async with jaxobs.request("predict"):
            pass

    asyncio.run(main())
    batches, app = [1], object()
    assert jaxobs.data(batches) is batches and jaxobs.asgi(app) is app and jaxobs.wsgi(app) is app
    jaxobs.watch(loss=float("nan"))
    ran = []
    for number in jaxobs.steps(range(2), items=len):
        with jaxobs.step("train", items=3), jaxobs.phase("eval"):
            ran.append(number)
    assert ran == [0, 1] and jaxobs.step("train")(max)(1, 5) == 5
    assert jaxobs.instrument(max) is max
    found = jaxobs.snapshot()
    print(found.routes, found.engines, found.watched, found.inputs, found.loops, found.functions)
    print({name: seconds for name, seconds in found.wall.seconds.items() if seconds and name != "unattributed"})
"""


def test_where_jaxobs_is_disabled_nothing_is_counted_or_wrapped() -> None:
    """Blocks run, and what would be wrapped comes back itself."""
    done = run(DISABLED, JAXOBS_DISABLED="1")
    assert (done.stdout, done.stderr) == ("() () () () () ()\n{}\n", "")
