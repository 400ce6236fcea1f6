"""The outcomes of a run of rollouts, as far as they are recorded."""

from collections.abc import AsyncIterator

from proctor.client.errors import NotFound
from proctor.client.pages import all_pages
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import outcome_pb2
from proctor.v1 import results_service_pb2 as results_pb2

# The record of a rollout may have a megabyte.
_PAGE_SIZE = 20


async def recorded_outcomes(client: ProctorClient, run_id: str) -> AsyncIterator[outcome_pb2.RecordedOutcome]:
    request = results_pb2.ListOutcomesRequest(run_id=run_id, page_size=_PAGE_SIZE)
    try:
        async for page in all_pages(client.outcomes.ListOutcomes, request):
            for outcome in page.outcomes:
                yield outcome
    except NotFound:
        # Results has no record of the run before it is planned.
        return
