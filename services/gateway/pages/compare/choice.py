"""View of the page that offers runs and models to compare."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from proctor.v1 import leaderboard_pb2, run_pb2
from proctor.values.run import MAX_COMPARED, MIN_COMPARED
from proctor.wire.enums import word_of
from services.gateway.http.presentation import moment, optional
from services.gateway.pages.compare.address import CompareAddress

_MODELS = "models"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run, or a model by its latest run; `value` is what the field of the form sends."""

    value: str
    run_id: str
    model: str
    benchmark: str
    state: str
    score: float | None
    at: datetime | None
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ChoiceView:
    """`fault` is what is wrong with what was chosen."""

    candidates: Sequence[Candidate]
    suites: Sequence[str]
    suite: str
    is_by_model: bool
    fault: str
    now: datetime

    def link(self, **changes: str) -> str:
        by = _MODELS if self.is_by_model else ""
        named = {"by": by, "suite": self.suite, **changes}
        kept = {name: value for name, value in named.items() if value}
        return f"/compare?{urlencode(kept)}" if kept else "/compare"


def choice_view(
    entries: Iterable[leaderboard_pb2.LeaderboardEntry],
    address: CompareAddress,
    suites: Sequence[str],
    now: datetime,
    by: str,
) -> ChoiceView:
    """`entries` of closed runs, the newest first."""
    is_by_model = by == _MODELS or bool(address.models)
    chosen = set(address.chosen)
    candidates: dict[str, Candidate] = {}
    for entry in entries:
        value = entry.model if is_by_model else entry.run_id
        # A model is compared by its latest complete run of a suite.
        is_candidate = bool(entry.suite) and entry.state == run_pb2.RUN_STATE_COMPLETED
        if value not in candidates and (is_candidate or not is_by_model):
            candidates[value] = _candidate(entry, value, is_chosen=value in chosen)
    return ChoiceView(
        candidates=list(candidates.values()),
        suites=suites,
        suite=address.suite,
        is_by_model=is_by_model,
        fault=_fault(address),
        now=now,
    )


def _fault(address: CompareAddress) -> str:
    if len(address.chosen) > MAX_COMPARED:
        return f"{len(address.chosen)} are chosen; at most {MAX_COMPARED} are compared at once."
    if len(address.chosen) == MIN_COMPARED - 1:
        return "One is chosen; choose one more at least."
    if address.models and not address.suite:
        return "Models are compared on a suite: choose one."
    return ""


def _candidate(entry: leaderboard_pb2.LeaderboardEntry, value: str, *, is_chosen: bool) -> Candidate:
    return Candidate(
        value=value,
        run_id=entry.run_id,
        model=entry.model,
        benchmark=entry.dataset_name or entry.suite,
        state=word_of(run_pb2.RunState, entry.state),
        score=optional(entry.figure, "mean"),
        at=moment(entry.closed_at),
        is_chosen=is_chosen,
    )
