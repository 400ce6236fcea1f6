"""Three models over one suite: what is proved of them, who leads, what is kept, through every door."""

import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from proctor.v1 import run_pb2
from tests.e2e.harness.entry_points import API, http, proctor
from tests.e2e.harness.run_ends import all_outcomes, completed
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness
from tests.harness.starter_model import SUITE as STARTER

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.thorough]

MODELS = ("fake", "other", "third")
TASKS = ("sentiment", "odd_one")


class Examined:
    """A stack that has examined each model once, by the model's name."""

    def __init__(self, stack: StackHarness, runs: dict[str, str]) -> None:
        self.stack = stack
        self.runs = runs


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def examined() -> AsyncIterator[Examined]:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(suites=(STARTER,), models=MODELS)) as stack:
            yield Examined(stack, {model: await completed(stack, order(model)) for model in MODELS})


def order(model: str, **changes: Any) -> run_pb2.RunOrder:
    return run_pb2.RunOrder(project_id=1, suite="starter", tasks=TASKS, model=f"openai/{model}", **changes)


async def right_answers(examined: Examined, model: str, task: str) -> dict[bytes, bool]:
    outcomes = await all_outcomes(examined.stack, examined.runs[model], task)
    return {item.digest: item.scores["acc"] == 1.0 for item in outcomes}


async def compare(examined: Examined, *models: str, **more: Any) -> Any:
    body = {"model_ids": [f"openai/{model}" for model in models], "benchmark_suite": "starter", "metrics": []}
    answer = await http(examined.stack, "POST", f"{API}/compare", json={**body, **more})
    assert answer.status == 200, answer.body
    return answer.body["comparison"]


async def test_a_comparison_counts_the_same_pairs_as_the_recorded_answers(examined: Examined) -> None:
    end = await proctor(examined.stack, f"compare {examined.runs['fake']} {examined.runs['other']} --json")
    assert end.code == 0, end.err
    differences = {one["task"]: one for one in end.document["differences"] if one.get("task")}
    for task in TASKS:
        first = await right_answers(examined, "fake", task)
        second = await right_answers(examined, "other", task)
        assert first.keys() == second.keys()
        only_first = sum(first[digest] and not second[digest] for digest in first)
        only_second = sum(second[digest] and not first[digest] for digest in first)
        counted = differences[task]
        assert int(counted["pairs"]) == len(first)
        assert (int(counted["only_first_right"]), int(counted["only_second_right"])) == (
            only_first,
            only_second,
        )
        assert counted["difference"] == pytest.approx((only_first - only_second) / len(first))
        assert counted["adjusted_p_value"] >= counted["p_value"]


async def test_rest_says_in_a_sentence_what_was_tested(examined: Examined) -> None:
    comparison = await compare(examined, *MODELS)
    assert comparison["models_compared"] == list(MODELS)
    assert "Holm" in comparison["statistical_significance"]
    assert comparison["recommendations"]


async def test_the_leaderboard_has_all_models_and_a_floor(examined: Examined) -> None:
    path = f"{API}/leaderboard?suite=starter&metric=accuracy"

    async def has_all() -> bool:
        listed = (await http(examined.stack, "GET", path)).body
        return len(listed["leaderboard"]) + len(listed["unranked"]) == len(MODELS)

    await eventually(has_all, "every model is listed")
    leaderboard = (await http(examined.stack, "GET", path)).body
    # A task was left out, so none of them can be ranked as a whole run of the suite.
    assert {entry["model"] for entry in leaderboard["unranked"]} == set(MODELS)
    assert all("addition" in " ".join(entry["unranked_because"]) for entry in leaderboard["unranked"])


