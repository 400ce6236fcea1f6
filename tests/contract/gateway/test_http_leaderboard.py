"""Leaderboard and history over a socket: promised fields, ties, reasons, no number where there is none."""

import pytest

from proctor.v1 import leaderboard_pb2, run_pb2, summary_pb2
from services.common.errors import ErrorKind
from tests.fakes.gateway.backend_services import refused
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call

API = "/api/v1/benchmarking"
RUN = "7f0b1c9e-5a8e-4c57-9a3e-0d8f4b2a6c11"


def entry(model: str, rank: int, score: float) -> leaderboard_pb2.LeaderboardEntry:
    figure = summary_pb2.MetricFigure(
        metric="acc", mean=score, ci_low=score - 0.1, ci_high=score + 0.1, n=500
    )
    return leaderboard_pb2.LeaderboardEntry(
        rank=rank,
        model=model,
        run_id="r1",
        figure=figure,
        task_count=8,
        benchmark="glue",
        scoring_method=run_pb2.SCORING_METHOD_LOGLIKELIHOOD,
        state=run_pb2.RUN_STATE_COMPLETED,
    )


async def test_leaderboard_has_the_promised_fields(harness: GatewayHarness) -> None:
    leaderboard = harness.results.entries.leaderboard
    first = entry("vllm/Qwen/Qwen3-0.6B", 1, 0.5)
    first.tied_with.append("vllm/b")
    first.not_compared_with.append("ollama/c")
    first.trend.direction, first.trend.previous_run_id = leaderboard_pb2.TREND_DIRECTION_UP, "r0"
    first.trend.difference = 0.25
    first.closed_at.FromSeconds(1_700_000_000)
    leaderboard.entries.extend([first, entry("vllm/b", 1, 0.4), entry("ollama/c", 1, 0.4)])
    leaderboard.unranked.add(model="vllm/c", run_id="r3", unranked_because=["limit 100"])
    leaderboard.baselines.add(model="baseline/majority")
    leaderboard.total_models, leaderboard.metric = 1, "acc"
    leaderboard.scoring_method = run_pb2.SCORING_METHOD_LOGLIKELIHOOD
    leaderboard.last_updated.FromSeconds(1_700_000_000)
    status, body, _ = await call(
        harness, "GET", f"{API}/leaderboard?suite=glue&metric=accuracy&limit=5&best=true"
    )
    assert status == 200
    top, _, third = body["leaderboard"]
    promised = {"rank": 1, "model": "Qwen/Qwen3-0.6B", "score": 0.5, "provider": "vllm"}
    promised |= {"benchmark_count": 8, "ci95": [0.4, 0.6], "tied_with": ["b"], "trend": "up"}
    # Another provider's model has the name, too.
    promised |= {"not_compared_with": ["ollama/c"]}
    assert (third["model"], third["provider"]) == ("ollama/c", "ollama")
    assert {name: top[name] for name in promised} == promised
    assert top["trend_details"] == {"difference": 0.25, "p_value": None, "previous_job_id": "r0"}
    assert (body["total_models"], body["last_updated"]) == (1, "2023-11-14T22:13:20Z")
    assert (body["scoring_method"], body["metric"]) == ("loglikelihood", "acc")
    [unranked], [baseline] = body["unranked"], body["baselines"]
    assert (unranked["rank"], unranked["score"], unranked["unranked_because"]) == (None, None, ["limit 100"])
    assert (baseline["provider"], baseline["job_id"], baseline["trend"]) == ("baseline", None, None)
    [asked] = harness.results.entries.leaderboards_asked
    assert (asked.benchmark, asked.metric, asked.max_entries, asked.is_best) == ("glue", "accuracy", 5, True)
    assert not asked.HasField("num_fewshot")


