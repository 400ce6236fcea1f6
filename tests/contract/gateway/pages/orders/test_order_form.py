"""The form of an order: the options of its address, and refusals that show before it is sent."""

import re
import uuid
from urllib.parse import parse_qs, quote, urlsplit

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import run_pb2
from services.common.errors import ErrorKind
from tests.contract.gateway.pages.shown_pages import Shown, show
from tests.fakes.gateway.dataset_service import stored_dataset
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused

WHOLE = "model=vllm/starter&benchmark=suite:starter"
# Older than those that the form lists.
OLD = f"ds_{0:032x}"


def chosen(shown: Shown) -> list[str | None]:
    return [a.get("value") for tag, a in shown.elements if tag == "option" and "selected" in a]


async def test_a_data_set_that_is_not_among_the_newest_is_chosen_by_its_address(
    harness: GatewayHarness,
) -> None:
    for number in range(501):
        dataset_id = f"ds_{number:032x}"
        dataset = dataset_pb2.Dataset(dataset_id=dataset_id, name=f"rows-{number}.jsonl")
        harness.scheduler.datasets.kept[dataset_id] = dataset
    shown = await show(harness, f"/runs/new?benchmark=dataset:{OLD}")
    assert f"dataset:{OLD}" in chosen(shown)
    assert "rows-0.jsonl" in shown.html
    unknown = await show(harness, f"/runs/new?benchmark=dataset:ds_{'f' * 32}")
    assert unknown.status == 200


async def test_the_address_says_whether_answers_are_reused_and_streamed(harness: GatewayHarness) -> None:
    both = f"{WHOLE}&reuse_answers=1&stream_answers=1"
    shown = await show(harness, f"/runs/new?{both}")
    assert {a["name"] for tag, a in shown.elements if tag == "input" and "checked" in a} == {
        "reuse_answers",
        "stream_answers",
    }
    form = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    await show(harness, "/runs/new", method="POST", headers=form, body=both)
    [submitted] = harness.scheduler.submitted
    assert (submitted.order.reuse_answers, submitted.order.stream_answers) == (True, True)


async def test_an_order_that_would_be_refused_says_why_beside_the_estimate(harness: GatewayHarness) -> None:
    assert "would be refused" not in (await show(harness, f"/runs/new?{WHOLE}")).html
    wrong = await show(harness, f"/runs/new?{WHOLE}&temperature=hot")
    assert "As it is, the order would be refused: " in wrong.html
    assert 'href="#field-temperature">Temperature</a>: It must be a number.' in wrong.html
    assert 'id="fault-temperature">It must be a number.' in wrong.html


async def test_an_order_that_was_refused_has_an_estimate_again(harness: GatewayHarness) -> None:
    form = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    shown = await show(harness, "/runs/new", method="POST", headers=form, body=f"{WHOLE}&max_cost=x")
    assert (shown.status, "would be refused" in shown.html) == (422, True)


async def test_a_refusal_of_the_scheduler_is_said_beside_the_estimate(harness: GatewayHarness) -> None:
    harness.scheduler.refusal = refused(ErrorKind.INVALID, "UNKNOWN_MODEL", "No pool serves it.")
    shown = await show(harness, f"/runs/new?{WHOLE}")
    assert 'the order would be refused: <a href="#field-model">Model</a>: No pool serves it.' in shown.html
    assert 'id="fault-model">No pool serves it.' in shown.html


async def test_all_that_is_wrong_is_said_at_once_and_in_words_for_people(harness: GatewayHarness) -> None:
    form = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    body = "model=&custom={bad&temperature=9&limit=0&max_cost=-1&top_k=1.5&rollouts=1000&priority=soon"
    shown = await show(harness, "/runs/new", method="POST", headers=form, body=body)
    assert shown.status == 422
    said = dict(re.findall(r'id="fault-(\w+)">([^<]*)<', shown.html))
    assert said.pop("custom").startswith("This is not JSON")
    assert said == {
        "model": "Choose a model, or write one as provider/name.",
        "benchmark": "Choose a suite or a data set.",
        "temperature": "At most 2.",
        "limit": "At least 1.",
        "max_cost": "More than 0.",
        "top_k": "A whole number.",
        "rollouts": "At most 100.",
        "priority": "One of &#39;high&#39;, &#39;normal&#39; or &#39;low&#39;.",
    }


async def test_a_script_that_sent_an_order_goes_to_the_run_or_keeps_its_address(
    harness: GatewayHarness,
) -> None:
    sent = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    sent |= {"HX-Request": "true", "HX-Request-Type": "partial"}
    wrong = await show(harness, "/runs/new", method="POST", headers=sent, body=f"{WHOLE}&limit=0")
    assert (wrong.status, "<html" in wrong.html) == (422, False)
    assert (
        wrong.headers["HX-Replace-Url"] == "/runs/new?model=vllm%2Fstarter&benchmark=suite%3Astarter&limit=0"
    )
    done = await show(harness, "/runs/new", method="POST", headers=sent, body=WHOLE)
    assert (done.status, done.headers["HX-Redirect"].startswith("/runs/")) == (200, True)


