"""Turns a sample that an agent works on into one outcome, as `ExecuteSample` does for other samples."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from proctor.values.outcome import Answer, Failure, FailureClass, Outcome
from proctor.values.plain import Json
from proctor.values.rollout import RolloutVerdict
from proctor.values.sample import ChatMessage, Prompt
from proctor.values.usage import NO_TOKENS, Timing, TokenUsage
from services.common.sandboxes.errors import SandboxError, VerifierFailed
from services.common.structured_logs import get_logger
from services.worker.engines.engine import EngineResponse, Sampling
from services.worker.engines.errors import EngineFailure
from services.worker.engines.row_params import apply_row_params, read_row_params
from services.worker.engines.tool_calls import with_call_ids
from services.worker.execution.execute_sample import ExecuteSample
from services.worker.execution.shard import Shard, ShardSample
from services.worker.rollouts.budget import Spent
from services.worker.rollouts.errors import (
    BegunAnew,
    BudgetNotRecorded,
    ContextFull,
    ModelFailed,
    ToolsRefused,
)
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.rollouts.model_port.model_call import CallRefused
from services.worker.rollouts.ports import ArtifactSink, BudgetLedger, RolloutPlace
from services.worker.rollouts.rests.rest import Rest
from services.worker.rollouts.rests.wait_for_provider import WaitForProvider
from services.worker.rollouts.rollout_result import RolloutResult
from services.worker.rollouts.task_files.fetch_files import FetchFiles
from services.worker.rollouts.trajectory import cut

# It is shown in a table; the trajectory has the whole.
_MAX_DETAIL_CHARACTERS = 300
log = get_logger()


class ExecutionRecord(ArtifactSink, BudgetLedger, Protocol):
    """Stores artifacts and used budgets of one execution of a rollout."""


class _LeftToRun(Exception):
    """The run has no time or no slot any more: another delivery begins anew."""


@dataclass(slots=True)
class _Model:
    """The model of one rollout: each answer is paced, tried again and refused as that of any sample.

    `asked` is its latest request. `early` came while the rollout had no sandbox: it is the answer to the
    next request if that is the same. Otherwise its tokens count with those of that request.
    """

    execute_sample: ExecuteSample
    waits: WaitForProvider
    rest: Rest
    shard: Shard
    sample: ShardSample
    asked: ShardSample | None = None
    early: tuple[ShardSample, Outcome] | None = None
    unused: TokenUsage = NO_TOKENS

    async def __call__(
        self,
        messages: tuple[ChatMessage, ...],
        params: Mapping[str, object] | None = None,
        *,
        tools: Sequence[Json] = (),
    ) -> EngineResponse:
        sampling = self.sample.sampling or self.shard.sampling
        if params is not None:
            sampling = _of_program(sampling, params, self.shard.rollout)
        if tools:
            sampling = replace(sampling, row_extra={**sampling.row_extra, "tools": list(tools)})
        asked = ShardSample(self.sample.number, Prompt(messages=messages), sampling=sampling)
        outcome = await self._outcome(asked)
        if isinstance(outcome.result, Answer):
            self.rest.has_answer = True
            return EngineResponse(with_call_ids(outcome.result), outcome.usage, outcome.timing)
        assert isinstance(outcome.result, Failure)
        if outcome.result.failure_class is FailureClass.PROMPT_TOO_LONG:
            raise ContextFull
        if tools and outcome.result.failure_class is FailureClass.REFUSED:
            raise ToolsRefused(outcome.result, outcome.usage)
        raise ModelFailed(outcome.result, outcome.usage)

    async def ask_early(self) -> None:
        """Waits for the answer to the latest request, while the rollout rests without a sandbox."""
        assert self.asked is not None
        self.early = (self.asked, await self._wait(self.asked))

    async def _outcome(self, asked: ShardSample) -> Outcome:
        self.asked = asked
        early, self.early = self.early, None
        if early is not None and early[0] == asked:
            return early[1]
        if early is not None:
            self.unused = self.unused.plus(early[1].usage)
        outcome = await self._wait(asked)
        unused, self.unused = self.unused, NO_TOKENS
        return replace(outcome, usage=outcome.usage.plus(unused))

    async def _wait(self, asked: ShardSample) -> Outcome:
        outcome = await self.waits.execute(
            self.shard, self.rest, partial(self.execute_sample.execute, self.shard, asked)
        )
        if outcome is None:
            raise _LeftToRun
        return outcome


@dataclass(frozen=True, slots=True)
class ProcessRollout:
    execute_sample: ExecuteSample
    files: FetchFiles
    rollouts: ExecuteRollout
    waits: WaitForProvider
    new_execution: Callable[[Shard, int], ExecutionRecord | None]
    # Sandboxes of rollouts that rest in them: their memory is the worker's.
    kept_open: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def process(
        self, shard: Shard, sample: ShardSample, place: RolloutPlace | None = None
    ) -> Outcome | None:
        """None where the rollout is left to its run. Raises EngineFailure as `ExecuteSample` does."""
        if problem := await self.execute_sample.check_code.problem():
            return shard.outcome(sample.number, Failure(FailureClass.SANDBOX, problem))
        spent = Spent()
        outcome: Outcome | None = None
        try:
            outcome = await self._outcome(shard, sample, spent, Rest(place, self.kept_open, spent.rest))
        finally:
            # Also where it is cancelled, as by a run that ends or a worker that drains.
            if outcome is None:
                await spent.leave()
        return outcome

    async def _outcome(self, shard: Shard, sample: ShardSample, spent: Spent, rest: Rest) -> Outcome | None:
        model = _Model(self.execute_sample, self.waits, rest, shard, sample)
        try:
            rollout_result = await self._executed(model, spent)
            return shard.outcome(sample.number, _response(rollout_result))
        except _LeftToRun:
            return None
        except BudgetNotRecorded as error:
            log.info("rollout left to its run", run_id=shard.run_id, sample=sample.number, problem=str(error))
            return None
        except ModelFailed as failed:
            return shard.outcome(sample.number, failed.failure, spent.usage.plus(failed.usage))
        except SandboxError as error:
            is_verifier = isinstance(error, VerifierFailed)
            failure_class = FailureClass.VERIFIER if is_verifier else FailureClass.SANDBOX
            failure = Failure(failure_class, _printable(str(error)))
            return shard.outcome(sample.number, failure, spent.usage)
        except EngineFailure:
            raise
        except Exception as error:  # an edge: what an agent left; a redelivery would end in the same way
            log.error("rollout raised", run_id=shard.run_id, sample=sample.number, exc_info=error)
            reason = (
                f"The rollout ended by an error of the worker ({type(error).__name__}); its log has more."
            )
            return shard.outcome(sample.number, Failure(FailureClass.SANDBOX, reason), spent.usage)

    async def _executed(self, model: _Model, spent: Spent) -> RolloutResult:
        """The result of the first execution that is not begun anew."""
        shard, sample, rest = model.shard, model.sample, model.rest
        assert sample.rollout_spec is not None
        rollout_spec = await self.files.fetch(sample.rollout_spec)
        while True:
            record = self.new_execution(shard, sample.number)
            execution = RolloutExecution(
                rollout_spec=rollout_spec,
                session_id=f"{shard.run_id}/{sample.number}/{shard.rollout}",
                model=shard.model,
                ask=model,
                sink=record,
                ledger=record,
                spent=spent,
                rest=rest,
            )
            try:
                return await self.rollouts.execute(execution)
            except BegunAnew:
                await spent.leave(is_resting=True)
                rest.begin_anew()
                await model.ask_early()


def _of_program(sampling: Sampling, params: Mapping[str, object], rollout: int) -> Sampling:
    """Sampling of a program's call. Its parameters win; the greedy default of suites does not apply.

    Raises CallRefused.
    """
    read = read_row_params(json.dumps(params))
    if read.refusal:
        raise CallRefused(400, read.refusal.replace("The line", "The call"))
    own = replace(sampling, is_row=True, is_streamed=False, temperature=sampling.temperature or None)
    return apply_row_params(read, own, rollout)


def _response(rollout_result: RolloutResult) -> EngineResponse:
    """The agent's last message, its end, and the record of all its steps."""
    result = rollout_result.result
    answer = Answer(
        text=rollout_result.trajectory.last_message,
        finish_reason=rollout_result.end.value,
        body_json=_printable(rollout_result.record_json),
        verdict=RolloutVerdict(
            result.score, cut(_printable(result.detail), _MAX_DETAIL_CHARACTERS), len(result.suspicions)
        ),
    )
    return EngineResponse(answer, rollout_result.usage, Timing(rollout_result.seconds))


def _printable(text: str) -> str:
    """The text with a question mark for each half of a character, which JSON can hold and no message."""
    return text.encode("utf-8", "replace").decode()
