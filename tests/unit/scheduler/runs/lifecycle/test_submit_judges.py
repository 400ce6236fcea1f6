"""Judges that an order names: checked with it, and each ordered once after its run has completed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import ClassVar

import pytest

from proctor.values.judging.named_judge import NamedJudge
from proctor.values.run import RunId, RunState
from services.common.errors import DomainError, InvalidParameter
from services.scheduler.judging.judge import Judge
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.projects.errors import ProjectBudgetUsed
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.submit_judges import SubmitJudges
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.workers.model_names import UnknownModel
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler_rules import queue_limits

JUDGE = NamedJudge("openai/judge")
OTHER = NamedJudge("openai/judge", "helpfulness", "1-3")


@dataclass
class RunsToJudge:
    """Those in memory; it notes which are judged."""

    harness: SchedulerHarness
    judged: set[RunId] = field(default_factory=set)
    refused: dict[RunId, str] = field(default_factory=dict)

    async def to_judge(self) -> Sequence[Run]:
        runs = self.harness.runs.runs.values()
        complete = [run for run in runs if run.state is RunState.COMPLETED and run.is_closed]
        return [run for run in complete if run.order.judges and run.run_id not in self.judged]

    async def mark_judged(
        self,
        token: FencingToken,  # noqa: ARG002  # as the port has it
        run: Run,
        refused: str,
        now: datetime,  # noqa: ARG002  # as the port has it
    ) -> None:
        self.judged.add(run.run_id)
        self.refused[run.run_id] = refused


def judges_of(harness: SchedulerHarness) -> SubmitJudges:
    return SubmitJudges(RunsToJudge(harness), harness.submitting, harness.clock)


async def completed(
    harness: SchedulerHarness,
    *judges: NamedJudge,
    state: RunState = RunState.COMPLETED,
    user: str = "local",
) -> Run:
    run = await harness.submit(toy_order(judges=judges, project_id=3), user)
    harness.runs.runs[run.run_id] = replace(run, state=state, is_closed=True)
    return run


def judging_runs(harness: SchedulerHarness, judged: Run) -> list[Run]:
    runs = harness.runs.runs.values()
    return [run for run in runs if run.order.judge and run.order.judge.run_id == judged.run_id]


def judge_of(run: Run) -> Judge:
    assert run.order.judge
    return run.order.judge


async def test_each_judge_of_a_completed_run_is_ordered_once_over_kills() -> None:
    harness = SchedulerHarness()
    run = await completed(harness, JUDGE, OTHER)
    await judges_of(harness).submit_all(harness.runs.begin_term())
    first, second = judging_runs(harness, run)
    assert [judge_of(one).prompt for one in (first, second)] == ["correctness", "helpfulness"]
    assert (judge_of(second).scale, second.order.project_id, second.user) == ("1-3", 3, run.user)
    # The first leader was killed before it could note that it has ordered them.
    judges = judges_of(harness)
    await judges.submit_all(harness.runs.begin_term())
    assert judging_runs(harness, run) == [first, second]
    assert await judges.runs.to_judge() == []


async def test_judges_of_a_suite_judge_runs_that_name_none() -> None:
    harness = SchedulerHarness()
    harness.suites.judges = (NamedJudge("openai/judge", "style"),)
    by_suite, by_order = await completed(harness), await completed(harness, OTHER)
    assert by_suite.order.judges == (NamedJudge("openai/judge", "style"),)
    assert (await harness.submit(toy_order(without_judges=True))).order.judges == ()
    await judges_of(harness).submit_all(harness.runs.begin_term())
    prompts = [judge_of(one).prompt for run in (by_suite, by_order) for one in judging_runs(harness, run)]
    assert prompts == ["style", "helpfulness"]


@pytest.mark.parametrize(
    ("judges", "problem"),
    [
        ((NamedJudge("openai/judge", "none"),), "There is no judge prompt 'none'"),
        ((NamedJudge("openai/judge"), NamedJudge("nowhere/judge")), "nowhere"),
        ((NamedJudge("vllm/nothing"),), "No pool serves the model"),
        ((NamedJudge("openai/judge", document="é" * 32_000),) * 2, "may take at most 65536"),
    ],
)
async def test_a_suite_whose_judge_cannot_be_asked_refuses_the_order(
    judges: tuple[NamedJudge, ...], problem: str
) -> None:
    harness = SchedulerHarness()
    harness.suites.judges = judges
    with pytest.raises(InvalidParameter, match="A judge of the suite toy cannot be asked: ") as refused:
        await harness.submit(toy_order())
    assert problem in refused.value.message
    assert not harness.runs.runs


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.FAILED, RunState.CANCELLED])
async def test_only_complete_answers_are_judged(state: RunState) -> None:
    harness = SchedulerHarness()
    run = await completed(harness, JUDGE, state=state)
    await judges_of(harness).submit_all(harness.runs.begin_term())
    assert judging_runs(harness, run) == []


async def test_an_order_that_names_judges_is_not_without_judges() -> None:
    with pytest.raises(InvalidParameter, match="names judges and is without judges"):
        await SchedulerHarness().submit(toy_order(judges=(JUDGE,), without_judges=True))


async def test_a_judge_waits_for_room_in_the_queue_of_its_user() -> None:
    harness = SchedulerHarness()
    run = await completed(harness, JUDGE)
    harness.runs.limits.now = queue_limits(max_pending_runs_per_user=0)
    token = harness.runs.begin_term()
    await judges_of(harness).submit_all(token)
    assert judging_runs(harness, run) == []
    harness.runs.limits.now = queue_limits(max_pending_runs_per_user=5)
    await judges_of(harness).submit_all(token)
    assert len(judging_runs(harness, run)) == 1


class WithoutBudget(SubmitRun):
    """Of a project whose budget is spent, but for what is set aside."""

    reserved: ClassVar[str] = "4"

    async def prepare(self, submission: Submission) -> Run:  # noqa: ARG002  # as it overrides
        shown = {"name": "plans", "left": "0", "budget": "10", "period": "in all", "cost": "6", "advice": ""}
        raise ProjectBudgetUsed(**shown, reserved=self.reserved)


async def test_a_judge_waits_for_what_open_runs_may_leave_of_the_budget_and_for_no_more() -> None:
    harness = SchedulerHarness()
    run = await completed(harness, JUDGE)
    poor = WithoutBudget(*(getattr(harness.submitting, each.name) for each in fields(SubmitRun)))
    waiting, token = RunsToJudge(harness), harness.runs.begin_term()
    await SubmitJudges(waiting, poor, harness.clock).submit_all(token)
    assert waiting.judged == set()
    WithoutBudget.reserved = "0"
    await SubmitJudges(waiting, poor, harness.clock).submit_all(token)
    assert "has 0 left of 10" in waiting.refused[run.run_id]


class CountedSubmit(SubmitRun):
    """Notes whose runs it prepares."""

    prepared: ClassVar[list[str]] = []

    async def prepare(self, submission: Submission) -> Run:
        self.prepared.append(submission.user)
        return await SubmitRun.prepare(self, submission)


async def test_a_user_without_room_is_tried_once_a_round_and_holds_no_other() -> None:
    harness = SchedulerHarness()
    own = [await completed(harness, JUDGE) for _ in range(3)]
    others = await completed(harness, JUDGE, user="other")
    harness.runs.limits.now = queue_limits(max_pending_runs_per_user=1)
    await harness.submit(toy_order())
    counted = CountedSubmit(*(getattr(harness.submitting, each.name) for each in fields(SubmitRun)))
    judges = SubmitJudges(RunsToJudge(harness), counted, harness.clock)
    await judges.submit_all(harness.runs.begin_term())
    assert [len(judging_runs(harness, run)) for run in (*own, others)] == [0, 0, 0, 1]
    assert counted.prepared == ["local", "other"]


class FaultySubmit(SubmitRun):
    """Fails for the judges of one user as nobody expects."""

    async def prepare(self, submission: Submission) -> Run:
        if submission.user == "local":
            raise RuntimeError("unexpected")
        return await SubmitRun.prepare(self, submission)


async def test_an_unexpected_error_of_one_run_holds_up_no_other() -> None:
    harness = SchedulerHarness()
    own, others = await completed(harness, JUDGE), await completed(harness, JUDGE, user="other")
    faulty = FaultySubmit(*(getattr(harness.submitting, each.name) for each in fields(SubmitRun)))
    runs = RunsToJudge(harness)
    await SubmitJudges(runs, faulty, harness.clock).submit_all(harness.runs.begin_term())
    # It is tried again in the next round.
    assert runs.judged == {others.run_id}
    await SubmitJudges(runs, harness.submitting, harness.clock).submit_all(harness.runs.begin_term())
    assert runs.judged == {own.run_id, others.run_id}


@pytest.mark.parametrize(
    ("judge", "kind", "sentence"),
    [
        (NamedJudge("vllm/nothing"), UnknownModel, "No pool serves the model"),
        (NamedJudge("openai/judge", "none"), InvalidParameter, "There is no judge prompt 'none'."),
        (NamedJudge("openai/judge", scale="1-99"), InvalidParameter, "The judge cannot be asked so"),
        (NamedJudge("openai/judge", "preference"), InvalidParameter, "compares two answers"),
        (NamedJudge("openai/a\0b"), InvalidParameter, "holds a NUL character"),
    ],
)
async def test_a_judge_that_would_be_refused_refuses_the_order(
    judge: NamedJudge, kind: type[DomainError], sentence: str
) -> None:
    harness = SchedulerHarness()
    with pytest.raises(kind, match=sentence):
        await harness.submit(toy_order(judges=(JUDGE, judge)))
    assert not harness.runs.runs


async def test_a_judge_that_is_refused_later_is_noted_on_the_run_and_holds_no_other() -> None:
    harness = SchedulerHarness()
    run = await completed(harness, JUDGE, OTHER)
    # As if the pool of the first had been taken away since.
    gone = replace(run.order, judges=(NamedJudge("vllm/gone"), OTHER))
    harness.runs.runs[run.run_id] = replace(harness.runs.runs[run.run_id], order=gone)
    runs = RunsToJudge(harness)
    judges = SubmitJudges(runs, harness.submitting, harness.clock)
    await judges.submit_all(harness.runs.begin_term())
    assert runs.refused[run.run_id].startswith("The judge vllm/gone was not ordered: No pool serves")
    assert len(judging_runs(harness, run)) == 1


async def test_an_order_names_ten_judges_at_most() -> None:
    with pytest.raises(InvalidParameter, match="names 11 judges, but may name at most 10"):
        await SchedulerHarness().submit(toy_order(judges=(JUDGE,) * 11))
