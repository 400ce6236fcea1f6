"""Every page: its headers and weight, hostile text in it, and errors as pages for people."""

import base64
import json
import re

import pytest

from proctor.v1 import run_pb2
from services.common.errors import (
    DependencyUnavailable,
    DomainError,
    ErrorKind,
    ReadTooSlow,
    RemoteError,
    TooManyReads,
    TooManyRequests,
)
from services.gateway.http.error_handlers import problem_of
from services.gateway.http.errors import GatewayFull, GatewayHoldsTooMuch
from services.gateway.pages.asset_files import Assets
from services.gateway.pages.problems import CONTENT_SECURITY_POLICY, problem_view
from tests.contract.gateway.pages.rollouts.shown_rollouts import FIRST, ORDER_ID, put_rollouts
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, running, show, summary_of
from tests.fakes.gateway.compared_runs import two_models
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused

OTHER_ID = f"{RUN_ID[:-1]}2"
# One per line: every page has its address here.
PAGES = (
    "/",
    "/runs",
    "/runs/new",
    "/runs/new?model=vllm/starter&benchmark=suite:starter",
    f"/runs/{RUN_ID}",
    f"/runs/{RUN_ID}/results",
    f"/runs/{RUN_ID}/rescore",
    "/compare",
    f"/compare?run={RUN_ID}&run={OTHER_ID}",
    "/suites",
    "/suites/new",
    "/suites/starter",
    "/batches",
    "/batches/files",
    "/datasets",
    "/datasets/runs",
    "/imports",
    "/playground",
    "/runs/chosen",
    f"/runs/chosen?run={RUN_ID}&ask=delete",
    "/leaderboard",
    "/leaderboard/ratings",
    "/rollouts",
    f"/rollouts/{ORDER_ID}",
    f"/runs/{FIRST}/rollouts",
    f"/runs/{FIRST}/rollouts/0/1",
    f"/runs/{FIRST}/rollouts/1/1",
    "/models/vllm/Qwen/Qwen3-8B",
    "/queue",
    "/settings",
    "/audit",
)
MAX_BYTES = 130_000
MAX_REQUESTS = 7
PART = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture(autouse=True)
def runs(harness: GatewayHarness) -> None:
    run = running()
    harness.scheduler.ordered_models = [run.order.model]
    other = running()
    other.run_id = OTHER_ID
    for each in (run, other):
        harness.scheduler.put(each)
    harness.results.summaries[RUN_ID] = summary_of(run)
    harness.results.comparisons.comparison.CopyFrom(two_models())
    put_rollouts(harness)


@pytest.mark.parametrize("path", PAGES)
async def test_page_is_strict_light_and_not_kept(harness: GatewayHarness, path: str) -> None:
    shown = await show(harness, path, headers={"Accept-Encoding": "identity"})
    assert shown.status == 200
    assert shown.headers["Cache-Control"] == "no-store"
    named = {
        str(attributes.get("src") or attributes.get("href"))
        for tag, attributes in shown.elements
        if tag in {"script", "link"}
    }
    assets = Assets.load()
    sent = 0
    for url in named | set(_imported(named)):
        asset = assets.files[url.removeprefix(f"/assets/{assets.digest}/")]
        sent += len(asset.packed or asset.body)
    assert sent + len(shown.html) // 3 <= MAX_BYTES
    assert 1 + len(named | set(_imported(named))) <= MAX_REQUESTS


def _imported(urls: set[str]) -> list[str]:
    """Modules that modules import."""
    assets, found = Assets.load(), []
    for url in urls:
        body = assets.files[url.removeprefix(f"/assets/{assets.digest}/")].body
        if url.endswith(".js") and b"\nimport " in b"\n" + body:
            found += [assets.url(name) for name in re.findall(r'from "\./([\w.]+)"', body.decode())]
    return found


@pytest.mark.parametrize("path", [*PAGES, f"/runs/{RUN_ID[:-1]}9", "/nothing/here"])
async def test_every_response_of_a_page_has_the_policy(harness: GatewayHarness, path: str) -> None:
    headers = (await show(harness, path)).headers
    assert CONTENT_SECURITY_POLICY in headers.getall("Content-Security-Policy")
    # The last one counts: with none at all, forms would not say where they come from.
    assert headers.getall("Referrer-Policy")[-1] == "same-origin"
    assert "unsafe" not in CONTENT_SECURITY_POLICY


@pytest.mark.parametrize("path", ["/runs/nonsense", f"/runs/{RUN_ID[:-1]}9", "/nothing/here"])
async def test_unknown_address_says_so_and_leads_on(harness: GatewayHarness, path: str) -> None:
    shown = await show(harness, path)
    assert shown.status == 404
    assert "Not found" in shown.html
    assert 'href="/runs"' in shown.html


