"""View of the page that offers runs and models to compare."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Query

from proctor.v1 import run_pb2, summary_pb2
from proctor.v1.leaderboard_pb2 import LeaderboardEntry
from proctor.v1.leaderboard_service_pb2 import ListHistoryResponse
from proctor.values.comparison import MAX_COMPARED, MIN_COMPARED
from proctor.values.scoring import benchmark_group
from proctor.wire.rollout_orders import answering_model
from services.gateway.http.presentation import benchmark_of
from services.gateway.pages.addresses import address
from services.gateway.pages.compare.address import CompareAddress
from services.gateway.pages.filters import ModelFilter
from services.gateway.pages.rows.closed_runs import ClosedRun, closed_run

_MODELS = "models"
# Runs that a sentence names.
_MAX_NAMED = 3
_Text = Annotated[str, Query(max_length=512)]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run, or a model by its latest run; `value` is what the field of the form sends."""

    value: str
    is_chosen: bool
    run: ClosedRun


@dataclass(frozen=True, slots=True)
class SelectionView:
    """`fault` is what is wrong with what was chosen.

    `suite` may be the id of a data set, and `benchmarks` are suites and data sets with their names.
    """

    candidates: Sequence[Candidate]
    benchmarks: Sequence[tuple[str, str]]
    suite: str
    model: str
    models: Sequence[str]
    is_by_model: bool
    following: str
    fault: str
    now: datetime

    @property
    def benchmark(self) -> str:
        """The name of the chosen suite or data set."""
        return dict(self.benchmarks).get(self.suite, self.suite)

    def link(self, **changes: str) -> str:
        """Link with this selection; clears the selection of the other kind."""
        by = _MODELS if self.is_by_model else ""
        named = {"by": by, "suite": self.suite, "q": self.model, **changes}
        field = "model" if self.is_by_model else "run"
        chosen = [(field, one.value) for one in self.candidates if one.is_chosen and named["by"] == by]
        # With two chosen the address would be that of their comparison.
        more = [("choose", "1")] if len(chosen) > 1 and "choose" not in changes else []
        return address("/compare", [*chosen, *named.items(), *more])


@dataclass(frozen=True, slots=True)
class SelectionAddress:
    """The parameters of the selection, without the chosen runs and models.

    `q` is a model. `choose` is a page token, or another text that keeps the selection open.
    """

    by: _Text = ""
    q: _Text = ""
    choose: _Text = ""

    @property
    def page_token(self) -> str:
        return "" if self.choose == "1" else self.choose


@dataclass(frozen=True, slots=True)
class Offered:
    """A page of closed runs, the newest first, the runs that are chosen, and the names of suites.

    `asked` are the ids of runs that were chosen, of which some may not exist.
    """

    history: ListHistoryResponse
    asked: Sequence[str]
    chosen: Sequence[tuple[run_pb2.Run, summary_pb2.RunSummary]]
    suites: Sequence[str]
    model: ModelFilter


def selection_view(
    address: CompareAddress, asked: SelectionAddress, offered: Offered, now: datetime
) -> SelectionView:
    """The page of candidates; chosen ones come first, on every page."""
    is_by_model = asked.by == _MODELS or bool(address.models)
    found = {run.run_id for run, _ in offered.chosen}
    missing = [] if is_by_model else [each for each in offered.asked if each not in found]
    return SelectionView(
        candidates=_models(address, offered) if is_by_model else _runs(address, offered),
        benchmarks=_benchmarks(address, offered),
        suite=address.suite,
        model=asked.q,
        models=offered.model.offered,
        is_by_model=is_by_model,
        following=offered.history.next_page_token,
        fault=offered.model.fault or _fault(address, asked, missing),
        now=now,
    )


def _benchmarks(address: CompareAddress, offered: Offered) -> list[tuple[str, str]]:
    """All suites, and what is chosen: a data set by the name of its file."""
    suites = [(each, each) for each in offered.suites]
    if not address.suite or address.suite in offered.suites:
        return suites
    of_runs = [(benchmark_of(run.order), run.dataset_name) for run, _ in offered.chosen]
    listed = [(entry.benchmark, entry.dataset_name) for entry in offered.history.entries]
    name = dict([*listed, *of_runs]).get(address.suite)
    return [*suites, (address.suite, name or address.suite)]


def _models(address: CompareAddress, offered: Offered) -> list[Candidate]:
    """A model is compared by its latest completed run of a benchmark."""
    alone = {name: _model_alone(name, address.suite) for name in address.models}
    complete = (
        (entry.model, entry)
        for entry in offered.history.entries
        if entry.benchmark and entry.state == run_pb2.RUN_STATE_COMPLETED
    )
    return _with_entries(alone, set() if address.runs else set(address.chosen), complete)


def _runs(address: CompareAddress, offered: Offered) -> list[Candidate]:
    chosen = {run.run_id: _chosen_run(run, summary) for run, summary in offered.chosen}
    entries = ((entry.run_id, entry) for entry in offered.history.entries)
    return _with_entries(chosen, set(address.chosen), entries)


def _with_entries(
    named: Mapping[str, LeaderboardEntry],
    chosen: Collection[str],
    entries: Iterable[tuple[str, LeaderboardEntry]],
) -> list[Candidate]:
    """The named candidates, with what their first entry says of each, and behind them further entries."""
    first: dict[str, LeaderboardEntry] = {}
    for value, entry in entries:
        first.setdefault(value, entry)
    return [
        Candidate(value, value in chosen, closed_run(entry)) for value, entry in {**named, **first}.items()
    ]


def _fault(address: CompareAddress, asked: SelectionAddress, missing: Sequence[str]) -> str:
    """Runs that do not exist are named, and not counted."""
    incomplete = "" if asked.choose else _incomplete(address, len(address.chosen) - len(missing))
    if not missing:
        return incomplete
    more = f" and {len(missing) - _MAX_NAMED} more" if len(missing) > _MAX_NAMED else ""
    return f"Not found, so not chosen: {', '.join(missing[:_MAX_NAMED])}{more}. {incomplete}".strip()


def _incomplete(address: CompareAddress, count: int) -> str:
    if count > MAX_COMPARED:
        return f"{count} are chosen; at most {MAX_COMPARED} are compared at once."
    if count == MIN_COMPARED - 1:
        return "One is chosen; choose one more at least."
    if address.models and not address.suite:
        return "Models are compared on a suite: choose one."
    return ""


def _chosen_run(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> LeaderboardEntry:
    benchmark = benchmark_group(summary.groups) or summary_pb2.GroupSummary()
    of_tasks = [figure for task in summary.tasks[:1] for figure in task.metrics]
    return LeaderboardEntry(
        run_id=run.run_id,
        model=answering_model(run.order),
        benchmark=benchmark_of(run.order),
        dataset_name=run.dataset_name,
        state=run.state,
        figure=next(iter([*benchmark.metrics, *of_tasks]), None),
        closed_at=run.finished_at if run.HasField("finished_at") else None,
    )


def _model_alone(name: str, suite: str) -> LeaderboardEntry:
    """A model that was chosen and has no run on this page."""
    return LeaderboardEntry(model=name, benchmark=suite, state=run_pb2.RUN_STATE_COMPLETED)
