"""Rollouts on pages: orders, the grid of rollouts, a trajectory step by step, hostile records."""

import json

import pytest

from proctor.v1 import rollout_service_pb2, run_pb2
from services.gateway.pages.rollouts.record import record_of
from tests.contract.gateway.pages.rollouts.shown_rollouts import FIRST, ORDER_ID, SECOND, put_rollouts, record
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, Shown, running, show
from tests.fakes.gateway.gateway_harness import GatewayHarness

PART = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture(autouse=True)
def order(harness: GatewayHarness) -> rollout_service_pb2.RolloutsOrder:
    return put_rollouts(harness)


def links(shown: Shown) -> list[str]:
    return [attributes.get("href") or "" for tag, attributes in shown.elements if tag == "a"]


@pytest.mark.usefixtures("order")
async def test_orders_lead_to_their_grids_and_are_pushed(harness: GatewayHarness) -> None:
    shown = await show(harness, "/rollouts?state=running&suite=mine@2&odd=1")
    assert f"/rollouts/{ORDER_ID}" in links(shown)
    assert "5 of 8" in shown.html
    assert 'hx-ws:connect="/rollouts/socket?state=running&amp;suite=mine%402&amp;build=' in shown.html
    [asked] = harness.scheduler.rollouts.listed
    assert (asked.suite, asked.state) == ("mine@2", run_pb2.RUN_STATE_RUNNING)
    here = PART | {"HX-Current-URL": f"{harness.http}/rollouts?state=running"}
    renewed = await show(harness, "/rollouts?state=running", headers=here)
    # A list that renews itself is not a step to go back to; other filters are one.
    assert "HX-Push-Url" not in renewed.headers
    assert (await show(harness, "/rollouts", headers=here)).headers["HX-Push-Url"] == "/rollouts"
    assert "<html" not in (await show(harness, "/rollouts", headers=PART)).html


async def test_a_model_that_works_on_some_tasks_has_no_rollouts_at_the_others(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    second = order.runs[1]
    second.order.row_rollouts.extend([0, 2])
    harness.scheduler.put(second)
    grid = await show(harness, f"/rollouts/{ORDER_ID}")
    assert ("5 of 6 rollouts" in grid.html, "up to 2 rollouts" in grid.html) == (True, True)
    assert grid.html.count("not ordered") == 1
    assert f"/runs/{SECOND}/rollouts/0/0" not in links(grid)
    assert (await show(harness, f"/runs/{SECOND}/rollouts/0/0")).status == 404
    one = await show(harness, f"/runs/{SECOND}/rollouts/1/0")
    assert f"/runs/{SECOND}/rollouts/1/1" in links(one)
    assert not any(link.startswith(f"/runs/{SECOND}/rollouts/0/") for link in links(one))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/rollouts", "proctor rollouts run CONFIG.toml"),
        ("/rollouts?suite=other", "Clear the filters"),
        ("/rollouts?after=9", "First page"),
    ],
)
async def test_a_list_without_orders_says_what_to_do(harness: GatewayHarness, path: str, said: str) -> None:
    harness.scheduler.rollouts.orders = []
    shown = await show(harness, path)
    assert (shown.status, said in shown.html) == (200, True)


@pytest.mark.parametrize("path", [f"/rollouts/{ORDER_ID}", f"/runs/{FIRST}"])
async def test_suspicions_are_beside_the_score(harness: GatewayHarness, path: str) -> None:
    summary = harness.results.summaries[FIRST]
    summary.answered, summary.failed = 4, 0
    summary.tasks[0].metrics.add(metric="unsuspected", mean=0.75, n=2)
    summary.tasks[0].metrics.add(metric="reward_unsuspected", mean=0.25, n=2)
    harness.results.outcomes[FIRST][0].scores["unsuspected"] = 0.0
    shown = await show(harness, path)
    assert "1 of 4 suspicious: score without them 0.250" in shown.html
    if path.startswith("/rollouts"):
        assert ">⚑</a>" in shown.html
        assert 'aria-label="rollout 0: right, suspicious"' in shown.html
        assert ">unsuspected<" not in shown.html


