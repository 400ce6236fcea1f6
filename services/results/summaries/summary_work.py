"""How far a summary is, how long it may take, and what could not be computed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import uuid4

from proctor.values.usage import NO_TOKENS, TokenUsage
from services.common.errors import DependencyUnavailable, WorkCancelled
from services.common.structured_logs import get_logger
from services.results.runs.errors import RunArchived

T = TypeVar("T")
log = get_logger()


@dataclass(slots=True)
class SummaryWork:
    """The work on a summary. Names figures that cannot be computed; the others are shown nevertheless.

    A store that does not answer ends the work, which is started again. On the last start its part is
    left out. A figure that is not computed after `limit_seconds` is left out, and so are those after it.
    """

    is_last_start: bool = False
    limit_seconds: float | None = None
    # Tokens that no outcome counts.
    unscored: TokenUsage = NO_TOKENS
    total: int = 0
    read: int = 0
    problems: list[str] = field(default_factory=list)
    is_skipping: bool = False
    _deadline: float | None = None

    @property
    def share(self) -> float:
        return min(self.read / self.total, 1.0) if self.total else 0.0

    def begin(self, total: int) -> None:
        """The time counts from now on."""
        self.total = total
        if self.limit_seconds is not None:
            self._deadline = asyncio.get_running_loop().time() + self.limit_seconds

    def skip(self, problem: str) -> None:
        """Ends the computation, for this reason."""
        self.is_skipping = True
        self.problems.append(problem)

    def note(self, what: str, error: Exception) -> None:
        """Names a figure that cannot be computed. Raises an error that may pass, or that is not a failure.

        The answers of a run that is archived are not gone: without them no summary may take the place of one.
        """
        if isinstance(error, WorkCancelled | RunArchived) or (
            isinstance(error, DependencyUnavailable) and not self.is_last_start
        ):
            raise error
        incident = uuid4().hex[:12]
        log.error("figure not computed", what=what, incident=incident, exc_info=error)
        why = f"{type(error).__name__} (incident {incident}); the log of results has the details"
        self.problems.append(f"{what} cannot be computed: {why}.")

    async def tried(self, what: str, find: Callable[[], Awaitable[T]], otherwise: T) -> T:
        """Awaits `find`. Returns `otherwise` after the time limit or an error, which the summary names."""
        if self.is_skipping:
            return otherwise
        time = asyncio.timeout_at(self._deadline)
        try:
            async with time:
                return await find()
        except Exception as error:  # noqa: BLE001  # named in the summary, or raised again
            if time.expired():
                self._note_late(what)
            else:
                self.note(what, error)
            return otherwise

    def _note_late(self, what: str) -> None:
        log.error("figures took too long", what=what, seconds=self.limit_seconds)
        self.skip(
            f"{what} and what comes after cannot be computed: closing took longer than"
            f" {self.limit_seconds:g} s (PROCTOR_RESULTS_CLOSE_TIMEOUT_SECONDS)."
        )