async def test_several_models_are_a_run_each_with_a_tag_of_their_own(harness: GatewayHarness) -> None:
    sent = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    body = f"{WHOLE}&also=openai/a,%20vllm/starter,openai/b&tags=nightly&request_id={uuid.UUID(int=7)}"
    await show(harness, "/runs/new", method="POST", headers=sent, body=body)
    done = await show(harness, "/runs/new", method="POST", headers=sent, body=body)
    first, second, third, *again = harness.scheduler.submitted
    assert [each.order.model for each in (first, second, third)] == ["vllm/starter", "openai/a", "openai/b"]
    assert {each.order.suite for each in (first, second, third)} == {"starter"}
    assert len({each.request_id for each in (first, second, third, *again)}) == 3
    tags = {tuple(each.labels.tags) for each in (first, second, third)}
    assert tags == {("nightly", "order-000000000000")}
    assert (done.status, done.headers["Location"]) == (303, "/runs?tag=order-000000000000")


async def test_no_model_is_started_where_another_one_is_wrong(harness: GatewayHarness) -> None:
    sent = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    shown = await show(harness, "/runs/new", method="POST", headers=sent, body=f"{WHOLE}&also=starter")
    assert (shown.status, 'id="fault-also">Write starter as provider/name.' in shown.html) == (422, True)
    harness.scheduler.refusal = refused(ErrorKind.INVALID, "UNKNOWN_MODEL", "No pool serves it.")
    shown = await show(harness, "/runs/new", method="POST", headers=sent, body=f"{WHOLE}&also=openai/a")
    assert (shown.status, 'id="fault-also">openai/a: No pool serves it.' in shown.html) == (422, True)
    assert harness.scheduler.submitted == []


async def test_the_address_that_refused_limits_leave_leads_to_the_queue(harness: GatewayHarness) -> None:
    shown = await show(harness, "/queue/limits")
    assert (shown.status, shown.headers["Location"]) == (303, "/queue")


async def test_models_are_chosen_from_a_list_with_size_context_and_price(harness: GatewayHarness) -> None:
    price = run_pb2.ModelPrice(input_per_million=0.25, output_per_million=1.5, currency="USD")
    harness.scheduler.prices["vllm/starter"] = price
    shown = await show(harness, "/runs/new?benchmark=suite:starter&temperature=0.5&also=vllm/starter")
    offered = shown.html[shown.html.index('class="offered"') :]
    for part in ("15.4 MB", "1\u2009024", "0.25 USD", "1.50 USD", "The folder /none does not exist."):
        assert part in offered, part
    # Choosing one keeps what is entered, and one that is named already is not named twice.
    links = [a["href"] or "" for tag, a in shown.elements if tag == "a" and "hx-get" in a]
    chosen = [parse_qs(urlsplit(link).query) for link in links if link.startswith("/runs/new?")]
    kept = {"benchmark": ["suite:starter"], "temperature": ["0.5"], "also": ["vllm/starter"]}
    assert chosen == [kept | {"model": ["vllm/starter"]}, kept]


async def test_a_typed_name_that_its_provider_does_not_list_is_warned_of(harness: GatewayHarness) -> None:
    warning = "is not on the list of its provider"
    shown = await show(harness, "/runs/new?model=vllm/startr&benchmark=suite:starter")
    assert f"vllm/startr {warning}" in shown.html
    suggested = [a for tag, a in shown.elements if a.get("aria-label") == "Choose vllm/starter"]
    assert "model=vllm%2Fstarter" in (suggested[0]["href"] or "")
    # Of gemini, which gives no list now, nothing is known; "small" is another name of a model.
    for known in ("vllm/starter", "gemini/unlisted", "small"):
        shown = await show(harness, f"/runs/new?model={known}&benchmark=suite:starter")
        assert warning not in shown.html, known


async def test_exact_match_is_offered_where_there_are_targets_and_none_can_be_chosen(
    harness: GatewayHarness,
) -> None:
    for number, targets in enumerate((5, 0)):
        dataset = stored_dataset(f"ds_{number:032x}", name="rows.jsonl", target_count=targets)
        harness.scheduler.datasets.kept[dataset.dataset_id] = dataset
    assert "exact_match" in chosen(await show(harness, f"/runs/new?benchmark=dataset:ds_{0:032x}"))
    without = chosen(await show(harness, f"/runs/new?benchmark=dataset:ds_{1:032x}"))
    assert "exact_match" not in without
    none = chosen(await show(harness, f"/runs/new?benchmark=dataset:ds_{0:032x}&metric=none"))
    assert "exact_match" not in none
    given = await show(
        harness, f"/runs/new?benchmark=dataset:ds_{0:032x}&metric=" + quote('{"metric": "f1"}')
    )
    assert '{"metric": "f1"}' in chosen(given)
    form = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    for metric, names in (("none", []), ("contains", ["contains"])):
        body = f"model=vllm/starter&benchmark=dataset:ds_{0:032x}&metric={metric}"
        await show(harness, "/runs/new", method="POST", headers=form, body=body)
        assert [each.name for each in harness.scheduler.submitted[-1].order.metrics] == names