async def test_a_grid_has_every_rollout_with_its_outcome(harness: GatewayHarness) -> None:
    shown = await show(harness, f"/rollouts/{ORDER_ID}")
    cells = {
        attributes["href"]: attributes["class"]
        for tag, attributes in shown.elements
        if tag == "a"
        and "/rollouts/" in (attributes.get("href") or "")
        and "outcome" in (attributes.get("class") or "")
    }
    assert cells == {
        f"/runs/{FIRST}/rollouts/0/0": "outcome right",
        f"/runs/{FIRST}/rollouts/0/1": "outcome answered",
        f"/runs/{FIRST}/rollouts/1/0": "outcome wrong",
        f"/runs/{FIRST}/rollouts/1/1": "outcome failed",
        f"/runs/{SECOND}/rollouts/0/0": "outcome right",
        f"/runs/{SECOND}/rollouts/0/1": "outcome waits",
        f"/runs/{SECOND}/rollouts/1/0": "outcome waits",
        f"/runs/{SECOND}/rollouts/1/1": "outcome waits",
    }
    assert all(word in shown.html for word in (">25.0</a>", "verifier 1", "pass@2", "5 of 8 rollouts"))
    assert "suspicious:" not in shown.html
    # No text of an answer was asked for.
    assert all(request.is_brief for request in harness.results.outcomes_asked)
    assert "hx-ws:connect=" in shown.html
    assert 'id="stale"' in shown.html


async def test_a_score_has_one_form_wherever_it_is_shown(harness: GatewayHarness) -> None:
    """In the grids of an order and of a run, on the rollout's page, and in the viewer of answers."""
    for path in (
        f"/rollouts/{ORDER_ID}",
        f"/runs/{FIRST}/rollouts",
        f"/runs/{FIRST}/rollouts/0/1",
        f"/runs/{FIRST}/results?row=0.1",
    ):
        html = (await show(harness, path)).html
        assert (">25.0<" in html, "0.25<" in html) == (True, False), path


