"""The form of an order: the choices of its address, and refusals that show before it is sent."""

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.common.errors import ErrorKind
from tests.contract.gateway.pages.shown_pages import Shown, show
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


async def test_an_order_that_would_be_refused_says_why_beside_the_estimate(harness: GatewayHarness) -> None:
    assert "would be refused" not in (await show(harness, f"/runs/new?{WHOLE}")).html
    wrong = await show(harness, f"/runs/new?{WHOLE}&temperature=hot")
    assert "As it is, the order would be refused: " in wrong.html


async def test_an_order_that_was_refused_has_an_estimate_again(harness: GatewayHarness) -> None:
    form = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    shown = await show(harness, "/runs/new", method="POST", headers=form, body=f"{WHOLE}&max_cost=x")
    assert (shown.status, "would be refused" in shown.html) == (422, True)


async def test_a_refusal_of_the_scheduler_is_said_beside_the_estimate(harness: GatewayHarness) -> None:
    harness.scheduler.refusal = refused(ErrorKind.INVALID, "UNKNOWN_MODEL", "No pool serves it.")
    shown = await show(harness, f"/runs/new?{WHOLE}")
    assert "As it is, the order would be refused: No pool serves it." in shown.html
