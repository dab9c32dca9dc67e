"""From an alert to a report: takes Alertmanager's webhook in, investigates, and writes what happened.

    agent = Agent(Store("reports"), Where(prometheus="http://localhost:9090"))
    serve(agent, listening("127.0.0.1", 9465))

It is deterministic: `jaxobs.ops.diagnosis` judges, no model of language does. It only reads.
Needs `jaxobs[agent]`.
"""

from jaxobs.base.errors import MissingExtraError

try:
    import pydantic  # noqa: F401 - asked for here, once, to name what is missing
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise MissingExtraError("jaxobs agent", error.name or "starlette", "agent") from error
