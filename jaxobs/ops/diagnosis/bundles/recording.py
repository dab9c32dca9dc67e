"""The answers of servers: kept as they come, and given again."""

from collections.abc import Sequence
from pathlib import Path

from jaxobs.base.errors import JaxobsError
from jaxobs.ops.diagnosis.bundles.manifests import Answer
from jaxobs.ops.diagnosis.bundles.staging import FullError, Store
from jaxobs.ops.diagnosis.gathering.http import Asked, NoAnswerError, TooLateError, shown

MOST_OF_AN_ANSWER = 32 * 2**20


class Recorder:
    """Asks, and keeps what is answered. Who asks gets what is kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked = Asked()
        self._answers: dict[str, Answer] = {}

    @property
    def answers(self) -> tuple[Answer, ...]:
        """All so far."""
        return tuple(self._answers.values())

    def of_process(self, address: str, timeout: float) -> bytes:
        """As `Answers.of_process`."""
        try:
            return self._kept(address, self._asked.of_process(address, timeout))
        except (JaxobsError, FullError) as error:
            raise JaxobsError(self._failed(address, error)) from None

    def of_server(self, address: str, timeout: float, until: float | None = None) -> bytes:
        """As `Answers.of_server`."""
        try:
            return self._kept(address, self._asked.of_server(address, timeout, until))
        except TooLateError as error:
            self._failed(address, error, is_late=True)
            raise
        except (NoAnswerError, FullError) as error:
            raise NoAnswerError(self._failed(address, error)) from None

    def _kept(self, address: str, body: bytes) -> bytes:
        if len(body) > MOST_OF_AN_ANSWER:
            raise FullError(f"the answer is larger than {MOST_OF_AN_ANSWER:,} bytes")
        entry, kept = self._store.evidence(body)
        name = shown(address)
        self._answers[name] = Answer(address=name, entry=entry)
        return kept

    def _failed(self, address: str, error: Exception, *, is_late: bool = False) -> str:
        name, problem = shown(address), shown(str(error))
        self._answers[name] = Answer(address=name, problem=problem, is_late=is_late)
        return problem


class Recorded:
    """The answers in a bundle. Nobody is asked."""

    def __init__(self, folder: Path, answers: Sequence[Answer]) -> None:
        self._folder = folder
        self._answers = {each.address: each for each in answers}

    def of_process(self, address: str, timeout: float) -> bytes:
        """As it was answered."""
        answer = self._answer(address)
        if answer.entry is None:
            raise JaxobsError(answer.problem)
        return (self._folder / answer.entry).read_bytes()

    def of_server(self, address: str, timeout: float, until: float | None = None) -> bytes:
        """As it was answered."""
        answer = self._answer(address)
        if answer.is_late:
            raise TooLateError(answer.problem)
        if answer.entry is None:
            raise NoAnswerError(answer.problem)
        return (self._folder / answer.entry).read_bytes()

    def _answer(self, address: str) -> Answer:
        """What is kept; a later version of jaxobs may ask for more."""
        name = shown(address)
        return self._answers.get(name) or Answer(address=name, problem="the bundle has no answer to this")
