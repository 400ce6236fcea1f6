"""Name, tags and note of a run: ordered, listed, changed over REST and in place on its page."""

from typing import Any
from urllib.parse import urlencode

from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, running, show, summary_of
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call

API = "/api/v1/benchmarking"
ORDER = {"project_id": 1, "suite": "glue", "config": {"provider": "vllm", "model": "starter"}}
LABELS = {"name": "nightly", "tags": ["ci", "b c"], "note": "one\ntwo"}


async def stored(harness: GatewayHarness) -> None:
    run = running()
    run.labels.name, run.labels.note = "nightly", HOSTILE
    run.labels.tags.append("b c")
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)


def form(harness: GatewayHarness, **given: str) -> dict[str, Any]:
    headers = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"} | given
    return {"method": "POST", "headers": headers}


async def test_rest_orders_shows_lists_and_changes_labels(harness: GatewayHarness) -> None:
    _, started, _ = await call(harness, "POST", f"{API}/run", json=ORDER | LABELS)
    job_id = started["job_id"]
    _, shown, _ = await call(harness, "GET", f"{API}/results/{job_id}")
    assert {name: shown[name] for name in LABELS} == LABELS
    _, changed, _ = await call(
        harness,
        "PATCH",
        f"{API}/results/{job_id}",
        json={"name": "weekly", "added_tags": ["new"], "removed_tags": ["ci"]},
    )
    assert changed == {"name": "weekly", "tags": ["b c", "new"], "note": "one\ntwo"}
    _, listed, _ = await call(harness, "GET", f"{API}/results", params={"name": "wee", "tag": "new"})
    assert (listed["results"][0]["name"], listed["results"][0]["tags"]) == ("weekly", ["b c", "new"])
    asked = harness.scheduler.listed[-1]
    assert (asked.name, asked.tag) == ("wee", "new")


async def test_rest_refuses_a_name_that_is_too_long(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "POST", f"{API}/run", json=ORDER | {"name": "x" * 121})
    assert (status, "name" in body["detail"]) == (422, True)


async def test_page_shows_labels_as_text_and_saves_them_without_a_script(harness: GatewayHarness) -> None:
    await stored(harness)
    shown = await show(harness, f"/runs/{RUN_ID}")
    assert "nightly" in shown.html
    assert 'href="/runs?tag=b%20c"' in shown.html
    assert "<img src=x" not in shown.html
    body = urlencode({"name": "weekly", "tags": "x, y,x", "note": ""})
    saved = await show(harness, f"/runs/{RUN_ID}/labels", body=body, **form(harness))
    assert (saved.status, saved.headers["Location"]) == (303, f"/runs/{RUN_ID}")
    labels = harness.scheduler.runs[RUN_ID].labels
    assert (labels.name, [*labels.tags], labels.note) == ("weekly", ["x", "y"], "")


async def test_script_gets_the_part_again_with_what_is_wrong(harness: GatewayHarness) -> None:
    await stored(harness)
    part = form(harness, **{"HX-Request": "true", "HX-Request-Type": "partial"})
    body = urlencode({"name": "x" * 121, "tags": "kept"})
    refused = await show(harness, f"/runs/{RUN_ID}/labels", body=body, **part)
    assert (refused.status, "name is too long." in refused.html, 'value="kept"' in refused.html) == (
        422,
        True,
        True,
    )
    assert "<html" not in refused.html
    saved = await show(harness, f"/runs/{RUN_ID}/labels", body=urlencode({"name": "short"}), **part)
    assert (saved.status, "short" in saved.html, 'id="labels"' in saved.html) == (200, True, True)


async def test_form_of_an_order_gives_the_run_its_labels(harness: GatewayHarness) -> None:
    order = "model=vllm/starter&benchmark=suite:starter&name=nightly&tags=ci,%20b&note=why"
    shown = await show(harness, f"/runs/new?{order}")
    assert 'value="nightly"' in shown.html
    await show(harness, "/runs/new", body=order, **form(harness))
    [submitted] = harness.scheduler.submitted
    labels = submitted.labels
    assert (labels.name, [*labels.tags], labels.note) == ("nightly", ["ci", "b"], "why")
    refused = await show(harness, "/runs/new", body=f"{order}{'x' * 200}&name={'n' * 121}", **form(harness))
    assert (refused.status, 'id="fault-name"' in refused.html) == (422, True)
