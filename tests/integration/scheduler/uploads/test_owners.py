"""Things of a user are changed by this user and by operators only."""

from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.user import Caller
from services.common.grpc.caller import Metadata, caller_metadata
from services.common.grpc.client import open_channel
from services.common.grpc.errors import remote_error
from tests.fakes.callers import OPERATOR_METADATA
from tests.fakes.scheduler.batch_harness import BatchHarness, batch_harness, created, lines
from tests.fakes.storage.uploads import cut, upload

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWNER = caller_metadata(Caller("ann"))
OTHERS = (caller_metadata(Caller("bob")), ())
Change = Callable[[Metadata], Awaitable[object]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler")) as opened:
        yield opened


async def cancel_run(harness: BatchHarness) -> Change:
    request = scheduler_pb2.CancelRunRequest(run_id=(await created(harness)).run_id)
    return lambda caller: harness.runs.CancelRun(request, metadata=caller)


async def pause_run(harness: BatchHarness) -> Change:
    request = scheduler_pb2.PauseRunRequest(run_id=(await created(harness)).run_id)
    return lambda caller: harness.runs.PauseRun(request, metadata=caller)


async def resume_run(harness: BatchHarness) -> Change:
    run_id = (await created(harness)).run_id
    await harness.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run_id), metadata=OWNER)
    request = scheduler_pb2.ResumeRunRequest(run_id=run_id)
    return lambda caller: harness.runs.ResumeRun(request, metadata=caller)


async def cancel_batch(harness: BatchHarness) -> Change:
    request = batch_pb2.CancelBatchRequest(batch_id=(await created(harness)).batch_id)
    return lambda caller: harness.batches.CancelBatch(request, metadata=caller)


async def delete_file(harness: BatchHarness) -> Change:
    request = file_pb2.DeleteFileRequest(file_id=(await harness.upload(lines(1))).file_id)
    return lambda caller: harness.files.DeleteFile(request, metadata=caller)


async def delete_dataset(harness: BatchHarness) -> Change:
    dataset = (await upload(harness.datasets, cut(lines(1)), user="ann")).dataset
    request = dataset_pb2.DeleteDatasetRequest(dataset_id=dataset.dataset_id)
    return lambda caller: harness.datasets.DeleteDataset(request, metadata=caller)


async def save_mapping(harness: BatchHarness) -> Change:
    mapping = dataset_pb2.ColumnMapping(prompt="{{question}}")
    request = dataset_pb2.SaveMappingRequest(name=f"quiz {uuid4()}", mapping=mapping)
    await harness.datasets.SaveMapping(request, metadata=OWNER)
    return lambda caller: harness.datasets.SaveMapping(request, metadata=caller)


async def delete_mapping(harness: BatchHarness) -> Change:
    mapping = dataset_pb2.ColumnMapping(prompt="{{question}}")
    save = dataset_pb2.SaveMappingRequest(name=f"quiz {uuid4()}", mapping=mapping)
    await harness.datasets.SaveMapping(save, metadata=OWNER)
    request = dataset_pb2.DeleteMappingRequest(name=save.name)
    return lambda caller: harness.datasets.DeleteMapping(request, metadata=caller)


@pytest.mark.parametrize(
    "prepare",
    [
        cancel_run,
        pause_run,
        resume_run,
        cancel_batch,
        delete_file,
        delete_dataset,
        save_mapping,
        delete_mapping,
    ],
)
@pytest.mark.parametrize("allowed", [OWNER, OPERATOR_METADATA])
async def test_what_belongs_to_a_user_is_changed_by_owner_and_operators_only(
    harness: BatchHarness, prepare: Callable[[BatchHarness], Awaitable[Change]], allowed: Metadata
) -> None:
    change = await prepare(harness)
    for other in OTHERS:
        with pytest.raises(grpc.aio.AioRpcError, match="belongs to ann: only ann and operators") as caught:
            await change(other)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        error = remote_error(caught.value)
        assert (error.reason, error.facts["owner"]) == ("PERMISSION_DENIED", "ann")
    await change(allowed)


@pytest.mark.parametrize("method", ["RetryRun", "DeleteRun"])
async def test_run_that_has_ended_is_retried_and_deleted_by_its_owner(
    harness: BatchHarness, method: str
) -> None:
    run_id = (await created(harness)).run_id
    await harness.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id), metadata=OWNER)
    request = getattr(scheduler_pb2, f"{method}Request")(run_id=run_id)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await getattr(harness.runs, method)(request, metadata=OTHERS[0])
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    # Its owner learns why it cannot be done now.
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await getattr(harness.runs, method)(request, metadata=OWNER)
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_only_signed_calls_of_operators_set_limits(harness: BatchHarness) -> None:
    """Also for those who reach the scheduler itself, and name themselves an operator."""
    request = queue_pb2.SetLimitsRequest()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await harness.queue.SetLimits(request, metadata=OWNER)
    assert remote_error(refused.value).facts == {"user": "ann"}
    async with open_channel(harness.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as forged:
            await queue_grpc.QueueServiceStub(channel).SetLimits(request, metadata=OPERATOR_METADATA)
    assert remote_error(forged.value).facts == {"method": "SetLimits"}