async def test_a_grid_that_is_over_is_not_renewed_and_leads_to_the_comparison(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    order.runs[1].state = run_pb2.RUN_STATE_COMPLETED
    shown = await show(harness, f"/rollouts/{ORDER_ID}")
    assert f"/compare?run={FIRST}&run={SECOND}&suite=mine" in links(shown)
    assert "hx-trigger" not in shown.html
    # A page that was live becomes the whole page of an order that is over.
    part = await show(harness, f"/rollouts/{ORDER_ID}", headers=PART)
    assert ('hx-trigger="load"' in part.html, "every" in part.html) == (True, False)


@pytest.mark.parametrize(
    ("typed", "asked"), [("mine@", "mine"), ("mine@x", "mine"), ("mine@2", "mine@2"), ("", "")]
)
async def test_a_name_is_looked_for_while_it_is_typed(
    harness: GatewayHarness, typed: str, asked: str
) -> None:
    shown = await show(harness, f"/rollouts?suite={typed}")
    assert (shown.status, harness.scheduler.rollouts.listed[-1].suite) == (200, asked)


async def test_many_tasks_are_shown_in_pages(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    order.task_ids.extend(f"task {number}" for number in range(3, 121))
    first = await show(harness, f"/rollouts/{ORDER_ID}")
    assert f"/rollouts/{ORDER_ID}?from=50" in links(first)
    last = await show(harness, f"/rollouts/{ORDER_ID}?from=100")
    assert ("task 101" in last.html, "task 120" in last.html, "task 100<" in last.html) == (True, True, False)
    assert harness.results.outcomes_asked[-1].first_sample == 100
    beyond = await show(harness, f"/rollouts/{ORDER_ID}?from=99999999999")
    assert "task 120" in beyond.html
    odd = await show(harness, f"/rollouts/{ORDER_ID}?from=x")
    assert odd.status == 200


async def test_a_run_leads_to_its_rollouts_and_they_to_it(harness: GatewayHarness) -> None:
    run = await show(harness, f"/runs/{FIRST}")
    assert f"/runs/{FIRST}/rollouts" in links(run)
    grid = await show(harness, f"/runs/{FIRST}/rollouts")
    assert {f"/runs/{FIRST}", f"/rollouts/{ORDER_ID}"} <= set(links(grid))
    assert SECOND not in grid.html
    harness.scheduler.put(running())
    assert f"/runs/{RUN_ID}/rollouts" not in links(await show(harness, f"/runs/{RUN_ID}"))


async def test_the_order_of_a_run_is_found_however_many_are_newer(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    for number in range(150):
        newer = rollout_service_pb2.RolloutsOrder(order_id=f"{RUN_ID[:-4]}{number:04}")
        newer.MergeFrom(
            rollout_service_pb2.RolloutsOrder(suite=order.suite, suite_version=order.suite_version)
        )
        harness.scheduler.rollouts.orders.insert(0, newer)
    grid = await show(harness, f"/runs/{FIRST}/rollouts")
    assert f"/rollouts/{ORDER_ID}" in links(grid)
    # Only the order of the run is read.
    assert harness.scheduler.rollouts.listed == []


async def test_a_run_that_was_ordered_by_itself_shows_no_order(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    """Its tasks are those of an order, its rollouts and its user are its own."""
    del order.runs[0]
    harness.scheduler.runs[FIRST].order.rollouts = 1
    harness.scheduler.runs[FIRST].user = "bea"
    shown = await show(harness, f"/runs/{FIRST}/rollouts")
    assert all(word in shown.html for word in ("mend-a-parser", "2 tasks × 1 rollout ", "by bea"))
    assert ORDER_ID not in shown.html
    assert (await show(harness, f"/runs/{FIRST}/rollouts/0/0")).status == 200


async def test_a_rollout_is_shown_whole(harness: GatewayHarness) -> None:
    shown = await show(harness, f"/runs/{FIRST}/rollouts/0/1")
    for word in (
        "submitted its work",
        "1 of 2 rubrics passed",
        "conftest.py steers pytest",
        "<ins>+new </ins>",
        "<del>-old </del>",
        "cat a.py",
        "Exit code: 0",
        "0 of 2",
        "no tests",
        "1 passed, 1 failed",
        "Mend it",
        "style",
    ):
        assert word in shown.html, word
    assert {f"/runs/{FIRST}/rollouts/0/0", f"/runs/{FIRST}/rollouts/1/0"} <= set(links(shown))
    [asked] = harness.results.outcomes_asked
    assert (asked.first_sample, asked.first_rollout, asked.page_size) == (0, 1, 1)


async def test_a_long_trajectory_comes_in_pages(harness: GatewayHarness) -> None:
    harness.results.outcomes[FIRST][0].outcome.answer.body_json = record(steps=120)
    path = f"/runs/{FIRST}/rollouts/0/0"
    first = await show(harness, path)
    assert f"{path}?step=51#trajectory" in links(first)
    assert ('id="step-50"' in first.html, 'id="step-51"' in first.html) == (True, False)
    last = await show(harness, f"{path}?step=101")
    assert ('id="step-120"' in last.html, f"{path}#trajectory" in links(last)) == (True, True)
    assert f"{path}?step=71#trajectory" in links(first)


async def test_long_texts_end_a_page_of_a_trajectory_sooner(harness: GatewayHarness) -> None:
    path = f"/runs/{FIRST}/rollouts/0/0"
    body = record("x" * 9_000, steps=6)
    harness.results.outcomes[FIRST][0].outcome.answer.body_json = body
    first = await show(harness, path)
    # A step of the agent has three texts.
    assert ('id="step-3"' in first.html, 'id="step-4"' in first.html) == (True, False)
    assert f"{path}?step=4#trajectory" in links(first)
    harness.results.outcomes[FIRST][0].outcome.answer.body_json = record("x" * 90_000, steps=3)
    alone = await show(harness, f"{path}?step=2")
    assert ('id="step-2"' in alone.html, f"{path}?step=3#trajectory" in links(alone)) == (True, True)


async def test_long_changes_and_output_of_tests_come_in_pages(harness: GatewayHarness) -> None:
    path = f"/runs/{FIRST}/rollouts/0/0"
    changed, printed = (
        "".join(f"{sign}{word} {number}.\n" for number in range(1, 1001))
        for sign, word in (("+", "row"), ("", "said"))
    )
    body = record(diff=changed, verifier_log=printed)
    harness.results.outcomes[FIRST][0].outcome.answer.body_json = body
    first = await show(harness, path)
    assert {f"{path}?diff=401#diff", f"{path}?log=401#log"} <= set(links(first))
    assert [text in first.html for text in ("row 400.", "row 401.", "said 400.", "said 401.")] == [
        True,
        False,
        True,
        False,
    ]
    assert "lines 1 to 400 of 1\u2009000" in first.html
    last = await show(harness, f"{path}?diff=801")
    assert [text in last.html for text in ("row 800.", "row 801.", "row 1000.")] == [False, True, True]
    assert f"{path}#diff" in links(last)
    assert f"{path}?diff=1001#diff" not in links(last)
    beyond = await show(harness, f"{path}?log=99999&diff=x")
    assert ("said 1000." in beyond.html, "row 1." in beyond.html) == (True, True)


async def test_long_lines_end_a_page_of_changes_sooner(harness: GatewayHarness) -> None:
    path = f"/runs/{FIRST}/rollouts/0/0"
    body = record(diff=f"+{'x' * 8_999}\n" * 6, verifier_log="y" * 90_000, steps=1)
    harness.results.outcomes[FIRST][0].outcome.answer.body_json = body
    shown = await show(harness, path)
    assert f"{path}?diff=3#diff" in links(shown)
    assert len(shown.html) < 30_000


async def test_changes_and_output_are_downloaded_whole_where_they_are_stored(harness: GatewayHarness) -> None:
    path, execution = f"/runs/{FIRST}/rollouts/0/1", "a" * 32
    stored = f"/api/v1/rollouts/runs/{FIRST}/0/1/artifacts/{execution}"
    answer = harness.results.outcomes[FIRST][1].outcome.answer
    answer.body_json = record(execution=execution, artifacts={"diff.patch": 9, "verifier.log": 9})
    assert {f"{stored}/diff.patch", f"{stored}/verifier.log"} <= set(links(await show(harness, path)))
    answer.body_json = record(execution=execution, artifacts={"diff.patch": 9})
    assert f"{stored}/verifier.log" not in links(await show(harness, path))
    for odd, artifacts in (("../../x", {"diff.patch": 9}), (execution, ["diff.patch"])):
        answer.body_json = record(execution=odd, artifacts=artifacts)
        assert not [link for link in links(await show(harness, path)) if "artifacts" in link]


async def test_a_rollout_has_one_number_in_addresses_and_on_all_pages(harness: GatewayHarness) -> None:
    """It counts from 0, as in the API and in the folders of rollouts."""
    grid = await show(harness, f"/runs/{FIRST}/rollouts")
    assert ("rollout 0: " in grid.html, "rollout 2: " in grid.html) == (True, False)
    assert "rollout 0, 2 in all " in (await show(harness, f"/runs/{FIRST}/rollouts/0/0")).html
    answers = await show(harness, f"/runs/{FIRST}/results?row=0.0")
    assert '<span class="muted">rollout 0</span>' in answers.html
    assert "</code>, rollout 0</dd>" in answers.html


async def test_a_failed_rollout_says_that_it_is_no_score(harness: GatewayHarness) -> None:
    shown = await show(harness, f"/runs/{FIRST}/rollouts/1/1")
    assert "The tests gave no result" in shown.html
    assert "It is in no figure" in shown.html


async def test_a_rollout_that_goes_is_renewed_until_it_is_recorded(harness: GatewayHarness) -> None:
    path = f"/runs/{SECOND}/rollouts/1/0"
    waiting = await show(harness, path)
    assert "not recorded yet" in waiting.html
    assert f'hx-ws:connect="{path}/socket?' in waiting.html
    run = harness.scheduler.runs[SECOND]
    run.state = run_pb2.RUN_STATE_CANCELLED
    never = await show(harness, path, headers=PART)
    assert ("never recorded" in never.html, "hx-ws" in never.html) == (True, False)


@pytest.mark.parametrize(
    "path",
    [
        f"/rollouts/{RUN_ID}",
        "/rollouts/nonsense",
        f"/runs/{RUN_ID}/rollouts",
        f"/runs/{FIRST}/rollouts/2/0",
        f"/runs/{FIRST}/rollouts/0/2",
        f"/runs/{FIRST}/rollouts/-1/0",
        f"/runs/{FIRST}/rollouts/0/x",
        f"/runs/{FIRST}/rollouts/x/0",
        f"/runs/{FIRST}/rollouts/99999999999999999999/0",
    ],
)
async def test_what_is_not_there_is_said_to_be_not_found(harness: GatewayHarness, path: str) -> None:
    harness.scheduler.put(running())
    shown = await show(harness, path)
    assert (shown.status, "Not found" in shown.html) == (404, True)


@pytest.mark.parametrize(
    "path",
    ["/rollouts", f"/rollouts/{ORDER_ID}", f"/runs/{FIRST}/rollouts/0/1", f"/runs/{FIRST}/rollouts/1/1"],
)
async def test_hostile_text_stays_text(harness: GatewayHarness, path: str) -> None:
    put_rollouts(harness, HOSTILE)
    shown = await show(harness, path)
    assert shown.status == 200
    assert not [tag for tag, attributes in shown.elements if "onerror" in attributes or tag == "img"]
    assert '"/x"' not in [attributes.get("hx-get") for _, attributes in shown.elements]
    assert "\u202e" not in shown.html


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not JSON",
        "[1, 2]",
        "null",
        '{"rubrics": [], "rewards": {"a": "b", "c": true}, "suspicions": "x", "diff": 7, "trajectory": []}',
        '{"score": 1e400, "rubrics": {"a": null}, "trajectory": {"steps": [null, {"tool_calls": [1]}]}}',
        '{"trajectory": {"steps": [{"timestamp": "0001-01-01T00:00:00+00:00", "metrics": 3}]}}',
        '{"trajectory": {"steps": [{"observation": {"results": 1}, "message": ["x"]}]}}',
        "[" * 100_000,
    ],
)
async def test_a_record_of_another_form_breaks_no_page(harness: GatewayHarness, body: str) -> None:
    harness.results.outcomes[FIRST][0].outcome.answer.body_json = body
    assert (await show(harness, f"/runs/{FIRST}/rollouts/0/0")).status == 200


def test_a_command_is_not_shown_twice() -> None:
    call = {"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "ls\ncat a"}}
    step = {"source": "agent", "message": "I look.\n\n```bash\nls\ncat a\n```\n", "tool_calls": [call]}
    [read] = record_of(json.dumps({"trajectory": {"steps": [step]}})).steps
    assert (read.message, [action.command for action in read.actions]) == ("I look.", ["ls\ncat a"])


async def test_search_opens_an_order_by_its_id(harness: GatewayHarness) -> None:
    found = await show(harness, f"/search?q={ORDER_ID}")
    assert found.headers["Location"] == f"/rollouts/{ORDER_ID}"
    assert (await show(harness, f"/search?q={FIRST}")).headers["Location"] == f"/runs/{FIRST}"
