"""Actions as tools: absent without a policy, and done only after a person has said yes and the desk agrees."""

import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import ElicitRequestParams, ElicitResult

from jaxobs.ops.agent.acting import processes, record
from jaxobs.ops.agent.acting.actions import ACTIONS, Plan
from jaxobs.ops.agent.acting.desk import Desk
from jaxobs.ops.agent.acting.policy import Policy, WarmCache
from jaxobs.ops.assistants import serving
from jaxobs.ops.assistants.answers import Sources
from jaxobs.ops.captures import Outcome
from jaxobs.ops.diagnosis import Inputs

URL = "http://127.0.0.1:9"
ALL = Policy(allow=("A1", "A2"), dry_run=False, warm_cache=WarmCache(event_log="/e.jsonl", cache_dir="/c"))


class Scene:
    """A server with one process and a desk; what its actions do is only noted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.done, self.asked = folder, list[str](), list[str]()
        for name, action in ACTIONS.items():
            plan = Plan(f"Would do {name}.", functools.partial(self._run, name))
            monkeypatch.setitem(ACTIONS, name, dataclasses.replace(action, plan=lambda *_, plan=plan: plan))
        monkeypatch.setattr(processes, "await_moment", lambda url, clock: None)

    def _run(self, name: str, stopped: Callable[[], bool]) -> Outcome:
        self.done.append(name)
        return Outcome("done", "Done.", "/there")

    def call(self, name: str, answer: bool | None, policy: Policy = ALL, **arguments: object) -> Any:
        """Calls a tool and returns the answer.

        Args:
          answer: what the person says; None for a client that cannot ask.
        """
        desk = Desk(directory=self.folder, policy=policy, targets=lambda job: [URL])
        made = serving.server(Sources(inputs=Inputs(targets=(URL,)), desk=desk, job="train"))

        async def asked(context: Any, params: ElicitRequestParams) -> ElicitResult:
            self.asked.append(params.message)
            return ElicitResult(action="accept", content={"do_it": answer})

        async def run() -> Any:
            async with Client(made, elicitation_callback=None if answer is None else asked) as client:
                return await client.call_tool(name, arguments)

        return anyio.run(run)

    def decisions(self) -> list[str]:
        path = self.folder / record.NAME
        return [json.loads(line)["decision"] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path / "reports", monkeypatch)


async def _names(sources: Sources) -> set[str]:
    async with Client(serving.server(sources)) as client:
        return {each.name for each in (await client.list_tools()).tools}


def test_without_a_policy_there_are_none(tmp_path: Path) -> None:
    plain = anyio.run(_names, Sources(inputs=Inputs(targets=(URL,))))
    assert plain and not plain & set(ACTIONS)
    nothing = Desk(directory=tmp_path, policy=Policy(), targets=lambda job: [URL])
    assert anyio.run(_names, Sources(inputs=Inputs(targets=(URL,)), desk=nothing)) == plain
    allowed = Policy(allow=("A1",), actions=("dump_memory",))
    some = Desk(directory=tmp_path, policy=allowed, targets=lambda job: [URL])
    assert anyio.run(_names, Sources(inputs=Inputs(targets=(URL,)), desk=some)) == plain | {"dump_memory"}


def test_a_person_says_yes(scene: Scene) -> None:
    found = scene.call("dump_memory", True, process="127.0.0.1:9")
    assert found.structured_content["data"]["decision"] == "done" and scene.done == ["dump_memory"]
    (message,) = scene.asked
    assert "May the assistant do `dump_memory` on the process '127.0.0.1:9'?" in message
    assert scene.decisions() == ["begun", "done"]
    again = scene.call("dump_memory", True, process="127.0.0.1:9")
    assert again.structured_content["data"]["decision"] == "refused", "the desk's own gates hold here too"


def test_a_person_says_no(scene: Scene) -> None:
    found = scene.call("dump_memory", False).structured_content["data"]
    assert found["decision"] == "refused" and "said no" in found["reason"]["untrusted"]
    assert scene.done == [] and scene.decisions() == ["refused"]


def test_nobody_to_ask(scene: Scene) -> None:
    """A client that cannot ask a person cannot act, whatever it sends as the approval."""
    for arguments in ({}, {"approval": {"do_it": True}}):
        with pytest.raises(ExceptionGroup) as raised:
            scene.call("dump_memory", None, **arguments)
        assert "did not declare the form elicitation capability" in repr(raised.value)
    assert scene.done == [] and scene.decisions() == []


def test_what_changes_something_needs_more_than_that(scene: Scene) -> None:
    """Class A2 waits for an approval on the agent's machine as well."""
    found = scene.call("warm_cache", True).structured_content["data"]
    assert found["decision"] == "approval_wanted" and scene.done == []
    kept = record.Record(scene.folder)
    (plan,) = kept.waiting()
    kept.decide(plan, True, "mia")
    assert scene.call("warm_cache", True).structured_content["data"]["decision"] == "done"


def test_an_assistant_gives_no_addresses(scene: Scene) -> None:
    """A name that is none of the server's is refused, with the names that are, and on record; an address is none."""
    for name in ("http://10.0.0.1:9464", URL):
        found = scene.call("dump_memory", True, process=name).structured_content["data"]
        assert found["decision"] == "refused" and "Known: 127.0.0.1:9" in found["reason"]["untrusted"]
    assert scene.done == [] and scene.decisions() == ["refused", "refused"]
