"""The form of a run's page that lets a model judge its answers."""

from collections.abc import Mapping
from urllib.parse import urlencode

import pytest

from proctor.v1 import run_pb2
from services.common.errors import ErrorKind
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, Shown, running, show, summary_of
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
PART = {"HX-Request": "true", "HX-Request-Type": "partial"}
REQUEST = "00000000-0000-4000-8000-000000000001"
OTHER = "00000000-0000-4000-8000-000000000002"


@pytest.fixture(autouse=True)
def run(harness: GatewayHarness) -> run_pb2.Run:
    run = running(tasks=2)
    run.state = run_pb2.RUN_STATE_COMPLETED
    run.order.project_id = 3
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    return run


async def sent(harness: GatewayHarness, headers: Mapping[str, str] | None = None, **fields: str) -> Shown:
    body = urlencode({"request_id": REQUEST, **fields})
    path = f"/runs/{RUN_ID}/judges"
    return await show(harness, path, method="POST", headers={**FORM, **(headers or {})}, body=body)


async def test_what_is_entered_is_ordered_as_rest_orders_it(harness: GatewayHarness) -> None:
    ordered = await sent(harness, model=" openai/judge ", prompt="style", scale="1-5")
    [request] = harness.scheduler.submitted
    assert (request.request_id, request.order.model, request.order.project_id) == (REQUEST, "openai/judge", 3)
    assert request.order.judge == run_pb2.Judge(run_id=RUN_ID, prompt="style", scale="1-5")
    assert (ordered.status, ordered.headers["Location"].startswith("/runs/")) == (303, True)
    await sent(harness, model="openai/judge", prompt="preference", against="targets")
    await sent(harness, model="openai/judge", prompt="preference", against=OTHER)
    judges = [each.order.judge for each in harness.scheduler.submitted[1:]]
    assert [(each.against_target, each.against_run_id) for each in judges] == [(True, ""), (False, OTHER)]


async def test_a_refused_judge_is_shown_with_what_was_entered(harness: GatewayHarness) -> None:
    harness.scheduler.refusal = refused(ErrorKind.INVALID, "INVALID_PARAMETER", f"No pool serves {HOSTILE}.")
    part = await sent(harness, PART, model=HOSTILE, prompt="style")
    assert (part.status, "No pool serves" in part.html, "<img" in part.html) == (422, True, False)
    assert '<details id="judge-form" class="pad stores" open' in " ".join(part.html.split())
    whole = await sent(harness, model="openai/judge", prompt="style")
    assert whole.status == 303
    harness.scheduler.refusal = None
    shown = await show(harness, whole.headers["Location"].partition("#")[0])
    assert [a["value"] for _, a in shown.elements if a.get("name") == "model"] == ["openai/judge"]
    for wrong in ({"model": ""}, {"model": "a/b", "against": "other"}):
        assert (await sent(harness, PART, **wrong)).status == 422


async def test_a_judging_run_is_run_again_from_the_form(harness: GatewayHarness) -> None:
    judging = running()
    judging.run_id = OTHER
    judging.order.suite = ""
    judging.order.model = "openai/judge"
    judging.order.judge.CopyFrom(run_pb2.Judge(run_id=RUN_ID, prompt="style", scale="1-3"))
    harness.scheduler.put(judging)
    page = await show(harness, f"/runs/{OTHER}")
    [link] = [a["href"] for tag, a in page.elements if tag == "a" and "#judged" in (a.get("href") or "")]
    assert link == f"/runs/{RUN_ID}?judge=openai%2Fjudge&prompt=style&scale=1-3#judged"
    form = await show(harness, link.partition("#")[0])
    entered = {a["name"]: a.get("value") for tag, a in form.elements if tag == "input" and a.get("name")}
    assert (entered["model"], entered["scale"]) == ("openai/judge", "1-3")
    assert [a["value"] for tag, a in form.elements if tag == "option" and "selected" in a] == ["style"]
