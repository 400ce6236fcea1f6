"""Every list refuses a cursor that was changed, or that another list gave, and takes its own."""

import base64
import random
import string
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.harness.described_api import things_to_name
from tests.e2e.harness.entry_points import API, http
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.rollout_orders import archive
from tests.harness.rollout_tasks import harbor_folder
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.thorough]

CHANGES = 60
# Characters of an address, of base64, and of neither.
LETTERS = string.ascii_letters + string.digits + "-_=+/ %&\x00é\U0001f600"


@dataclass(frozen=True)
class Lists:
    stack: StackHarness
    # Path with its parameters → the cursor of its second page.
    cursors: dict[str, str]

    async def status(self, path: str, cursor: str) -> tuple[int, object]:
        answer = await http(self.stack, "GET", path, params={"limit": "1", "cursor": cursor})
        return answer.status, answer.body


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lists(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lists]:
    environment = SHORT_TIMEOUTS | {
        "PROCTOR_SCHEDULER_MAX_READS_PER_MINUTE": "0",
        "PROCTOR_SCHEDULER_MAX_PENDING_RUNS_PER_USER": "1000",
    }
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(rows=8, environment=environment)) as stack:
            known = await things_to_name(stack)
            first, second = known["benchmark_id"][:2]
            runs = (*known["job_id"], first, second)
            await eventually(lambda: _all_ended(stack, len(runs)), "all runs have completed", 120)
            await _change_limits(stack)
            await _mark_answers(stack, first)
            await _order_rollouts(stack, tmp_path_factory.mktemp("tasks"))
            paths = (
                f"{API}/results",
                f"{API}/results?kind=all",
                f"{API}/history",
                "/admin/datasets",
                "/admin/benchmarks",
                f"/admin/benchmarks/{first}/results",
                f"/admin/benchmarks/side-by-side?ids={first},{second}",
                f"/admin/benchmarks/{first}/golden/changes",
                "/api/v1/audit",
                "/api/v1/changes",
                "/api/v1/rollouts",
            )
            yield Lists(stack, {path: await _second_page(stack, path) for path in paths})


async def test_every_list_takes_its_own_cursor(lists: Lists) -> None:
    for path, cursor in lists.cursors.items():
        assert (await lists.status(path, cursor))[0] == 200, path


async def test_changed_cursor_is_refused(lists: Lists) -> None:
    draws = random.Random(20261122)
    for path, cursor in lists.cursors.items():
        for _ in range(CHANGES):
            changed = _changed(cursor, draws)
            status, body = await lists.status(path, changed)
            assert status == 400, (path, changed, body)
            assert isinstance(body, dict)
            assert body["reason"] == "INVALID_PAGE_TOKEN", (path, changed, body)


async def test_cursor_of_another_list_is_refused(lists: Lists) -> None:
    for path in lists.cursors:
        others = {
            _list(other): cursor for other, cursor in lists.cursors.items() if _list(other) != _list(path)
        }
        for other, cursor in others.items():
            status, body = await lists.status(path, cursor)
            assert status == 400, (path, other, body)


async def test_list_after_an_id_that_does_not_exist_is_refused(lists: Lists) -> None:
    draws = random.Random(20261122)
    for path in ("/v1/files", "/v1/batches"):
        last = (await http(lists.stack, "GET", path, params={"limit": "1"})).body["last_id"]
        assert (await http(lists.stack, "GET", path, params={"after": last})).status == 200
        for _ in range(CHANGES):
            answer = await http(lists.stack, "GET", path, params={"after": _changed(last, draws)})
            assert answer.status in (400, 404), (path, answer.body)


def _changed(cursor: str, draws: random.Random) -> str:
    """With letters replaced, left out, put in or repeated; never the cursor itself, and never none."""
    while True:
        start = draws.randrange(len(cursor))
        end = min(len(cursor), start + draws.choice((0, 1, 1, 2, len(cursor))))
        put = "".join(draws.choices(LETTERS, k=draws.randrange(4)))
        changed = cursor[:start] + put + cursor[end:]
        if changed not in ("", cursor):
            return changed


def _list(path: str) -> str:
    """Runs over suites and over data sets are one list with filters."""
    name = path.partition("?")[0].rpartition("/")[2]
    if path.endswith("/golden/changes"):
        return "changes of marks"
    return "runs" if path.startswith(f"{API}/results") or path == "/admin/benchmarks" else name


async def _change_limits(stack: StackHarness) -> None:
    for limit in (1007, 1008):
        answer = await http(stack, "PATCH", "/api/v1/queue/limits", json={"max_pending_runs_per_user": limit})
        assert answer.status == 200, answer.body


async def _mark_answers(stack: StackHarness, benchmark_id: str) -> None:
    named = {"answers": [{"sample": 0}, {"sample": 1}]}
    answer = await http(stack, "PUT", f"/admin/benchmarks/{benchmark_id}/golden", json=named)
    assert answer.status == 200, answer.body


async def _order_rollouts(stack: StackHarness, folder: Path) -> None:
    """Two orders; their runs may go on."""
    harbor_folder(folder / "a")
    tasks = base64.b64encode(archive(folder)).decode()
    for suite in ("first", "second"):
        body = {"suite": suite, "tasks": tasks, "models": ["openai/fake"], "agent": {"max_steps": 1}}
        answer = await http(stack, "POST", "/api/v1/rollouts", json=body)
        assert answer.status == 201, answer.body


async def _second_page(stack: StackHarness, path: str) -> str:
    answer = await http(stack, "GET", path, params={"limit": "1"})
    assert answer.status == 200, answer.body
    cursor: str = answer.body["next_cursor"]
    assert cursor, path
    return cursor


async def _all_ended(stack: StackHarness, count: int) -> bool:
    answer = await http(stack, "GET", f"{API}/results?kind=all", params={"status": "completed", "limit": "1"})
    total: int = answer.body["total"]
    return total >= count