@pytest.mark.parametrize(
    ("path", "sentence", "promised"),
    [
        (
            f"/runs/{RUN_ID[:-1]}9",
            f"Run {RUN_ID[:-1]}9 not found.",
            f"Benchmark job {RUN_ID[:-1]}9 not found",
        ),
        ("/nothing/here", "No page has this address.", "Not Found"),
        (
            "/suites/nothing",
            "There is no such suite. Existing suites: ",
            "Invalid benchmark suite. Supported: ",
        ),
    ],
)
async def test_people_read_words_of_their_own_and_programs_the_promised_ones(
    harness: GatewayHarness, path: str, sentence: str, promised: str
) -> None:
    for headers in ({}, PART):
        shown = await show(harness, path, headers=headers)
        assert (sentence in shown.html, promised in shown.html) == (True, False)
    as_program = await show(harness, path, headers={"Accept": "application/json"})
    assert json.loads(as_program.html)["detail"].startswith(promised)


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("/runs?kind=suite&after=bad&tag=x", "/runs?kind=suite&amp;tag=x"),
        ("/runs?after=bad", "/runs"),
        ("/compare?suite=glue&choose=bad", "/compare?suite=glue&amp;choose=1"),
    ],
)
async def test_page_that_a_list_does_not_have_leads_to_its_first_one(
    harness: GatewayHarness, path: str, first: str
) -> None:
    sentence = "page_token is not one that this list gave. Start again without it."
    refusal = refused(ErrorKind.INVALID, "INVALID_PAGE_TOKEN", sentence)
    harness.results.entries.refusal_of_pages = harness.scheduler.refusal = refusal
    shown = await show(harness, path)
    assert shown.status == 400
    assert "This list has no such page" in shown.html
    assert "Start at its first page." in shown.html
    assert "cursor" not in shown.html
    assert "Try again" not in shown.html
    assert f'<a class="button main" href="{first}">First page</a>' in shown.html


async def test_error_of_a_part_is_a_notice_beside_the_page(harness: GatewayHarness) -> None:
    shown = await show(harness, "/runs/nonsense", headers=PART)
    assert (shown.status, shown.headers["HX-Retarget"]) == (404, "#notices")
    assert 'role="alert"' in shown.html
    assert "<html" not in shown.html


async def test_api_answers_as_before_below_its_paths(harness: GatewayHarness) -> None:
    shown = await show(harness, "/api/v1/benchmarking/results/nonsense")
    assert shown.headers["Content-Type"] == "application/problem+json"


async def test_backend_that_is_away_is_a_page_that_says_when_to_try_again(harness: GatewayHarness) -> None:
    await harness.stop_backends()
    shown = await show(harness, "/runs")
    assert shown.status == 503
    assert "Try again in" in shown.html
    assert shown.headers["Retry-After"]


@pytest.mark.parametrize(
    "error",
    [
        DependencyUnavailable(dependency="results"),
        TooManyReads(retry_after_seconds=2),
        ReadTooSlow(seconds=5.0, retry_after_seconds=2),
        GatewayFull(limit=512),
        GatewayHoldsTooMuch(limit=1024),
        TooManyRequests(user="ann", limit=100, retry_after_seconds=7),
        RemoteError(ErrorKind.EXHAUSTED, "QUEUE_FULL", "Queue is full. Please try again later.", {}),
    ],
    ids=lambda error: error.reason,
)
def test_a_page_says_once_when_to_try_again(error: DomainError) -> None:
    document = problem_of(error, "/runs", is_page_wanted=True).model_dump()
    view = problem_view(document, "")
    assert f"{view.sentence} {view.hint}".lower().count("again") == 1
    assert view.hint.startswith("Try again in ")


async def test_foreign_page_changes_nothing(harness: GatewayHarness) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {}):
        shown = await show(harness, f"/runs/{RUN_ID}/pause", method="POST", headers=headers)
        assert (shown.status, "Not allowed" in shown.html) == (403, True)
    assert harness.scheduler.runs[RUN_ID].state == run_pb2.RUN_STATE_RUNNING


