"""A schedule by every API: added, fired, paused and deleted, and its run is an ordinary one."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proctor.v1 import run_pb2
from proctor.values.priority import Priority
from services.gateway.http.paths import SCHEDULES
from tests.e2e.harness.entry_points import http, proctor
from tests.e2e.harness.run_ends import ended
from tests.fakes.eventually import eventually
from tests.harness.keyed_suite import SUITE
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

OTHER = "openai/other"
# Once a year: the test says when.
CRON = "30 4 1 2 *"


async def make_due(stack: StackHarness, schedule_id: str) -> None:
    """As if its time had come."""
    async with stack.database() as database:
        await database.execute(
            "UPDATE scheduler.schedules SET next_due_at = now() - interval '1 s' WHERE schedule_id = $1",
            schedule_id,
        )


async def fired(stack: StackHarness, schedule_id: str, times: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def has_fired() -> bool:
        found[:] = (await http(stack, "GET", f"{SCHEDULES}/{schedule_id}")).body["firings"]
        return len(found) >= times

    await eventually(has_fired, f"the schedule has fired {times} times", 60)
    return found


async def test_schedule_is_added_on_the_command_line_and_fires(stack: StackHarness) -> None:
    order = f"--model {MODEL} --suite {SUITE} --limit 2 --name nightly --tag watch"
    added = await proctor(stack, f"schedule add --cron '{CRON}' --time-zone Europe/Vienna {order} --json")
    assert added.code == 0, added
    schedule = json.loads(added.out)["schedule"]
    schedule_id = schedule["schedule_id"]
    told = (await proctor(stack, f"schedule show {schedule_id}")).out
    assert "-02-01 03:30:00 UTC." in told, told
    assert schedule["next_due_at"].endswith("-02-01T03:30:00+00:00"), schedule
    shown = await http(stack, "GET", f"{SCHEDULES}/{schedule_id}")
    assert (shown.body["name"], shown.body["last_firing"], shown.body["firings"]) == ("nightly", None, [])
    assert shown.body["run"]["suite"] == SUITE
    await make_due(stack, schedule_id)
    [firing] = await fired(stack, schedule_id, 1)
    [run_id] = firing["run_ids"]
    run = await ended(stack, run_id)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    assert (run.order.priority, run.labels.name, [*run.labels.tags]) == (
        Priority.LOW.number,
        "nightly",
        ["watch"],
    )
    listed = await proctor(stack, "schedule show " + schedule_id)
    assert run_id in listed.out.replace("\n", ""), listed
    assert "nightly" in (await proctor(stack, "schedule list")).out
    page = await page_of(stack, f"/schedules/{schedule_id}")
    assert run_id in page
    assert "nightly" in await page_of(stack, "/schedules")


async def test_run_that_is_worse_than_its_base_fails_the_gate_and_is_told(
    stack: StackHarness, tmp_path: Path
) -> None:
    rows = "".join(
        json.dumps({"prompt": f"{number}. KEY=WHO", "target": f"The answer is {name}."}) + "\n"
        for number, name in enumerate(["fake"] * 40)
    )
    (tmp_path / "gated.jsonl").write_text(rows)
    # Nobody is there: what was told is in the ledger.
    added = await proctor(stack, "notices add webhook http://127.0.0.1:9/hook --on gate_failed --on drop")
    assert added.code == 0, added
    order = f"--dataset {tmp_path / 'gated.jsonl'} --metric exact_match --project 6"
    base = await proctor(stack, f"run --model {MODEL} {order} --json")
    base_id = json.loads(base.out)["run"]["run_id"]
    line = f"schedule add --cron '{CRON}' --model {OTHER} {order} --name gated --json"
    made = await proctor(stack, f"{line} --gate {base_id} --gate-margin 2pt")
    assert made.code == 0, made
    schedule = json.loads(made.out)["schedule"]
    await make_due(stack, schedule["schedule_id"])

    found: list[dict[str, Any]] = []

    async def is_gated() -> bool:
        found[:] = await fired(stack, schedule["schedule_id"], 1)
        return found[0]["verdict"] is not None

    await eventually(is_gated, "the run is gated", 120)
    assert (found[0]["verdict"], found[0]["base_run_id"]) == ("fail", base_id), found
    assert found[0]["gate_text"].startswith("Worse than its base by more than 2 points: "), found
    [told] = [
        each
        for each in json.loads((await proctor(stack, "notices sent --json")).out)["notices"]
        if "gated" in each["text"]
    ]
    assert (told["event"], found[0]["gate_text"] in told["text"]) == ("gate_failed", True), told
    assert "fail" in (await proctor(stack, f"schedule show {schedule['schedule_id']}")).out
    page = await page_of(stack, f"/schedules/{schedule['schedule_id']}")
    assert "Worse than its base" in page


async def page_of(stack: StackHarness, path: str) -> str:
    url = f"http://{stack.stack.gateway_http}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 200
        return await response.text()


async def test_what_rest_shows_can_be_posted_again(stack: StackHarness) -> None:
    run = {
        "suite": SUITE,
        "config": {"provider": "openai", "model": "fake"},
        "project_id": 3,
        "name": "weekly",
    }
    made = await http(stack, "POST", SCHEDULES, json={"cron": "0 3 * * MON", "run": run})
    assert made.status == 201, made.body
    again = await http(stack, "POST", SCHEDULES, json={"cron": made.body["cron"], "run": made.body["run"]})
    assert again.status == 201, again.body
    same = ("run", "cron", "time_zone", "next_due_at", "project_id", "model", "benchmark")
    assert {name: again.body[name] for name in same} == {name: made.body[name] for name in same}
    key = {"Idempotency-Key": "6b0b8f6e-9d0b-4f7e-8f4e-0d7a4d8d3b11"}
    twice = [
        await http(stack, "POST", SCHEDULES, json={"cron": "0 3 * * *", "run": run}, headers=key)
        for _ in range(2)
    ]
    assert twice[0].body["schedule_id"] == twice[1].body["schedule_id"]
    of_project = (await http(stack, "GET", f"{SCHEDULES}?project_id=3")).body["schedules"]
    assert len(of_project) == 3


async def test_paused_schedule_fires_nothing_and_a_deleted_one_is_gone(stack: StackHarness) -> None:
    run = {
        "suite": SUITE,
        "config": {"provider": "openai", "model": "fake"},
        "project_id": 4,
        "name": "often",
    }
    made = await http(stack, "POST", SCHEDULES, json={"cron": CRON, "run": run})
    path = f"{SCHEDULES}/{made.body['schedule_id']}"
    paused = await http(stack, "POST", f"{path}/pause")
    assert (paused.status, paused.body["next_due_at"]) == (200, None)
    assert (await proctor(stack, f"schedule resume {made.body['schedule_id']}")).code == 0
    assert (await http(stack, "GET", path)).body["paused_at"] is None
    assert (await http(stack, "DELETE", path)).status == 200
    assert (await http(stack, "DELETE", path)).body["reason"] == "SCHEDULE_NOT_FOUND"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"cron": "0 3 * *"}, "cron"),
        ({"cron": "0 3 * * *", "time_zone": "Moon/Base"}, "time_zone"),
        ({"cron": "0 0 31 2 *"}, "cron"),
    ],
)
async def test_times_that_do_not_exist_are_refused_by_field(
    stack: StackHarness, body: dict[str, str], field: str
) -> None:
    run = {"suite": SUITE, "config": {"provider": "openai", "model": "fake"}, "project_id": 4, "name": "none"}
    refused = await http(stack, "POST", SCHEDULES, json={**body, "run": run})
    assert (refused.status, refused.body["reason"]) == (422, "INVALID_PARAMETER"), refused.body
    assert field in str(refused.body)
