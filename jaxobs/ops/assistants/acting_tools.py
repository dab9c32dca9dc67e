"""Safe actions as tools: only those that a policy allows, and each only after a person has said yes to this one.

The client asks the person (elicitation); a client that cannot ask gets an error, and nothing is done. Then the desk
decides as it does for the agent: kill switch, limits, cool-downs, the moment, and for class A2 an approval on the
agent's machine besides. Everything is on the desk's record.
"""

# No lazy annotations here: MCP evaluates those of a tool, and they name its own question.

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from jaxobs.base.errors import MissingExtraError
from jaxobs.ops.agent.acting.actions import Action, Request
from jaxobs.ops.agent.acting.desk import Desk
from jaxobs.ops.assistants.answers import RUNNING, Answer, Name, Sources, ok

try:
    from mcp.server.mcpserver.resolve import Elicit, Resolve
    from mcp.types import ToolAnnotations
    from pydantic import BaseModel, Field
except ImportError:
    raise MissingExtraError("jaxobs mcp", "mcp", "mcp") from None

if TYPE_CHECKING:
    from mcp.server import MCPServer

CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
ACTOR = "mcp"
"""Actor of every request: what a client calls itself is not an identity."""


class Approval(BaseModel):
    """A person's word on one action."""

    do_it: bool = Field(description="Whether to do this now.")


def add(server: "MCPServer", sources: Sources, desk: Desk, job: str) -> None:
    """Registers a tool for each action that the policy of a desk allows; none where it allows none."""
    for name, declared in desk.actions.items():
        server.add_tool(_tool(sources, desk, job, declared), name=name, description=_about(declared),
                        annotations=CHANGES)  # fmt: skip


def _about(declared: Action) -> str:
    cost = {
        "A1": "observes at a bounded cost, and writes a file",
        "A2": "adds to what is stored; a person approves each one",
    }
    return f"{declared.about} It {cost[declared.kind]}; a person is asked first. To verify: {declared.verify}"


def _tool(sources: Sources, desk: Desk, job: str, declared: Action) -> Callable[..., Answer]:
    def question(process: Name = "", incident: Name = "") -> Elicit[Approval]:
        """Makes the question from the arguments alone: it may be asked for again."""
        where = f" on the process {process!r}" if declared.touches_process else ""
        return Elicit(f"May the assistant do `{declared.name}`{where}? {declared.about}", Approval)

    def action(
        approval: Annotated[Approval, Resolve(question)], process: Name = "", incident: Name = ""
    ) -> Answer:  # fmt: skip
        running = {each: where for each, kind, where in sources.processes() if kind == RUNNING}
        name = process or (next(iter(running)) if declared.touches_process and len(running) == 1 else "")
        request = Request(
            action=declared.name, actor=ACTOR, job=job, incident=incident, why="An assistant asked.",
            target=running.get(name, name),
        )  # fmt: skip
        if not approval.do_it:
            decision = desk.refuse(request, "The person said no. Nothing was done.")
        elif name not in running and (name or declared.touches_process):
            known = ", ".join(running) or "none"
            decision = desk.refuse(request, f"Say which running process. Known: {known}.")
        else:
            decision = desk.request(request)
        data: dict[str, Any] = {"decision": decision.decision, "reason": decision.reason, "path": decision.path}
        return ok(f"Decision: {decision.decision}.", data)

    return action
