"""Two to six runs or models: what the paired tests prove, and the samples on which they differ."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from proctor.v1 import comparison_pb2, run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1.leaderboard_service_pb2 import ListHistoryRequest
from proctor.values.run import MAX_HISTORY_DAYS
from proctor.wire.rollout_orders import answering_model
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.comparisons.notes import read_notes
from services.gateway.api.comparisons.routes import run_names
from services.gateway.api.models import full_model
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import (
    BackendCalls,
    Backends,
    Results,
)
from services.gateway.http.api_errors import NO_SUCH_PAGE
from services.gateway.pages.compare.address import AddressOf, CompareAddress
from services.gateway.pages.compare.benchmarks import (
    ComparedBenchmark,
    compared_benchmarks,
    names_of,
    refusal_text,
)
from services.gateway.pages.compare.samples import (
    SamplesView,
    compared_metric,
    differing_samples,
    shared_tasks,
)
from services.gateway.pages.compare.selection import Offered, SelectionAddress, selection_view
from services.gateway.pages.compare.view import CompareView, ComparisonView, comparison_view
from services.gateway.pages.filters import model_filter
from services.gateway.pages.page import Page, PageOf

# The id of the element with the samples.
_SAMPLES = "samples"
_SELECTION = "selection"
_OFFERED = 60
# More than can be compared: what is too many is reported with all of them shown.
_MAX_CHOSEN = 20
# Conditions that differ and may be ignored.
_FORCEABLE = frozenset({"scoring_method", "options"})
_NOTHING_SHARED = "These runs share no task, so no sample was given to all of them."
_REFUSED = frozenset({ErrorKind.CONFLICT, ErrorKind.INVALID})

router = APIRouter(prefix="/compare", include_in_schema=False)


@router.get("")
async def show_comparison(
    page: PageOf,
    backends: BackendCalls,
    now: Now,
    address: AddressOf,
    asked: Annotated[SelectionAddress, Depends()],
) -> Response:
    if not address.is_complete or asked.choose or page.target == _SELECTION:
        return await _show_selection(page, backends, now, address, asked)
    if page.target == _SAMPLES and address.runs:
        # The figures stay as they are on the page.
        runs, samples = await _runs_and_samples(backends, address)
        view = CompareView(address, _names(address, runs), samples)
        response = page.show("compare/compare", view, part="compare/samples_part")
        response.headers["HX-Push-Url"] = str(address)
        return response
    figures, refused, samples, benchmarks = await _figures_and_samples(backends, address)
    if figures:
        # Samples are those of the runs that were found, whatever runs the models have later.
        address = replace(address, runs=[run.job_id for run in figures.runs]).with_task(figures.tasks)
        names = [run.name for run in figures.runs]
        view = CompareView(address, names, samples, benchmarks, figures)
    else:
        runs, samples = await _runs_and_samples(backends, address)
        benchmarks = compared_benchmarks(runs)
        can_be_forced = refused is not None and refused.facts.get("difference") in _FORCEABLE
        fault = refusal_text(refused, benchmarks) if refused else ""
        names = _names(address, runs)
        view = CompareView(address, names, samples, benchmarks, fault=fault, can_be_forced=can_be_forced)
    return page.show("compare/compare", view)


async def _runs_and_samples(
    backends: Backends, address: CompareAddress
) -> tuple[Sequence[run_pb2.Run], SamplesView]:
    """The runs and the samples, which are none where only models are named."""
    if not address.runs:
        return [], SamplesView()
    runs, (_, _, samples) = await asyncio.gather(_runs(backends, address), _beside(backends.results, address))
    return runs, samples or SamplesView(fault=_NOTHING_SHARED)


async def _runs(backends: Backends, address: CompareAddress) -> Sequence[run_pb2.Run]:
    return await asyncio.gather(*(backends.scheduler.run(run_id) for run_id in address.runs))


def _names(address: CompareAddress, runs: Sequence[run_pb2.Run]) -> list[str]:
    named = [comparison_pb2.ComparedRun(run_id=run.run_id, model=answering_model(run.order)) for run in runs]
    return run_names(comparison_pb2.Comparison(runs=named)) if runs else [*address.models]


async def _figures_and_samples(
    backends: Backends, address: CompareAddress
) -> tuple[ComparisonView | None, DomainError | None, SamplesView, Sequence[ComparedBenchmark]]:
    """The figures, samples and benchmarks, or why there are no figures: the answers can still be compared."""
    results = backends.results
    if address.runs:
        # The samples need not wait for the tests.
        (comparison, refused), (summaries, task, samples), runs = await asyncio.gather(
            _comparison(results, address), _beside(results, address), _runs(backends, address)
        )
    else:
        models = await asyncio.gather(*(full_model(backends.scheduler, model) for model in address.models))
        comparison, refused = await _comparison(results, replace(address, models=models))
        if refused:
            return None, refused, SamplesView(), []
        address = replace(address, runs=[run.run_id for run in comparison.runs])
        (summaries, task, samples), runs = await asyncio.gather(
            _beside(results, address), _runs(backends, address)
        )
    if refused:
        return None, refused, SamplesView(), []
    benchmarks = compared_benchmarks(runs)
    comparison.benchmark = names_of(benchmarks)
    notes = await read_notes(backends.scheduler, results, comparison, run_names(comparison))
    figures = comparison_view(comparison, summaries, notes)
    chosen = address.with_task(figures.tasks)
    if samples is None or chosen.task != task:
        samples = await _samples(results, chosen, summaries)
    return figures, None, samples, benchmarks


async def _comparison(
    results: Results, address: CompareAddress
) -> tuple[comparison_pb2.Comparison, DomainError | None]:
    """The comparison, or an empty one and why these runs have none."""
    try:
        return (await results.comparisons.CompareRuns(address.to_proto())).comparison, None
    except DomainError as error:
        if error.kind is not ErrorKind.CONFLICT:
            raise
        return comparison_pb2.Comparison(), error


async def _beside(
    results: Results, address: CompareAddress
) -> tuple[Sequence[summary_pb2.RunSummary], str, SamplesView | None]:
    """The summaries of the runs, and samples of a task: unless one is chosen, of the first that all have."""
    summaries = await asyncio.gather(*(results.summary(run_id) for run_id in address.runs))
    chosen = address if address.task else address.with_task(shared_tasks(summaries))
    return summaries, chosen.task, await _samples(results, chosen, summaries) if chosen.task else None


async def _samples(
    results: Results, address: CompareAddress, summaries: Sequence[summary_pb2.RunSummary]
) -> SamplesView:
    """`summaries` begin with that of the first run."""
    metric = compared_metric(summaries[0], address.task, address.metric)
    try:
        return await differing_samples(results, address.runs, address, metric)
    except DomainError as error:
        if error.kind not in _REFUSED:
            raise
        return SamplesView(fault=_fault(error, address))


def _fault(error: DomainError, address: CompareAddress) -> str:
    """Why no samples are shown, and what to do."""
    if error.reason == NO_SUCH_PAGE:
        return "The samples have no such page. Start at the first one."
    if error.facts.get("field") == "task":
        return f"Not all of these runs have the task {address.task}. Choose another one."
    return error.message


async def _show_selection(
    page: Page, backends: Backends, now: Now, address: CompareAddress, asked: SelectionAddress
) -> Response:
    """The page that offers closed runs, or the models that have runs."""
    model = await model_filter(backends.scheduler, asked.q.strip())
    wanted = ListHistoryRequest(
        days=MAX_HISTORY_DAYS,
        page_size=_OFFERED,
        page_token=asked.page_token,
        benchmark=address.suite,
        # A name that several models have selects none of them, so their list is empty.
        model=model.name or asked.q.strip(),
    )
    named = address.runs[:_MAX_CHOSEN]
    history, suites, chosen = await asyncio.gather(
        backends.results.leaderboard.ListHistory(wanted),
        backends.scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest()),
        asyncio.gather(*(_run_and_summary(backends, run_id) for run_id in named)),
    )
    found = [each for each in chosen if each]
    offered = Offered(history, named, found, [each.suite for each in suites.suites], model)
    view = selection_view(address, asked, offered, now)
    response = page.show("compare/selection", view, part="compare/selection_part")
    if page.is_part:
        response.headers["HX-Push-Url"] = view.link()
    return response


async def _run_and_summary(
    backends: Backends, run_id: str
) -> tuple[run_pb2.Run, summary_pb2.RunSummary] | None:
    """None for a run that does not exist: an old link may name one."""
    try:
        run, summary = await asyncio.gather(backends.scheduler.run(run_id), backends.results.summary(run_id))
    except DomainError as error:
        if error.kind not in {ErrorKind.NOT_FOUND, ErrorKind.INVALID}:
            raise
        return None
    return run, summary