async def test_a_leaderboard_of_limited_runs_says_so_and_ranks_them_where_they_are_included(
    harness: GatewayHarness,
) -> None:
    harness.results.entries.leaderboard.unranked.append(entry("vllm/a", 0, 0.5))
    harness.results.entries.leaderboard.note = "All runs of glue are limited."
    _, body, _ = await call(harness, "GET", f"{API}/leaderboard")
    assert body["note"] == "All runs of glue are limited."
    assert (await call(harness, "GET", f"{API}/leaderboard?include=limited"))[0] == 200
    assert (await call(harness, "GET", f"{API}/leaderboard?include=all"))[0] == 422
    asked = harness.results.entries.leaderboards_asked
    assert [one.includes_limited for one in asked] == [False, True]


async def test_conditions_of_a_run_are_asked_for_by_its_id(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    found.entries.append(entry("vllm/a", 1, 0.5))
    found.conditions.add(name="temperature", value="1.0")
    _, body, _ = await call(harness, "GET", f"{API}/leaderboard?like={RUN}")
    assert body["conditions"] == [{"name": "temperature", "value": "1.0"}]
    assert harness.results.entries.leaderboards_asked[-1].like_run_id == RUN


async def test_leaderboard_without_runs_is_empty(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "GET", f"{API}/leaderboard?suite=starter")
    assert status == 200
    assert (body["leaderboard"], body["total_models"], body["last_updated"]) == ([], 0, None)


async def test_leaderboard_is_of_glue_by_no_metric_in_particular_unless_asked_otherwise(
    harness: GatewayHarness,
) -> None:
    harness.results.entries.leaderboard.entries.append(entry("vllm/a", 1, 0.5))
    assert (await call(harness, "GET", f"{API}/leaderboard"))[0] == 200
    [asked] = harness.results.entries.leaderboards_asked
    assert (asked.benchmark, asked.metric, asked.max_entries) == ("glue", "", 10)


@pytest.mark.parametrize("path", ["leaderboard", "history", "results"])
async def test_suite_that_does_not_exist_is_not_found_and_one_without_runs_is_empty(
    harness: GatewayHarness, path: str
) -> None:
    status, body, _ = await call(harness, "GET", f"{API}/{path}?suite=nope")
    assert (status, body["reason"]) == (404, "UNKNOWN_SUITE")
    assert body["detail"].endswith("Supported: mine, starter")
    assert (await call(harness, "GET", f"{API}/{path}?suite=starter"))[0] == 200


async def test_runs_of_a_suite_that_was_removed_are_shown(harness: GatewayHarness) -> None:
    harness.results.entries.leaderboard.unranked.append(entry("vllm/a", 0, 0.5))
    harness.results.entries.page.total = 1
    assert (await call(harness, "GET", f"{API}/leaderboard?suite=gone"))[0] == 200
    assert (await call(harness, "GET", f"{API}/history?suite=gone"))[0] == 200


@pytest.mark.parametrize("path", ["leaderboard", "history", "results"])
async def test_version_of_a_suite_is_refused_where_runs_are_looked_for(
    harness: GatewayHarness, path: str
) -> None:
    status, body, _ = await call(harness, "GET", f"{API}/{path}?suite=mine@1")
    assert (status, body["reason"]) == (422, "INVALID_PARAMETER")
    assert body["detail"].endswith("name it mine.")


async def test_leaderboard_of_a_metric_that_no_model_has_is_refused(harness: GatewayHarness) -> None:
    harness.results.entries.refusal = refused(ErrorKind.INVALID, "UNKNOWN_METRIC", "No run has it.")
    status, body, _ = await call(harness, "GET", f"{API}/leaderboard?metric=beauty")
    assert (status, body["reason"]) == (400, "UNKNOWN_METRIC")


async def test_history_has_the_promised_fields(harness: GatewayHarness) -> None:
    page = harness.results.entries.page
    page.entries.append(entry("vllm/a", 0, 0.5))
    page.total, page.next_page_token = 12, "next"
    status, body, _ = await call(
        harness, "GET", f"{API}/history?model_name=vllm/a&days=7&limit=1&cursor=here"
    )
    assert status == 200
    assert (body["total_runs"], body["date_range"], body["next_cursor"]) == (12, "Last 7 days", "next")
    [run] = body["history"]
    assert (run["job_id"], run["status"], run["model_name"], run["provider"]) == (
        "r1",
        "completed",
        "a",
        "vllm",
    )
    assert run["benchmark_suite"] == "glue"
    assert (run["score"], run["unparsed_rate"], run["scoring_method"]) == (0.5, None, "loglikelihood")
    [asked] = harness.results.entries.pages_asked
    assert (asked.model, asked.days, asked.page_size, asked.page_token) == ("vllm/a", 7, 1, "here")


async def test_history_is_of_30_days_unless_asked_otherwise(harness: GatewayHarness) -> None:
    _, body, _ = await call(harness, "GET", f"{API}/history")
    assert body == {"history": [], "total_runs": 0, "date_range": "Last 30 days", "next_cursor": None}
    [asked] = harness.results.entries.pages_asked
    assert (asked.days, asked.metric) == (30, "")


@pytest.mark.parametrize(
    "path",
    [
        "leaderboard?scoring=generate",
        "leaderboard?limit=0",
        "leaderboard?limit=101",
        "leaderboard?scoring_method=magic",
        "history?days=0",
    ],
)
async def test_query_out_of_range_is_422(harness: GatewayHarness, path: str) -> None:
    assert (await call(harness, "GET", f"{API}/{path}"))[0] == 422


async def test_parameter_that_does_not_exist_is_named_beside_those_that_do(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "GET", f"{API}/leaderboard?suite=starter&scoring=generate")
    assert (status, body["reason"]) == (422, "INVALID_PARAMETER")
    [fault] = body["errors"]
    assert fault["field"] == "scoring"
    assert "scoring_method" in fault["message"]
    status, body, _ = await call(harness, "GET", f"{API}/results/r1?verbose=true")
    assert (status, body["errors"][0]["field"]) == (422, "verbose")


async def test_ratings_have_intervals_and_say_what_they_are_made_of(harness: GatewayHarness) -> None:
    found = harness.results.entries.ratings
    found.models.add(rank=1, model="vllm/a", rating=120, ci_low=80, ci_high=160, wins=30, ties=10, losses=5)
    found.models.add(
        rank=2, model="vllm/b", rating=-120, ci_low=-160, ci_high=-80, wins=5, ties=10, losses=30
    )
    found.unrated_models.append("vllm/c")
    found.prompt, found.prompt_version, found.matches, found.tie_odds = "preference", "1", 45, 0.5
    found.judges.append("openai/judge")
    found.judging_run_ids.append(RUN)
    found.style_effects.add(name="length", points=12, ci_low=4, ci_high=20)
    status, body, _ = await call(
        harness, "GET", f"{API}/ratings?suite=glue&prompt=preference&style_controlled=true&project_id=7"
    )
    assert status == 200
    first, second = body["ratings"]
    assert (first["rank"], first["model"], first["rating"], first["ci95"]) == (1, "vllm/a", 120, [80, 160])
    assert (second["wins"], second["ties"], second["losses"]) == (5, 10, 30)
    assert (body["unrated_models"], body["judging_jobs"], body["matches"]) == (["vllm/c"], [RUN], 45)
    assert (body["first_place_bias"], body["tie_odds"]) == (None, 0.5)
    assert body["style_effects"] == [{"name": "length", "points": 12, "ci95": [4, 20]}]
    [asked] = harness.results.entries.ratings_asked
    assert (asked.benchmark, asked.prompt, asked.project_id) == ("glue", "preference", 7)
    assert asked.is_style_controlled


async def test_ratings_of_a_suite_that_nobody_knows_are_refused(harness: GatewayHarness) -> None:
    assert (await call(harness, "GET", f"{API}/ratings?suite=unknown"))[0] == 404
    assert (await call(harness, "GET", f"{API}/ratings?suite=starter"))[0] == 200
