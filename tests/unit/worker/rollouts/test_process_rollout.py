"""A rollout becomes one outcome, whatever it meets; only the worker's own engine hands it on."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import BinaryIO, cast

import pytest

from proctor.values.outcome import Answer, Failure, FailureClass, Outcome
from proctor.values.rollout import (
    AgentKind,
    BudgetUse,
    EarlierUse,
    RolloutAgent,
    RolloutSpec,
    RolloutTask,
    VerifierKind,
)
from proctor.values.usage import TokenUsage
from services.common.clock import SystemClock
from services.common.sandboxes.errors import VerifierFailed
from services.common.sandboxes.ports import SandboxEngine
from services.common.sandboxes.sandbox import Command, CommandResult, Isolation, SandboxSpec, TarLimits
from services.common.sandboxes.tar_files import pack
from services.worker.engines.engine_cache import EngineCache
from services.worker.engines.errors import EngineDied, RequestRefused
from services.worker.execution.execute_sample import ExecuteSample, RequestRetryPolicy
from services.worker.execution.run_states import RefusedRuns, RunStates
from services.worker.rate_limits.limiter import RateLimiters
from services.worker.rate_limits.waits import Backoff
from services.worker.rollouts.errors import BudgetLost, BudgetNotRecorded
from services.worker.rollouts.process_rollout import ProcessRollout
from services.worker.verification.check_code import CheckCode
from tests.fakes.worker.held_message import a_shard
from tests.fakes.worker.refusing_sandboxes import refusing_rollouts
from tests.fakes.worker.scripted_engine import ScriptedEngine

LEFT = pack({b"\xff".decode("utf-8", "surrogateescape"): b"x\n"})
# Half a character, in JSON.
REWARDS = pack({"reward.json": b'{"reward": 1, "\\ud800": 0}'})


@dataclass
class Sandbox:
    """Runs nothing, and has the files that an agent and its tests may leave."""

    error: Exception | None
    has_root: bool = False

    async def put(self, path: str, tar: bytes) -> None: ...

    async def run(self, _: Command) -> CommandResult:
        return CommandResult(0, b"")

    async def get(self, path: str, into: BinaryIO, _: TarLimits) -> None:
        if self.error:
            raise self.error
        into.write(REWARDS if path.startswith("/logs") else LEFT)
        into.seek(0)

    async def get_root(self, *_: object) -> None: ...

    async def stop_processes(self) -> None: ...

    async def close(self) -> None: ...


@dataclass
class Sandboxes:
    error: Exception | None = None

    async def check(self) -> Isolation:
        return Isolation("fake")

    async def open(self, _: SandboxSpec) -> Sandbox:
        return Sandbox(self.error)


class Unrecorded:
    """The scheduler does not answer."""

    execution = "e"

    def __init__(self) -> None:
        self.left: list[BudgetUse] = []

    async def leave(self, used: BudgetUse, *, is_resting: bool = False) -> None:
        assert not is_resting
        self.left.append(used)

    async def rest(self, used: BudgetUse) -> None: ...

    async def put(self, name: str, part: int, content: bytes) -> None: ...

    async def report(self, _: BudgetUse) -> EarlierUse:
        raise BudgetNotRecorded("the scheduler does not answer.")


def rollouts_of(sandboxes: Sandboxes) -> ProcessRollout:
    # Only the part of an engine that a rollout needs.
    engine = cast("SandboxEngine", sandboxes)
    clock = SystemClock()
    backoff = Backoff(0.001)
    execute_sample = ExecuteSample(
        engines=EngineCache(ScriptedEngine()),
        clock=clock,
        request_retry_policy=RequestRetryPolicy(backoff, max_tries=3),
        rate_limiters=RateLimiters(clock=clock, backoff=backoff),
        run_states=RunStates(),
        refused_runs=RefusedRuns(clock),
        check_code=CheckCode(engine, asyncio.Semaphore(1), lambda: "word"),
    )
    process = refusing_rollouts(execute_sample)
    execute_pytest = replace(process.rollouts.verifier.execute_pytest, engine=engine, runner=lambda: b"")
    verifier = replace(process.rollouts.verifier, execute_pytest=execute_pytest)
    return replace(process, rollouts=replace(process.rollouts, verifier=verifier))


async def outcome_of(sandboxes: Sandboxes) -> Outcome:
    shard = a_shard(7)
    task = RolloutTask("task", "Do it.", VerifierKind.REWARD_FILE)
    sample = replace(shard.samples[0], rollout_spec=RolloutSpec(task, RolloutAgent(AgentKind.NONE)))
    outcome = await rollouts_of(sandboxes).process(shard, sample)
    assert outcome is not None
    return outcome


async def test_names_and_rewards_that_are_no_unicode_leave_the_score() -> None:
    result = (await outcome_of(Sandboxes())).result
    assert isinstance(result, Answer)
    assert result.code_result is None
    assert result.verdict is not None
    assert (result.verdict.score, result.verdict.is_passed) == (1.0, True)
    (result.body_json + result.verdict.detail).encode()
    assert "+++ b/\ufffd" in result.body_json


async def test_an_unforeseen_error_fails_the_sample_and_is_not_redelivered() -> None:
    result = (await outcome_of(Sandboxes(RuntimeError("unforeseen")))).result
    assert isinstance(result, Failure)
    assert result.failure_class is FailureClass.SANDBOX
    assert "RuntimeError" in result.message


async def test_the_death_of_the_engine_hands_the_rollout_on() -> None:
    with pytest.raises(EngineDied):
        await outcome_of(Sandboxes(EngineDied("It is gone.")))


async def test_a_budget_that_lost_executions_used_up_is_a_failure_and_no_score() -> None:
    result = (await outcome_of(Sandboxes(BudgetLost(budget="steps", executions=2)))).result
    assert isinstance(result, Failure)
    assert result.failure_class is FailureClass.SANDBOX
    assert "(2) used up its steps" in result.message


async def test_a_rollout_whose_budget_cannot_be_recorded_is_left_to_its_run() -> None:
    shard = a_shard(7)
    task = RolloutTask("task", "Do it.", VerifierKind.REWARD_FILE)
    sample = replace(shard.samples[0], rollout_spec=RolloutSpec(task, RolloutAgent()))
    process = replace(rollouts_of(Sandboxes()), new_execution=lambda *_: Unrecorded())
    assert await process.process(shard, sample) is None


class Recorded(Unrecorded):
    async def report(self, _: BudgetUse) -> EarlierUse:
        return EarlierUse()


async def test_an_execution_that_is_broken_off_gives_its_budget_back() -> None:
    """Its run ended, or its worker drains: both cancel it."""
    ledger, shard, asked = Recorded(), a_shard(7), asyncio.Event()
    task = RolloutTask("task", "Do it.", VerifierKind.REWARD_FILE)
    sample = replace(shard.samples[0], rollout_spec=RolloutSpec(task, RolloutAgent()))
    answers = iter(["I look."])

    async def hang_then(_: str) -> str:
        for answer in answers:
            return answer
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    process = rollouts_of(Sandboxes())
    execute_sample = replace(process.execute_sample, engines=EngineCache(ScriptedEngine(hang_then)))
    process = replace(process, execute_sample=execute_sample, new_execution=lambda *_: ledger)
    executing = asyncio.create_task(process.process(shard, sample))
    await asyncio.wait_for(asked.wait(), 20)
    executing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await executing
    [used] = ledger.left
    # The tokens of the first answer; those of the second are known to nobody.
    assert (used.agent_steps, used.usage) == (2, TokenUsage(prompt_tokens=3, completion_tokens=2))


async def test_an_execution_with_an_outcome_leaves_nothing() -> None:
    ledger = Recorded()
    await outcome_of_a_model(Sandboxes(), ledger=ledger)
    assert ledger.left == []


class LostBefore(Unrecorded):
    """An execution before this one used tokens, and was lost with its worker."""

    async def report(self, _: BudgetUse) -> EarlierUse:
        return EarlierUse(BudgetUse(2, TokenUsage(prompt_tokens=100, completion_tokens=20), 1.0), 1)


async def say_nothing_useful(_: str) -> str:
    return "I look."


async def outcome_of_a_model(
    sandboxes: Sandboxes,
    answer: Callable[[str], Awaitable[str]] = say_nothing_useful,
    ledger: Unrecorded | None = None,
) -> Outcome:
    shard = a_shard(7)
    task = RolloutTask("task", "Do it.", VerifierKind.REWARD_FILE)
    sample = replace(shard.samples[0], rollout_spec=RolloutSpec(task, RolloutAgent()))
    process = rollouts_of(sandboxes)
    asked = replace(process.execute_sample, engines=EngineCache(ScriptedEngine(answer)))
    process = replace(process, execute_sample=asked, new_execution=lambda *_: ledger or LostBefore())
    outcome = await process.process(shard, sample)
    assert outcome is not None
    return outcome


@pytest.mark.parametrize(
    "error",
    [VerifierFailed(problem="no result."), RuntimeError("unforeseen"), BudgetLost(budget="x", executions=1)],
)
async def test_tokens_of_a_rollout_without_a_score_are_in_its_outcome(error: Exception) -> None:
    outcome = await outcome_of_a_model(Sandboxes(error))
    assert outcome.failure is not None
    assert outcome.usage == TokenUsage(prompt_tokens=109, completion_tokens=26)


async def test_tokens_before_a_model_failed_are_in_the_outcome() -> None:
    answers = iter(["I look."])

    async def fail_then(_: str) -> str:
        for answer in answers:
            return answer
        failure = RequestRefused("no more")
        failure.usage = TokenUsage(prompt_tokens=1000)
        raise failure

    outcome = await outcome_of_a_model(Sandboxes(), fail_then)
    assert outcome.failure is not None
    assert outcome.failure.failure_class is FailureClass.REFUSED
    assert outcome.usage == TokenUsage(prompt_tokens=1103, completion_tokens=22)


async def test_tokens_of_lost_executions_count_in_the_outcome() -> None:
    outcome = await outcome_of_a_model(Sandboxes())
    assert isinstance(outcome.result, Answer)
    # Three answers without a command, of 3 and 2 tokens each.
    assert outcome.result.finish_reason == "no_commands"
    assert outcome.usage == TokenUsage(prompt_tokens=109, completion_tokens=26)
    record = json.loads(outcome.result.body_json)
    assert record["trajectory"]["final_metrics"]["total_prompt_tokens"] == 9
    assert record["budget"]["lost"]["tokens"] == 120
