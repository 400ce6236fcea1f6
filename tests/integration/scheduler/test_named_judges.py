"""Judges that orders and suites name: what is refused later, and what a repeated order is answered with."""

from dataclasses import replace
from uuid import uuid4

import grpc
import pytest

from proctor.v1 import outcome_pb2
from proctor.values.judging.named_judge import NamedJudge
from proctor.values.run import RunCounts, RunId, RunState
from proctor.values.usage import NO_TOKENS
from services.common.postgres import PostgresSession
from services.scheduler.audit.audit_record import Action, ObjectKind
from services.scheduler.audit.postgres import PostgresAudit
from services.scheduler.planning.grpc_answers import GrpcAnswers
from services.scheduler.postgres import QUERIES
from services.scheduler.runs.lifecycle.errors import RequestIdTaken
from services.scheduler.runs.lifecycle.postgres_led import PostgresLedRuns
from services.scheduler.runs.lifecycle.run import RunFinish
from services.scheduler.runs.lifecycle.submit_judges import SubmitJudges
from tests.fakes.gateway.backend_services import FakeResults, results_server
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness
from tests.fakes.scheduler.stores import add, admit, empty_stores, new_run


async def test_refusal_is_a_change_of_the_run_and_is_not_tried_again() -> None:
    async with scheduler_database() as pool:
        stores, session = await empty_stores(pool), PostgresSession(pool, QUERIES)
        order = new_run(judges=(NamedJudge("vllm/gone"),))
        run, token = await add(stores, order), await stores.begin_term()
        await admit(stores, token)
        harness = SchedulerHarness()
        counts = RunCounts(1, (), {}, {}, NO_TOKENS)
        finish = RunFinish(RunState.COMPLETED, harness.clock.now(), counts=counts)
        assert await stores.led.finish(token, run, finish)
        submit = replace(harness.submitting, runs=stores.runs)
        judges = SubmitJudges(PostgresLedRuns(session), submit, harness.clock)
        for _ in range(2):
            await judges.submit_all(token)
        changes = (
            await PostgresAudit(session).page(10, None, object_id=run.run_id, kind=ObjectKind.RUN)
        ).changes
        [refused] = [change for change in changes if change.action is Action.REFUSE]
        assert refused.detail.startswith("The judge vllm/gone was not ordered: No pool serves the model")
        assert await judges.runs.to_judge() == []


async def test_repeated_order_is_answered_with_the_first_run_though_its_suite_has_other_judges_now() -> None:
    async with scheduler_database() as pool:
        runs, request, known = (await empty_stores(pool)).runs, str(uuid4()), NamedJudge("openai/judge")
        first = await runs.add(new_run(judges=(known,), has_judges_of_suite=True), request)
        again = new_run(judges=(NamedJudge("openai/other", "style"),), has_judges_of_suite=True)
        assert await runs.add(again, request) == first
        for other in (new_run(judges=(known,)), new_run(without_judges=True)):
            with pytest.raises(RequestIdTaken):
                await runs.add(other, request)


async def test_several_targets_are_shown_to_a_judge_as_alternatives() -> None:
    run_id, results = RunId(str(uuid4())), FakeResults()
    answered = outcome_pb2.Outcome(answer=outcome_pb2.Answer(text="It is Paris."))
    named = [("Paris | Lutetia", ["Paris", " Lutetia", "Paris"]), ("Paris | ", ["Paris", ""]), ("Oslo", [])]
    results.outcomes[run_id] = [
        outcome_pb2.RecordedOutcome(outcome=answered, target=target, targets=targets)
        for target, targets in named
    ]
    async with (
        results_server(results) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        [judged] = [page async for page in GrpcAnswers(channel).pages(run_id)]
    assert [each.target for each in judged] == ["Any of:\n- Paris\n- Lutetia", "Paris", "Oslo"]
