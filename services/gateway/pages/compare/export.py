"""The samples that Compare shows, to the last one, as a file with all answers beside each other."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from fastapi import APIRouter
from starlette.responses import Response

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.wire.rollout_orders import answering_model
from services.gateway.backends.calls import BackendCalls, Results
from services.gateway.pages.compare.address import AddressOf, CompareAddress
from services.gateway.pages.compare.samples import (
    answer_text,
    compared_metric,
    score_of,
    shared_tasks,
    shown_pages,
)
from services.gateway.pages.page import PageOf
from services.gateway.pages.table_files import FileForm, Value, streamed_file

_CHUNK = 100

router = APIRouter(prefix="/compare", include_in_schema=False)


@router.get("/export.{form}")
async def export_samples(
    page: PageOf, backends: BackendCalls, form: FileForm, address: AddressOf
) -> Response:
    """Without runs, whose answers would be exported, the page that asks for them."""
    if not (address.runs and address.is_complete):
        return page.go(str(address))
    runs, summaries = await asyncio.gather(
        asyncio.gather(*(backends.scheduler.run(run_id) for run_id in address.runs)),
        asyncio.gather(*(backends.results.summary(run_id) for run_id in address.runs)),
    )
    address = address.with_task(shared_tasks(summaries))
    metric = compared_metric(summaries[0], address.task, address.metric)
    names = [f"{number}: {answering_model(run.order)} {run.run_id[:8]}" for number, run in enumerate(runs, 1)]
    columns = ["id", "prompt", "target"]
    columns += [f"{name} {column}" for name in names for column in ("answer", "score", "failure")]
    numbers = {name for name in columns if name.endswith(" score")}
    records = _records(backends.results, address, metric)
    return await streamed_file("compared", form, columns, records, numbers=numbers)


async def _records(results: Results, address: CompareAddress, metric: str) -> AsyncGenerator[Sequence[Value]]:
    async for page, _ in shown_pages(results, address, metric, _CHUNK):
        for row in page:
            answers = [value for each in row.answers for value in _answer(each, metric)]
            yield [row.row_id or str(row.doc_id), row.prompt, row.target, *answers]


def _answer(beside: answer_pb2.SideBySideAnswer, metric: str) -> Sequence[Value]:
    if not beside.HasField("outcome"):
        return (None, None, None)
    outcome = beside.outcome.outcome
    failure = outcome.failure.message if outcome.HasField("failure") else None
    return (answer_text(beside.outcome), score_of(beside.outcome, metric), failure)
