"""Orders of judges, and the samples that planning makes of a run's answers."""

import json
from dataclasses import replace

import pytest

from proctor.values.run import RunId, RunState
from proctor.values.scoring import MetricUse
from services.common.errors import InvalidParameter, RunNotFound
from services.scheduler.judging.errors import RunNotEnded
from services.scheduler.judging.judge import Judge
from services.scheduler.judging.judged_answer import JudgedAnswer
from services.scheduler.planning.grpc_results import facts_to_proto, task_to_proto
from services.scheduler.planning.ports import TaskToOpen
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.rendering.sample import RenderedSample
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order

CONSTRAINED = "vllm/starter"


async def judged_run(harness: SchedulerHarness, answers: int = 7, rollouts: int = 1) -> RunId:
    run, driver = await harness.start(toy_order(limit=2, rollouts=rollouts))
    assert (await harness.finish(run.run_id, driver)).state is RunState.COMPLETED
    harness.answers.by_run[run.run_id] = [
        JudgedAnswer(at // rollouts, at % rollouts, 100 + at, f"{at}?", f"t{at}", f"a{at}")
        for at in range(answers)
    ]
    return run.run_id


def judging(run_id: str, **changes: object) -> RunOrder:
    """`changes` are those of the judge, then of the order."""
    names = ("prompt", "scale", "document", "against_run_id")
    of_judge = {name: str(changes.pop(name)) for name in names if name in changes}
    judge = Judge(run_id, of_judge.get("prompt", "correctness"), of_judge.get("scale", ""))
    judge = replace(
        judge,
        against_target=bool(changes.pop("against_target", False)),
        document=of_judge.get("document", ""),
        against_run_id=of_judge.get("against_run_id", ""),
    )
    return toy_order(**{"suite": "", "judge": judge, **changes})


async def planned(harness: SchedulerHarness, order: RunOrder) -> tuple[Run, list[RenderedSample]]:
    run, _ = await harness.start(order)
    await harness.tools.planner.plan(harness.fencing_token, run)
    [task] = await harness.runs.planned_tasks(run.run_id)
    return await harness.runs.get(run.run_id), harness.record.sets[task.sample_set_id]


async def test_each_answer_becomes_a_sample_of_one_task() -> None:
    harness = SchedulerHarness()
    judged = await judged_run(harness)
    run, samples = await planned(harness, judging(judged, rollouts=2))
    [task] = await harness.runs.planned_tasks(run.run_id)
    assert (task.task, task.version, task.sample_count, run.total) == ("correctness", "1", 7, 14)
    assert task.row_source == f"answers of run {judged}"
    assert task.generation
    assert task.generation.temperature == 1.0
    assert [sample.row_id for sample in samples] == [f"{at}.0" for at in range(7)]
    assert [sample.doc_id for sample in samples] == [100 + at for at in range(7)]
    document = {"sample": 3, "rollout": 0, "question": "3?", "target": "t3", "answer": "a3"}
    assert json.loads(samples[3].doc_json) == document
    text = samples[3].prompt.messages[0].content
    assert all(f"\n{part}\n[[end of" in text for part in ("3?", "t3", "a3"))
    assert not samples[3].params_json
    assert not samples[3].cluster


async def test_a_repeated_planning_makes_the_same_sample_set() -> None:
    harness = SchedulerHarness()
    judged = await judged_run(harness)
    sets = len(harness.record.sets)
    for _ in range(2):
        await planned(harness, judging(judged))
    assert len(harness.record.sets) == sets + 1


async def test_answers_to_one_sample_are_a_cluster() -> None:
    harness = SchedulerHarness()
    judged = await judged_run(harness, answers=4, rollouts=2)
    _, samples = await planned(harness, judging(judged))
    assert [(sample.row_id, sample.cluster) for sample in samples] == [
        ("0.0", "0"),
        ("0.1", "0"),
        ("1.0", "1"),
        ("1.1", "1"),
    ]


async def test_an_engine_that_takes_schemas_is_held_to_the_form_of_the_verdict() -> None:
    harness = SchedulerHarness()
    judged = await judged_run(harness)
    run, samples = await planned(harness, judging(judged, model=CONSTRAINED, scale="1-3"))
    assert run.order.judge
    assert run.order.judge.is_constrained
    schema = json.loads(samples[0].params_json)["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["verdict"] == {"type": "string", "enum": ["1", "2", "3"]}


async def test_the_prompt_its_version_and_the_scale_are_conditions_of_the_run() -> None:
    harness = SchedulerHarness()
    judged = await judged_run(harness)
    run, _ = await planned(harness, judging(judged, scale="1-3"))
    judge = run.order.judge
    assert judge
    assert (judge.prompt, judge.version, judge.scale, len(judge.digest)) == ("correctness", "1", "1-3", 64)
    assert judge.document.startswith("judge: correctness")
    found = await harness.tools.planner.tasks.find(run)
    opened = await harness.tools.planner.threads.run(found.tasks[0].open)
    message = task_to_proto(TaskToOpen(opened.planned, found.tasks[0].scoring, opened.facts), run)
    assert message.definition_digest == judge.digest
    [use] = found.tasks[0].scoring.metrics
    assert use == MetricUse("verdict", '{"labels": {"1": 0.0, "2": 0.5, "3": 1.0}}')
    facts = facts_to_proto(run, ())
    assert (facts.benchmark, facts.dataset_name) == (judged, f"correctness of {run.order.model} on toy")


async def test_a_limit_takes_the_first_answers() -> None:
    harness = SchedulerHarness()
    _, samples = await planned(harness, judging(await judged_run(harness), limit=4))
    assert len(samples) == 4


@pytest.mark.parametrize(
    ("answers", "reason"),
    [([], "ROWS_UNAVAILABLE"), ([JudgedAnswer(0, 0, 0, "q", "", "a")], "NO_TARGETS")],
)
async def test_a_run_whose_answers_cannot_be_judged_fails(answers: list[JudgedAnswer], reason: str) -> None:
    harness = SchedulerHarness()
    judged = await judged_run(harness)
    harness.answers.by_run[judged] = answers
    run, driver = await harness.start(judging(judged))
    failed = await harness.finish(run.run_id, driver)
    assert failed.state is RunState.FAILED
    assert failed.error
    assert failed.error.reason == reason


async def test_answers_are_compared_with_their_targets_in_both_orders() -> None:
    harness = SchedulerHarness()
    judged = await judged_run(harness)
    order = judging(judged, prompt="preference", against_target=True, limit=3)
    run, samples = await planned(harness, order)
    assert run.order.judge
    assert (run.order.judge.against_target, run.order.judge.scale) == (True, "first-second-tie")
    assert run.dataset_name.startswith("preference of openai/fake against targets")
    shown = [json.loads(sample.doc_json) for sample in samples]
    assert [(each["first"], each["second"]) for each in shown[:4]] == [
        ("a0", "t0"),
        ("t0", "a0"),
        ("a1", "t1"),
        ("t1", "a1"),
    ]
    assert [sample.row_id for sample in samples] == [
        f"{at}.0.{place}" for at in range(3) for place in ("first", "second")
    ]
    # The judge is not told which of the two is the target.
    assert "target" not in samples[0].prompt.messages[0].content


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"against_target": True, "prompt": "correctness"}, "prompt", "compares no two"),
        ({"against_target": True, "against_run_id": "RUN"}, "against_target", "name one"),
        ({}, "against_run_id", "compares two answers"),
    ],
)
async def test_a_comparison_that_names_no_other_answer_or_two_is_refused(
    changes: dict[str, object], field: str, said: str
) -> None:
    harness = SchedulerHarness()
    judged, other = [await judged_run(harness) for _ in range(2)]
    if "against_run_id" in changes:
        changes = changes | {"against_run_id": other}
    with pytest.raises(InvalidParameter, match=said) as refused:
        await harness.submit(judging(judged, **{"prompt": "preference", **changes}))
    assert refused.value.facts["field"] == f"order.judge.{field}"


