"""Lists are counted to a bound: their first page costs the same with a thousand rows and with a million."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.fakes.scheduler.batch_harness import BatchHarness, batch_harness, created
from tests.fakes.storage.uploads import cut, upload

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS, COUNTED = 1_005, 1_001
COPY = """
    INSERT INTO {table}
    SELECT (jsonb_populate_record(one.copied, jsonb_build_object({changed}))).*
    FROM (SELECT each AS copied FROM {table} AS each LIMIT 1) AS one
    CROSS JOIN generate_series(1, $1::integer) AS number
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler")) as opened:
        yield opened


async def test_more_than_a_thousand_are_not_counted(harness: BatchHarness) -> None:
    await created(harness)
    asked = scheduler_pb2.ListRunsRequest(page_size=2)
    assert (await harness.runs.ListRuns(asked)).total == 1
    # Postgres takes no value for a generated column.
    for column in ("lower_name", "answer_bytes"):
        await harness.execute(f"ALTER TABLE runs ALTER COLUMN {column} DROP EXPRESSION")
    await harness.execute(
        COPY.format(
            table="runs", changed="'run_id', gen_random_uuid(), 'request_id', NULL, 'state', 'cancelled'"
        ),
        ROWS,
    )
    first = await harness.runs.ListRuns(asked)
    assert (len(first.runs), first.total) == (2, COUNTED)
    asked.page_token = first.next_page_token
    assert (await harness.runs.ListRuns(asked)).total == COUNTED


async def test_data_sets_are_counted_to_the_same_bound(harness: BatchHarness) -> None:
    await upload(harness.datasets, cut(b'{"prompt": "One?"}\n'))
    await harness.execute("ALTER TABLE datasets ALTER COLUMN content_project_id DROP EXPRESSION")
    changed = "'dataset_id', 'dataset-' || number, 'request_id', NULL"
    await harness.execute(COPY.format(table="datasets", changed=changed), ROWS)
    listed = await harness.datasets.ListDatasets(dataset_pb2.ListDatasetsRequest(page_size=2))
    assert (len(listed.datasets), listed.total) == (2, COUNTED)
