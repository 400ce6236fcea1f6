"""Every method that changes something at the scheduler leaves a record with the caller's key and address."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from proctor.v1 import (
    audit_pb2,
    audit_service_pb2,
    key_service_pb2,
    project_service_pb2,
    rollout_service_pb2,
    run_pb2,
)
from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import notice_service_pb2 as notice_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import schedule_service_pb2 as schedule_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.values.names.user import Caller, Role
from proctor.wire.stubs import SchedulerStubs
from services.common.grpc.caller import caller_metadata
from services.common.grpc.client import open_channel
from services.common.grpc.permissions import METHODS, RECORDED, Permission
from services.common.grpc.signatures import Signer
from tests.fakes.callers import GATEWAY
from tests.fakes.scheduler.batch_harness import (
    BatchHarness,
    batch_harness,
    counts_json,
    lines,
    upload_requests,
)
from tests.fakes.storage.checked_files import jsonl
from tests.fakes.storage.uploads import cut, upload
from tests.harness.rollout_orders import archive
from tests.harness.rollout_tasks import harbor_folder

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLGA = Caller("olga", Role.OPERATOR, key_id="ab" * 8, address="203.0.113.7")
SUITE = """
task: {name}
version: "1"
dataset: {{file: rows.jsonl}}
output_type: generate_until
doc_to_text: "{{{{q}}}}"
doc_to_target: "{{{{a}}}}"
metric_list: [{{metric: exact_match}}]
"""


class _SignerOfOlga(Signer):
    """Signs calls of this caller."""

    def signed(
        self, method: str, metadata: Iterable[tuple[str, str | bytes]]
    ) -> tuple[tuple[str, str | bytes], ...]:
        return GATEWAY.signed(method, (*metadata, *caller_metadata(OLGA)))


class Changes:
    """Makes one change by each method. Returns the id of what was changed."""

    def __init__(self, harness: BatchHarness, calls: SchedulerStubs, folder: Path) -> None:
        self.harness = harness
        self.calls = calls
        self.folder = folder

    async def submit_run(self) -> str:
        order = run_pb2.RunOrder(dataset_id=await self.upload_dataset(), model="openai/m")
        request = scheduler_pb2.SubmitRunRequest(order=order, user=OLGA.name)
        return (await self.calls.runs.SubmitRun(request)).run.run_id

    async def cancel_run(self) -> str:
        run_id = await self.submit_run()
        await self.calls.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))
        return run_id

    async def pause_run(self) -> str:
        run_id = await self.submit_run()
        await self.calls.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run_id))
        return run_id

    async def archive_run(self) -> str:
        run_id = await self._closed_run()
        await self.calls.runs.ArchiveRun(scheduler_pb2.ArchiveRunRequest(run_id=run_id))
        return run_id

    async def restore_run(self) -> str:
        run_id = await self.archive_run()
        await self.calls.runs.RestoreRun(scheduler_pb2.RestoreRunRequest(run_id=run_id))
        return run_id

    async def resume_run(self) -> str:
        run_id = await self.pause_run()
        await self.calls.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=run_id))
        return run_id

    async def _closed_run(self) -> str:
        run_id = await self.cancel_run()
        await self.harness.change_run(run_id, is_closed=True, final_counts=counts_json(0, 0))
        return run_id

    async def retry_run(self) -> str:
        run_id = await self._closed_run()
        await self.calls.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run_id))
        return run_id

    async def delete_run(self) -> str:
        run_id = await self._closed_run()
        await self.calls.runs.DeleteRun(scheduler_pb2.DeleteRunRequest(run_id=run_id))
        return run_id

    async def label_run(self) -> str:
        run_id = await self.submit_run()
        await self.calls.runs.LabelRun(scheduler_pb2.LabelRunRequest(run_id=run_id, name="baseline"))
        return run_id

    async def add_schedule(self) -> str:
        order = run_pb2.RunOrder(dataset_id=await self.upload_dataset(), model="openai/m")
        request = schedule_pb2.AddScheduleRequest(
            cron="0 3 * * *", order=order, labels=run_pb2.RunLabels(name="nightly"), user=OLGA.name
        )
        return (await self.calls.schedules.AddSchedule(request)).schedule.schedule_id

    async def pause_schedule(self) -> str:
        schedule_id = await self.add_schedule()
        await self.calls.schedules.PauseSchedule(schedule_pb2.PauseScheduleRequest(schedule_id=schedule_id))
        return schedule_id

    async def resume_schedule(self) -> str:
        schedule_id = await self.pause_schedule()
        await self.calls.schedules.ResumeSchedule(schedule_pb2.ResumeScheduleRequest(schedule_id=schedule_id))
        return schedule_id

    async def delete_schedule(self) -> str:
        schedule_id = await self.add_schedule()
        await self.calls.schedules.DeleteSchedule(schedule_pb2.DeleteScheduleRequest(schedule_id=schedule_id))
        return schedule_id

    async def add_target(self) -> str:
        request = notice_pb2.AddNoticeTargetRequest(
            channel=notice_pb2.NOTICE_CHANNEL_WEBHOOK,
            address="https://example.org/hook",
            events=[notice_pb2.NOTICE_EVENT_RUN_ENDED],
        )
        return (await self.calls.notices.AddNoticeTarget(request)).target.target_id

    async def test_target(self) -> str:
        target_id = await self.add_target()
        await self.calls.notices.TestNoticeTarget(notice_pb2.TestNoticeTargetRequest(target_id=target_id))
        return target_id

    async def delete_target(self) -> str:
        target_id = await self.add_target()
        await self.calls.notices.DeleteNoticeTarget(notice_pb2.DeleteNoticeTargetRequest(target_id=target_id))
        return target_id

    async def set_limits(self) -> str:
        await self.calls.queue.SetLimits(
            queue_pb2.SetLimitsRequest(limits=queue_pb2.QueueLimits(max_running_runs=1))
        )
        return ""

    async def create_key(self) -> str:
        created = await self.calls.keys.CreateKey(key_service_pb2.CreateKeyRequest(user="ann"))
        return created.key.key_id

    async def rotate_key(self) -> str:
        key_id = await self.create_key()
        await self.calls.keys.RotateKey(key_service_pb2.RotateKeyRequest(key_id=key_id))
        return key_id

    async def revoke_key(self) -> str:
        key_id = await self.create_key()
        await self.calls.keys.RevokeKey(key_service_pb2.RevokeKeyRequest(key_id=key_id))
        return key_id

    async def create_project(self) -> str:
        request = project_service_pb2.CreateProjectRequest(name=uuid4().hex)
        return str((await self.calls.projects.CreateProject(request)).project.project_id)

    async def update_project(self) -> str:
        project_id = await self.create_project()
        request = project_service_pb2.UpdateProjectRequest(project_id=int(project_id), max_cost=5)
        await self.calls.projects.UpdateProject(request)
        return project_id

    async def set_project_member(self) -> str:
        project_id = await self.create_project()
        request = project_service_pb2.SetProjectMemberRequest(project_id=int(project_id), user="ann")
        await self.calls.projects.SetProjectMember(request)
        return project_id

    async def remove_project_member(self) -> str:
        project_id = await self.set_project_member()
        request = project_service_pb2.RemoveProjectMemberRequest(project_id=int(project_id), user="ann")
        await self.calls.projects.RemoveProjectMember(request)
        return project_id

    async def add_suite(self) -> str:
        name = f"s{uuid4().hex}"
        document = suite_pb2.SuiteDocument(
            text=SUITE.format(name=name),
            file_name=f"{name}.yaml",
            files={"rows.jsonl": jsonl([{"q": "1+1", "a": "2"}])},
        )
        request = suite_pb2.AddSuiteRequest(document=document, user=OLGA.name)
        return f"{(await self.calls.suites.AddSuite(request)).suite.suite}@1"

    async def delete_suite(self) -> str:
        suite, _, version = (named := await self.add_suite()).partition("@")
        await self.calls.suites.DeleteSuite(suite_pb2.DeleteSuiteRequest(suite=suite, version=int(version)))
        return named

    async def upload_tasks(self) -> str:
        tasks = self.folder / uuid4().hex
        harbor_folder(tasks / "task")
        content = archive(tasks)

        async def messages() -> AsyncIterator[rollout_service_pb2.UploadTasksRequest]:
            header = rollout_service_pb2.TasksHeader(name="mine.tar.gz", user=OLGA.name)
            yield rollout_service_pb2.UploadTasksRequest(header=header)
            yield rollout_service_pb2.UploadTasksRequest(content=content)
            yield rollout_service_pb2.UploadTasksRequest(end=rollout_service_pb2.TasksEnd())

        return (await self.calls.rollouts.UploadTasks(messages())).tasks_digest

    async def submit_rollouts(self) -> str:
        request = rollout_service_pb2.SubmitRolloutsRequest(
            suite=f"s{uuid4().hex}",
            tasks_digest=await self.upload_tasks(),
            models=["openai/m"],
            user=OLGA.name,
            request_id=str(uuid4()),
        )
        return (await self.calls.rollouts.SubmitRollouts(request)).order_id

    async def upload_dataset(self) -> str:
        pieces = cut(lines(1, uuid4().hex))
        return (await upload(self.calls.datasets, pieces, user=OLGA.name)).dataset.dataset_id

    async def delete_dataset(self) -> str:
        dataset_id = await self.upload_dataset()
        await self.calls.datasets.DeleteDataset(dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id))
        return dataset_id

    async def upload_file(self) -> str:
        requests = upload_requests(cut(lines(1, uuid4().hex)), user=OLGA.name)
        return (await self.calls.files.UploadFile(requests)).file.file_id

    async def delete_file(self) -> str:
        file_id = await self.upload_file()
        await self.calls.files.DeleteFile(file_pb2.DeleteFileRequest(file_id=file_id))
        return file_id

    async def _batch(self) -> batch_pb2.Batch:
        request = batch_pb2.CreateBatchRequest(
            input_file_id=await self.upload_file(),
            endpoint="/v1/chat/completions",
            completion_window="24h",
            user=OLGA.name,
        )
        return (await self.calls.batches.CreateBatch(request)).batch

    async def create_batch(self) -> str:
        return (await self._batch()).batch_id

    async def save_mapping(self) -> str:
        mapping = dataset_pb2.ColumnMapping(prompt="{{question}}")
        request = dataset_pb2.SaveMappingRequest(name=f"quiz {uuid4()}", mapping=mapping)
        return (await self.calls.datasets.SaveMapping(request)).saved.name

    async def delete_mapping(self) -> str:
        name = await self.save_mapping()
        await self.calls.datasets.DeleteMapping(dataset_pb2.DeleteMappingRequest(name=name))
        return name

    async def cancel_batch(self) -> str:
        batch = await self._batch()
        await self.calls.batches.CancelBatch(batch_pb2.CancelBatchRequest(batch_id=batch.batch_id))
        return batch.run_id


# By method: the change, and the words of its record. A method without an entry fails the test below.
RECORDS: Mapping[str, tuple[Callable[[Changes], Awaitable[str]], str]] = {
    "SubmitRun": (Changes.submit_run, "submit run"),
    "CancelRun": (Changes.cancel_run, "cancel run"),
    "RetryRun": (Changes.retry_run, "retry run"),
    "PauseRun": (Changes.pause_run, "pause run"),
    "ResumeRun": (Changes.resume_run, "resume run"),
    "DeleteRun": (Changes.delete_run, "delete run"),
    "LabelRun": (Changes.label_run, "label run"),
    "ArchiveRun": (Changes.archive_run, "archive run"),
    "RestoreRun": (Changes.restore_run, "restore run"),
    "SetLimits": (Changes.set_limits, "set limits"),
    "CreateKey": (Changes.create_key, "create key"),
    "RotateKey": (Changes.rotate_key, "rotate key"),
    "RevokeKey": (Changes.revoke_key, "revoke key"),
    "CreateProject": (Changes.create_project, "create project"),
    "UpdateProject": (Changes.update_project, "set project"),
    "SetProjectMember": (Changes.set_project_member, "set project"),
    "RemoveProjectMember": (Changes.remove_project_member, "remove project"),
    "AddSuite": (Changes.add_suite, "add suite"),
    "DeleteSuite": (Changes.delete_suite, "delete suite"),
    "UploadTasks": (Changes.upload_tasks, "upload tasks"),
    "SubmitRollouts": (Changes.submit_rollouts, "submit rollouts"),
    "UploadDataset": (Changes.upload_dataset, "upload dataset"),
    "DeleteDataset": (Changes.delete_dataset, "delete dataset"),
    "SaveMapping": (Changes.save_mapping, "save mapping"),
    "DeleteMapping": (Changes.delete_mapping, "delete mapping"),
    "UploadFile": (Changes.upload_file, "upload file"),
    "DeleteFile": (Changes.delete_file, "delete file"),
    "CreateBatch": (Changes.create_batch, "create batch"),
    # The batch is cancelled by its run.
    "AddSchedule": (Changes.add_schedule, "create schedule"),
    "PauseSchedule": (Changes.pause_schedule, "pause schedule"),
    "ResumeSchedule": (Changes.resume_schedule, "resume schedule"),
    "DeleteSchedule": (Changes.delete_schedule, "delete schedule"),
    "AddNoticeTarget": (Changes.add_target, "create notice target"),
    "TestNoticeTarget": (Changes.test_target, "add notice target"),
    "DeleteNoticeTarget": (Changes.delete_target, "delete notice target"),
    "CancelBatch": (Changes.cancel_batch, "cancel run"),
}
# They only read.
_READS = {"ListKeys", "ListAuditRecords"}
# `tests/e2e/runs/test_imports.py` has the record of an import, which needs results.
_NEED_RESULTS = {"ImportRun"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def changes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Changes]:
    async with (
        batch_harness(tmp_path_factory.mktemp("scheduler")) as harness,
        open_channel(harness.address, signer=_SignerOfOlga(b"")) as channel,
    ):
        yield Changes(harness, SchedulerStubs(channel), tmp_path_factory.mktemp("tasks"))


async def test_every_method_that_changes_something_is_recorded_by_the_scheduler_or_the_gateway() -> None:
    asked = {name for name, permission in METHODS.items() if permission is not Permission.READ}
    assert asked - RECORDED - _READS - _NEED_RESULTS == set(RECORDS)


@pytest.mark.parametrize("method", RECORDS)
async def test_change_leaves_a_record_with_user_key_and_address(changes: Changes, method: str) -> None:
    change, words = RECORDS[method]
    object_id = await change(changes)
    request = audit_service_pb2.ListAuditRecordsRequest(
        user=OLGA.name, object_id=object_id, action=words.split()[0]
    )
    [record] = (await changes.calls.audit.ListAuditRecords(request)).records
    assert f"{record.action} {record.kind}" == words
    assert (record.user, record.key_id, record.address) == (OLGA.name, OLGA.key_id, OLGA.address)
    assert (record.outcome, record.times) == (audit_pb2.AUDIT_OUTCOME_DONE, 1)