@pytest.mark.parametrize("target", ["", " \n"])
async def test_an_answer_without_a_target_is_not_compared_with_it(target: str) -> None:
    harness = SchedulerHarness()
    judged = await judged_run(harness)
    harness.answers.by_run[judged] = [JudgedAnswer(0, 0, 0, "q", target, "a")]
    run, driver = await harness.start(judging(judged, prompt="preference", against_target=True))
    failed = await harness.finish(run.run_id, driver)
    assert failed.error
    assert failed.error.reason == "NO_TARGETS"


async def test_a_run_that_goes_on_is_not_judged_yet() -> None:
    harness = SchedulerHarness()
    run = await harness.submit(toy_order())
    with pytest.raises(RunNotEnded) as raised:
        await harness.submit(judging(run.run_id))
    assert raised.value.facts == {"run_id": run.run_id, "state": "pending"}


@pytest.mark.parametrize("run_id", ["", "x", "7b0a4a57-3f5c-4d9e-9d51-ffffffffffff"])
async def test_a_run_that_is_not_there_cannot_be_judged(run_id: str) -> None:
    with pytest.raises(RunNotFound):
        await SchedulerHarness().submit(judging(run_id))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"prompt": "none"}, "order.judge.prompt"),
        ({"scale": "1-99"}, "order.judge.scale"),
        ({"document": "judge: ["}, "order.judge.document"),
        ({"suite": "toy"}, "order.judge"),
        ({"num_fewshot": 0}, "order.num_fewshot"),
        ({"metrics": (MetricUse("exact_match"),)}, "order.metrics"),
        ({"tasks": ("say",)}, "order.tasks"),
    ],
)
async def test_an_order_of_a_judge_that_makes_no_sense_is_refused(
    changes: dict[str, object], field: str
) -> None:
    harness = SchedulerHarness()
    judged = await judged_run(harness)
    with pytest.raises(InvalidParameter) as raised:
        await harness.submit(judging(judged, **changes))
    assert raised.value.facts["field"] == field