async def test_whole_runs_are_ranked_and_ties_share_a_rank(examined: Examined) -> None:
    stack = examined.stack
    whole = [
        await completed(stack, run_pb2.RunOrder(project_id=1, suite="starter", model=f"openai/{model}"))
        for model in MODELS
    ]
    assert len(set(whole)) == 3

    async def leaderboard() -> Any:
        return (await http(stack, "GET", f"{API}/leaderboard?suite=starter&metric=accuracy")).body

    async def is_whole() -> bool:
        """Comparisons and baselines are added behind the close."""
        shown = await leaderboard()
        ranked = shown["leaderboard"]
        is_compared = not any(entry["not_compared_with"] for entry in ranked)
        return len(ranked) == 3 and is_compared and bool(shown["baselines"])

    await eventually(is_whole, "three models are ranked beside the baselines")
    ranked = (await leaderboard())["leaderboard"]
    assert [entry["score"] for entry in ranked] == sorted((entry["score"] for entry in ranked), reverse=True)
    assert ranked[0]["rank"] == 1
    for position, entry in enumerate(ranked, start=1):
        leader = ranked[entry["rank"] - 1]
        assert leader["rank"] == entry["rank"]
        assert (leader["model"] in entry["tied_with"]) == (position != entry["rank"])
    floor = {entry["model"]: entry["score"] for entry in (await leaderboard())["baselines"]}
    # Two choices in 200 rows, four in 160.
    assert floor["baseline/random"] == pytest.approx((200 * 0.5 + 160 * 0.25) / 360, abs=1e-9)


async def test_history_has_every_run_newest_first(examined: Examined) -> None:
    for name in ("openai/fake", "fake"):
        answer = await http(examined.stack, "GET", f"{API}/history?model_name={name}&days=30")
        assert answer.body["date_range"] == "Last 30 days"
        assert answer.body["total_runs"] == len(answer.body["history"]) >= 1
        assert {(run["provider"], run["model_name"]) for run in answer.body["history"]} == {
            ("openai", "fake")
        }


async def test_flips_are_the_samples_that_differ(examined: Examined) -> None:
    first = await right_answers(examined, "fake", "odd_one")
    second = await right_answers(examined, "other", "odd_one")
    line = f"compare {examined.runs['fake']} {examined.runs['other']} --flips odd_one --json"
    end = await proctor(examined.stack, line)
    assert end.code == 0, end.err
    flips = end.document["flips"]
    assert len(flips) == sum(first[digest] != second[digest] for digest in first)


async def test_an_export_has_every_outcome_once(examined: Examined, tmp_path: Path) -> None:
    run_id = examined.runs["fake"]
    file = tmp_path / "run.csv"
    end = await proctor(examined.stack, f"export {run_id} --format csv -o {file}")
    assert end.code == 0, end.err
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"), newline="")))
    assert len({(row["task"], row["doc_id"]) for row in rows}) == len(rows) == 360
    summary = await examined.stack.client.summary(run_id)
    for task in summary.tasks:
        scores = [float(row["score_acc"]) for row in rows if row["task"] == task.task]
        assert sum(scores) / len(scores) == pytest.approx(task.metrics[0].mean)


async def test_a_limited_run_is_compared_over_the_samples_it_shares(examined: Examined) -> None:
    limited = await completed(examined.stack, order("other", limit=50))
    end = await proctor(examined.stack, f"compare {examined.runs['fake']} {limited} --json")
    assert end.code == 0, end.err
    pairs = {one["task"]: int(one["pairs"]) for one in end.document["differences"] if one.get("task")}
    assert pairs == {"sentiment": 50, "odd_one": 50}
    [limit] = (one for one in end.document["conditions"] if one["name"] == "limit")
    assert limit["values"] == ["none", "50"]


async def test_runs_scored_in_different_ways_are_compared_only_when_forced(examined: Examined) -> None:
    spoken = await completed(examined.stack, order("other", scoring_method=run_pb2.SCORING_METHOD_GENERATE))
    line = f"compare {examined.runs['fake']} {spoken}"
    refused = await proctor(examined.stack, line)
    assert refused.code != 0
    assert "generate" in refused.err
    forced = await proctor(examined.stack, f"{line} --force --json")
    assert forced.code == 0, forced.err
    assert json.dumps(forced.document["warnings"]).count("generate")