async def test_own_form_acts_and_the_next_page_says_what_it_did(harness: GatewayHarness) -> None:
    own = {"Origin": harness.http, "Sec-Fetch-Site": "same-origin"}
    done = await show(harness, f"/runs/{RUN_ID}/pause", method="POST", headers=own)
    assert (done.status, done.headers["Location"]) == (303, f"/runs/{RUN_ID}")
    assert harness.scheduler.runs[RUN_ID].state == run_pb2.RUN_STATE_PAUSED
    cookie = done.headers["Set-Cookie"].partition(";")[0]
    shown = await show(harness, f"/runs/{RUN_ID}", headers={"Cookie": cookie})
    assert "The run is paused." in shown.html
    assert f'action="/runs/{RUN_ID}/resume"' in shown.html


async def test_form_that_comes_too_late_shows_the_run_with_the_reason(harness: GatewayHarness) -> None:
    harness.scheduler.runs[RUN_ID].state = run_pb2.RUN_STATE_COMPLETED
    own = {"Origin": harness.http}
    done = await show(harness, f"/runs/{RUN_ID}/cancel", method="POST", headers=own)
    cookie = done.headers["Set-Cookie"].partition(";")[0]
    shown = await show(harness, f"/runs/{RUN_ID}", headers={"Cookie": cookie})
    assert "is already completed" in shown.html


async def test_notice_that_no_page_wrote_is_not_shown(harness: GatewayHarness) -> None:
    deep, number = b"[" * 30_000, b'{"text": "x", "undo": 5}'
    packed = [base64.urlsafe_b64encode(each).decode() for each in (deep, number)]
    for forged in ("nonsense", "e30", "W10", packed[0]):
        shown = await show(harness, "/runs", headers={"Cookie": f"proctor_notice={forged}"})
        assert shown.status == 200
        assert 'class="notice"' not in shown.html
    assert (await show(harness, "/runs", headers={"Cookie": f"proctor_notice={packed[1]}"})).status == 200


@pytest.mark.parametrize("path", ["/runs", f"/runs/{RUN_ID}"])
async def test_hostile_text_is_text(harness: GatewayHarness, path: str) -> None:
    run = running()
    run.order.model, run.order.suite, run.user = f"vllm/{HOSTILE}", HOSTILE, HOSTILE
    run.progress.tasks[0].task = run.progress.phase = HOSTILE
    run.progress.failures[HOSTILE] = 3
    run.wait.blocked_by = run.error.message = HOSTILE
    harness.scheduler.put(run)
    for state in (run_pb2.RUN_STATE_RUNNING, run_pb2.RUN_STATE_FAILED):
        run.state = state
        shown = await show(harness, path)
        assert shown.status == 200
        assert "img" not in [tag for tag, _ in shown.elements]
        assert not any(name.startswith("on") for _, attributes in shown.elements for name in attributes)
        assert "\u202e" not in shown.html
        assert "\u200b" not in shown.html


async def test_theme_is_rendered_and_kept_in_a_cookie(harness: GatewayHarness) -> None:
    for theme in ("light", "dark"):
        shown = await show(harness, "/runs", headers={"Cookie": f"theme={theme}"})
        assert f'data-theme="{theme}"' in shown.html
    assert "data-theme" not in (await show(harness, "/runs", headers={"Cookie": 'theme="><b>'})).html


async def test_assets_are_kept_under_their_digest_and_found_under_another(harness: GatewayHarness) -> None:
    assets = Assets.load()
    now = await show(harness, assets.url("proctor.css"))
    assert (now.status, "immutable" in now.headers["Cache-Control"]) == (200, True)
    other = await show(harness, "/assets/0123456789ab/proctor.css")
    assert (other.status, other.headers["Cache-Control"]) == (200, "no-store")
    assert (await show(harness, "/assets/0123456789ab/../../settings.py")).status == 404


async def test_user_above_the_limit_of_requests_gets_a_page_that_says_when_to_try_again(
    harness: GatewayHarness,
) -> None:
    sentence = "User local has made the 100 requests of this minute. Try again in 7 s."
    harness.scheduler.refusal = refused(
        ErrorKind.EXHAUSTED, "TOO_MANY_REQUESTS", sentence, retry_after_seconds="7"
    )
    shown = await show(harness, "/runs")
    assert (shown.status, shown.headers["Retry-After"]) == (429, "7")
    assert "Too many requests" in shown.html


async def test_queue_shows_how_fast_providers_are_asked_and_what_they_allow(harness: GatewayHarness) -> None:
    rate = harness.scheduler.queue.queue.rates.add(pools=["remote"], requests_per_second=2.5, rate_limited=7)
    assert "not known" in (await show(harness, "/queue")).html
    rate.allowed_requests_per_second = 3
    rate.resume_at.GetCurrentTime()
    shown = await show(harness, "/queue")
    assert "not known" not in shown.html
    assert "paused for" in shown.html
    assert '<td class="num">7</td>' in shown.html