async def test_two_runs_are_compared_in_both_orders() -> None:
    harness = SchedulerHarness()
    judged, against = await judged_run(harness), await judged_run(harness)
    others = [replace(each, answer=f"b{each.sample}") for each in harness.answers.by_run[against]]
    # Samples 1 and 6 have no other answer.
    harness.answers.by_run[against] = [each for each in others if each.sample not in (1, 6)]
    order = judging(judged, prompt="preference", against_run_id=against)
    run, samples = await planned(harness, order)
    assert run.order.judge
    assert (run.order.judge.scale, run.order.judge.against_run_id) == ("first-second-tie", against)
    numbers = [at for at in range(7) if at not in (1, 6)]
    places = [(at, place) for at in numbers for place in ("first", "second")]
    assert [sample.row_id for sample in samples] == [f"{at}.0.{place}" for at, place in places]
    assert [sample.target.texts for sample in samples] == [(place,) for _, place in places]
    assert [sample.cluster for sample in samples] == [str(at) for at, _ in places]
    for (at, place), sample in zip(places, samples, strict=True):
        text = sample.prompt.messages[0].content
        assert (text.index(f"\na{at}\n") < text.index(f"\nb{at}\n")) == (place == "first")
    found = await harness.tools.planner.tasks.find(run)
    assert [use.name for use in found.tasks[0].scoring.metrics] == ["preference", "verdict"]
    _, limited = await planned(harness, replace(order, limit=2))
    assert [sample.row_id for sample in limited] == ["0.0.first", "0.0.second", "2.0.first", "2.0.second"]


async def test_runs_over_other_samples_are_not_compared() -> None:
    harness = SchedulerHarness()
    judged, against = await judged_run(harness), await judged_run(harness)
    changed = [replace(each, digest=b"x") for each in harness.answers.by_run[against]]
    harness.answers.by_run[against] = changed
    run, driver = await harness.start(judging(judged, prompt="preference", against_run_id=against))
    failed = await harness.finish(run.run_id, driver)
    assert failed.error
    assert failed.error.reason == "NOT_COMPARABLE"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"prompt": "preference"}, "order.judge.against_run_id"),
        ({"prompt": "correctness", "against": True}, "order.judge.prompt"),
        ({"prompt": "preference", "against": True, "scale": "1-5"}, "order.judge.scale"),
    ],
)
async def test_a_prompt_of_pairs_takes_two_runs_and_no_scale(changes: dict[str, object], field: str) -> None:
    harness = SchedulerHarness()
    judged = await judged_run(harness)
    against = await judged_run(harness) if changes.pop("against", False) else ""
    with pytest.raises(InvalidParameter) as raised:
        await harness.submit(judging(judged, against_run_id=against, **changes))
    assert raised.value.facts["field"] == field
