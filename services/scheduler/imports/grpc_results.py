"""What only imports ask of results' record of runs: plans of logs, and answers with their scores."""

import json
from collections.abc import Iterator, Sequence

import grpc

from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.v1 import run_record_service_pb2_grpc as run_record_grpc
from proctor.v1 import sample_pb2
from proctor.values.outcome import Failure, FailureClass, Outcome
from proctor.wire.enums import number_of
from proctor.wire.values import GROUP, OUTCOME, SCORING
from services.common.grpc.errors import remote_error
from services.scheduler.imports.logged_run import LoggedAnswer, LoggedSample, LoggedScore
from services.scheduler.imports.ports import ImportedPlan, StoredTask
from services.scheduler.planning.grpc_results import facts_to_proto
from services.scheduler.runs.lifecycle.run import Run

_CALL_SECONDS = 60.0
_OPEN_SECONDS = 600.0
# Of answers in a message; a larger one travels alone.
_MESSAGE_BYTES = 2 * 1024 * 1024
_OUTCOMES = 1000


class GrpcLoggedRecord:
    """A client of RunRecordService; failures are raised as `RemoteError`."""

    def __init__(self, channel: grpc.aio.Channel, *, max_failed_share: float | None = None) -> None:
        self._record = run_record_grpc.RunRecordServiceStub(channel)
        self._max_failed_share = max_failed_share

    async def open_logged(self, run: Run, plan: ImportedPlan) -> None:
        request = run_record_pb2.OpenRunRequest(
            run_id=run.run_id,
            epoch=run.epoch,
            tasks=[_task(task, plan.tool) for task in plan.tasks],
            rollouts=run.order.rollouts,
            row_rollouts=run.order.row_rollouts,
            scoring_method=number_of(run.scoring_method),
            facts=facts_to_proto(run, plan.missing_tasks),
            groups=[GROUP.to_proto(group) for group in plan.groups],
            max_failed_share=self._max_failed_share,
        )
        try:
            await self._record.OpenRun(request, timeout=_OPEN_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise remote_error(error) from error

    async def record_logged(self, run: Run, first_sample: int, samples: Sequence[LoggedSample]) -> None:
        for outcomes in _messages(first_sample, samples):
            request = run_record_pb2.RecordLoggedRequest(
                run_id=run.run_id, epoch=run.epoch, outcomes=outcomes
            )
            try:
                await self._record.RecordLogged(request, timeout=_CALL_SECONDS)
            except grpc.aio.AioRpcError as error:
                raise remote_error(error) from error


def _task(task: StoredTask, tool: str) -> sample_pb2.PlannedTask:
    planned, logged = task.planned, task.logged
    request = json.loads(logged.request_json)
    return sample_pb2.PlannedTask(
        task=planned.task,
        version=planned.version,
        sample_set_id=planned.sample_set_id,
        first_sample=planned.first_sample,
        sample_count=planned.sample_count,
        scoring=SCORING.to_proto(logged.scoring),
        num_fewshot=planned.num_fewshot,
        row_source=planned.row_source,
        stop=request.get("stop", ()),
        max_tokens=request.get("max_tokens", 0),
        temperature=request.get("temperature"),
        samples_digest=task.digest.hex(),
        request_json=logged.request_json,
        logged_by=tool,
        unknown_conditions=logged.unknown,
    )


def _messages(
    first_sample: int, samples: Sequence[LoggedSample]
) -> Iterator[list[run_record_pb2.LoggedOutcome]]:
    held: list[run_record_pb2.LoggedOutcome] = []
    size = 0
    for offset, sample in enumerate(samples):
        for rollout, answer in enumerate(sample.answers):
            outcome = _outcome(first_sample + offset, rollout, answer)
            added = outcome.ByteSize()
            if held and (size + added > _MESSAGE_BYTES or len(held) == _OUTCOMES):
                yield held
                held, size = [], 0
            held.append(outcome)
            size += added
    if held:
        yield held


def _outcome(sample: int, rollout: int, logged: LoggedAnswer) -> run_record_pb2.LoggedOutcome:
    failure = Failure(FailureClass.PROVIDER_ERROR, logged.failure or "The log has no answer.")
    outcome = Outcome(sample, rollout, 0, 1, logged.answer or failure, logged.usage, logged.timing)
    return run_record_pb2.LoggedOutcome(
        outcome=OUTCOME.to_proto(outcome),
        scores={metric: _score(score) for metric, score in logged.scores.items()},
        prediction=logged.prediction,
        is_unparsed=logged.is_unparsed,
    )


def _score(score: LoggedScore) -> run_record_pb2.LoggedScore:
    if isinstance(score, tuple):
        return run_record_pb2.LoggedScore(first=score[0], second=score[1])
    return run_record_pb2.LoggedScore(first=score)
