"""The leaderboard and the history: bands, reasons, totals, files, refused filters, hostile text."""

import asyncio
import csv
import io
from typing import Any

import aiohttp
import pyarrow.parquet as pq

from proctor.v1 import leaderboard_pb2, run_pb2, summary_pb2
from services.common.errors import ErrorKind
from services.gateway.http.paths import BENCHMARKING
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, Shown, show, socket
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused

PART = {"HX-Request": "true", "HX-Request-Type": "partial"}


def entry(model: str, rank: int, score: float, **facts: Any) -> leaderboard_pb2.LeaderboardEntry:
    figure = summary_pb2.MetricFigure(
        metric="acc",
        mean=score,
        ci_low=score - 0.05,
        ci_high=score + 0.05,
        n=500,
        interval_method="wilson",
    )
    return leaderboard_pb2.LeaderboardEntry(
        rank=rank,
        model=model,
        run_id=RUN_ID,
        figure=figure,
        benchmark="glue",
        state=run_pb2.RUN_STATE_COMPLETED,
        **facts,
    )


def text_of(shown: Shown, css_class: str) -> list[str]:
    """Of the cells with exactly this class."""
    return [each.partition("<")[0] for each in shown.html.split(f'class="{css_class}">')[1:]]


async def test_ties_are_a_band_and_their_rank_is_a_range(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    found.entries.extend([entry("vllm/a", 1, 0.9), entry("vllm/b", 2, 0.7), entry("vllm/c", 2, 0.68)])
    found.entries[1].tied_with.append("vllm/c")
    found.entries[1].not_compared_with.append("vllm/a")
    found.baselines.add(model="baseline/majority").figure.mean = 0.5
    found.total_models, found.metric = 3, "acc"
    shown = await show(harness, "/leaderboard?suite=glue")
    assert text_of(shown, "num muted rank") == ["1", "2–3", "2–3", "–"]
    assert [attributes.get("class") for tag, attributes in shown.elements if tag == "tbody"][:3] == [
        "band",
        "band",
        "baselines",
    ]
    assert 'aria-label="90.0, 95 % from 85.0 to 95.0"' in shown.html
    # The interval of the first is behind the figure of every row.
    assert shown.html.count('class="first-band"') == 4
    assert "Pairs without a significant difference" in shown.html


async def test_partial_runs_are_ranked_and_marked_where_no_run_is_whole(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    found.note = "No run of glue is whole, so partial runs are ranked: limit 5."
    found.entries.extend([entry("vllm/1", 1, 0.6), entry("vllm/2", 2, 0.5)])
    found.conditions.add(name="limit", value="5")
    found.conditions.add(name="missing tasks", value="none")
    found.total_models = 2
    shown = await show(harness, "/leaderboard?suite=glue")
    assert "No run of glue is whole, so partial runs are ranked: limit 5." in shown.html
    assert text_of(shown, "num muted rank") == ["1", "2"]
    assert shown.html.count('<span class="note-inline">limit 5') == 2
    file = await show(harness, "/leaderboard/export.csv?suite=glue")
    exported = list(csv.DictReader(io.StringIO(file.html)))
    assert [row["rank"] for row in exported] == ["1", "2"]


async def test_a_leaderboard_whose_pairs_are_still_compared_is_pushed_and_is_no_step_back(
    harness: GatewayHarness,
) -> None:
    found = harness.results.entries.leaderboard
    found.entries.extend([entry("vllm/a", 1, 0.9), entry("vllm/b", 1, 0.7)])
    found.total_models, found.pending_comparisons = 2, 1
    shown = await show(harness, "/leaderboard?suite=glue")
    [address] = [
        attributes["hx-ws:connect"] for _, attributes in shown.elements if "hx-ws:connect" in attributes
    ]
    assert (address or "").startswith("/leaderboard/socket?suite=glue&build=")
    assert "1 pair of models is still being compared" in shown.html
    part = {"HX-Request": "true", "HX-Request-Type": "partial"}
    here = part | {"HX-Current-URL": f"{harness.http}/leaderboard?suite=glue"}
    renewed = await show(harness, "/leaderboard?suite=glue", headers=here)
    assert "HX-Push-Url" not in renewed.headers
    there = part | {"HX-Current-URL": f"{harness.http}/leaderboard"}
    filtered = await show(harness, "/leaderboard?suite=glue", headers=there)
    assert filtered.headers["HX-Push-Url"] == "/leaderboard?suite=glue"
    async with asyncio.timeout(30), socket(harness, address or "") as ws:
        assert "1 pair of models" in await ws.receive_str(timeout=10)
        found.entries[1].rank, found.pending_comparisons = 2, 0
        last = ""
        while (message := await ws.receive(timeout=10)).type is aiohttp.WSMsgType.TEXT:
            last = message.data
        # The page becomes one that nothing pushes.
        assert ('hx-trigger="load"' in last, "still being compared" in last) == (True, False)
        assert ws.close_code == 1000
    over = await show(harness, "/leaderboard?suite=glue")
    assert ('id="live"' in over.html, 'hx-trigger="load"' in over.html) == (False, False)


async def test_scores_are_shown_against_what_the_answers_cost(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    found.entries.extend([entry("vllm/a", 1, 0.9), entry(HOSTILE, 2, 0.7)])
    found.total_models = 2
    found.entries[1].run_id = f"{RUN_ID[:-1]}2"
    for number, one in enumerate(found.entries, 1):
        summary = summary_pb2.RunSummary(answered=1000, cost=0.5 / number)
        summary.price.currency = "EUR"
        harness.results.summaries[one.run_id] = summary
    shown = await show(harness, "/leaderboard?suite=glue&against=cost")
    dots = [tag for tag, attributes in shown.elements if attributes.get("class") == "dot"]
    assert dots == ["circle", "circle"]
    assert "0.25 EUR" in shown.html
    assert shown.html.count("best for its cost") == 2
    assert "<img" not in shown.html
    assert "No ranked model has a time" in (await show(harness, "/leaderboard?suite=glue&against=time")).html
    # The API has no such view.
    links = [attributes.get("href") or "" for _, attributes in shown.elements]
    [api] = [link for link in links if link.startswith("/api/")]
    assert "against" not in api


async def test_model_that_moved_leads_to_its_previous_run(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    for rank, change in enumerate((0.011, -0.02), 1):
        found.entries.append(entry(f"vllm/{rank}", rank, 1 - rank / 4))
        trend = found.entries[-1].trend
        trend.previous_run_id, trend.difference = RUN_ID, change
        trend.direction = leaderboard_pb2.TREND_DIRECTION_UP
    found.entries[1].trend.direction = leaderboard_pb2.TREND_DIRECTION_STEADY
    shown = await show(harness, "/leaderboard?suite=glue")
    assert "▲ +1.1</a>" in shown.html
    assert "≈ −2.0</a>" in shown.html
    assert 'aria-label="Higher than the previous run: +1.1"' in shown.html


async def test_unknown_suite_is_not_found(harness: GatewayHarness) -> None:
    shown = await show(harness, "/leaderboard?suite=zzz")
    assert shown.status == 404
    assert "zzz" in shown.html


async def test_rank_of_the_last_band_is_open_where_more_models_may_share_it(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    found.entries.extend([entry("vllm/a", 1, 0.9), entry("vllm/b", 2, 0.7)])
    found.total_models = 40
    shown = await show(harness, "/leaderboard?suite=glue")
    assert text_of(shown, "num muted rank") == ["1", "2+"]
    assert 'href="/leaderboard?suite=glue&amp;limit=100"' in shown.html


async def test_first_models_are_as_many_as_are_chosen(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    found.entries.append(entry("vllm/a", 1, 0.9))
    found.total_models = 40
    shown = await show(harness, "/leaderboard?suite=glue&limit=10")
    assert '<option value="10" selected>top 10</option>' in shown.html
    assert '<option value="">top 25</option>' in shown.html
    await show(harness, "/leaderboard?suite=glue&limit=7")
    asked = harness.results.entries.leaderboards_asked
    assert [each.max_entries for each in asked] == [10, 25]


async def test_name_filters_what_is_shown_and_changes_no_rank(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    found.entries.extend([entry("vllm/a", 1, 0.9), entry("openai/b", 2, 0.7), entry("openai/c", 2, 0.6)])
    found.total_models = 3
    assert text_of(await show(harness, "/leaderboard?q=OpenAI/c"), "num muted rank") == ["2–3"]
    assert "has this name" in (await show(harness, "/leaderboard?q=zzz")).html
    # A name may be behind the first 25.
    assert [asked.max_entries for asked in harness.results.entries.leaderboards_asked] == [100, 100]


async def test_unranked_models_have_their_reasons_and_limited_runs_a_link(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    found.unranked.append(entry("vllm/a", 0, 0.5, unranked_because=["limit 100", "5 shots"]))
    found.note = "All runs of glue are limited."
    shown = await show(harness, "/leaderboard?suite=glue&best=true")
    assert "limit 100; 5 shots" in shown.html
    assert f'href="/leaderboard?suite=glue&amp;best=true&amp;like={found.unranked[0].run_id}"' in shown.html
    assert "All runs of glue are limited." in shown.html
    await show(harness, "/leaderboard?suite=glue&include=limited&num_fewshot=5&scoring_method=generate")
    asked = harness.results.entries.leaderboards_asked[-1]
    assert (asked.includes_limited, asked.num_fewshot) == (True, 5)
    assert asked.scoring_method == run_pb2.SCORING_METHOD_GENERATE


async def test_conditions_of_a_run_are_asked_for_and_shown(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    found.entries.append(entry("vllm/a", 1, 0.5))
    found.conditions.add(name="temperature", value="1.0")
    found.conditions.add(name="seed", value="none")
    shown = await show(harness, f"/leaderboard?suite=glue&like={RUN_ID}")
    assert harness.results.entries.leaderboards_asked[-1].like_run_id == RUN_ID
    assert "temperature 1.0</p>" in shown.html
    assert f'<input type="hidden" name="like" value="{RUN_ID}">' in shown.html
    assert 'href="/leaderboard?suite=glue"' in shown.html


async def test_leaderboard_without_a_suite_is_that_of_the_newest_run(harness: GatewayHarness) -> None:
    harness.results.entries.page.entries.append(entry("vllm/a", 0, 0.5))
    harness.results.entries.page.entries[0].benchmark = "mmlu"
    shown = await show(harness, "/leaderboard?unknown=1&include=all&num_fewshot=many", headers=PART)
    assert (shown.status, shown.headers["HX-Push-Url"]) == (200, "/leaderboard?suite=mmlu")
    assert "<html" not in shown.html
    assert harness.results.entries.leaderboards_asked[0].benchmark == "mmlu"


async def test_refused_metric_is_said_on_the_page_with_its_filters(harness: GatewayHarness) -> None:
    sentence = "There is no metric zzz here; use one of acc."
    harness.results.entries.refusal = refused(ErrorKind.INVALID, "UNKNOWN_METRIC", sentence)
    shown = await show(harness, "/leaderboard?suite=glue&metric=zzz")
    assert shown.status == 422
    assert sentence in shown.html
    assert '<option value="zzz" selected>zzz</option>' in shown.html


async def test_ranking_as_a_file_has_what_the_page_has_and_no_formula(harness: GatewayHarness) -> None:
    found = harness.results.entries.leaderboard
    found.entries.extend([entry("=cmd()", 1, 0.9, tied_with=["vllm/b"]), entry("vllm/b", 1, 0.875)])
    found.entries[1].trend.previous_run_id, found.entries[1].trend.difference = RUN_ID, 0.0125
    found.unranked.append(entry("vllm/c", 0, 0.5, unranked_because=["limit 100", "5 shots"]))
    found.total_models = 2
    shown = await show(harness, "/leaderboard/export.csv?suite=glue")
    assert "leaderboard.csv" in shown.headers["Content-Disposition"]
    first, second, unranked = csv.DictReader(io.StringIO(shown.html))
    assert (first["rank"], first["model"], second["score"]) == ("1–2", "'=cmd()", "0.875")
    assert (first["tied_with"], second["change"], second["previous_run_id"]) == ("vllm/b", "0.0125", RUN_ID)
    assert (unranked["rank"], unranked["unranked_because"]) == ("", "limit 100; 5 shots")
    url = f"{harness.http}/leaderboard/export.parquet?suite=glue"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        parquet = pq.read_table(io.BytesIO(await response.read())).to_pylist()
    assert [(row["rank"], row["score"]) for row in parquet] == [("1–2", 0.9), ("1–2", 0.875), ("", 0.5)]


async def test_api_takes_the_filters_of_the_leaderboard(harness: GatewayHarness) -> None:
    harness.results.entries.leaderboard.entries.append(entry("vllm/a", 1, 0.9))
    filters = "suite=glue&metric=acc&scoring_method=generate&num_fewshot=5&best=true&include=limited&q=a"
    shown = await show(harness, f"/leaderboard?{filters}")
    [link] = [
        str(attributes["href"])
        for tag, attributes in shown.elements
        if tag == "a" and str(attributes.get("href")).startswith(BENCHMARKING)
    ]
    given = await show(harness, link)
    assert (given.status, given.headers["Content-Type"]) == (200, "application/json")
    assert all(f"{name}=" in link for name in ("suite", "metric"))


async def test_hostile_text_is_text(harness: GatewayHarness) -> None:
    hostile = entry(f"vllm/{HOSTILE}", 1, 0.5, tied_with=[HOSTILE], dataset_name=HOSTILE)
    other = entry(HOSTILE, 0, 0.5, unranked_because=[HOSTILE])
    harness.results.entries.leaderboard.entries.append(hostile)
    harness.results.entries.leaderboard.unranked.append(other)
    harness.results.entries.leaderboard.note = HOSTILE
    shown = await show(harness, "/leaderboard?suite=glue")
    assert shown.status == 200
    assert "img" not in [tag for tag, _ in shown.elements]
    assert not any(name.startswith("on") for _, attributes in shown.elements for name in attributes)
    assert not {"\u202e", "\u200b"} & set(shown.html)


async def test_figure_says_what_its_interval_covers(harness: GatewayHarness) -> None:
    found = entry("vllm/a", 1, 0.9)
    found.closed_at.FromSeconds(1_700_000_000)
    harness.results.entries.leaderboard.entries.append(found)
    harness.results.entries.page.entries.append(found)
    for path in ("/leaderboard?suite=glue", "/"):
        assert 'title="95 % interval by wilson, n = 500"' in (await show(harness, path)).html
