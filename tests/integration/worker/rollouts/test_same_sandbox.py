"""Tests that judge in the agent's own sandbox see what it left elsewhere, and its services."""

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec, VerificationPlace
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.rollouts.rollout_result import RolloutResult
from tests.harness.rollout_tasks import (
    harbor_folder,
    opened_rollouts,
    read_task,
    terminal_bench_folder,
    write,
)

SERVICE = "python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 </dev/null &\n"
ASK = "python3 - <<'END'\nimport time, urllib.request\nfor _ in range(100):\n    try:\n"
ASK += "        urllib.request.urlopen('http://127.0.0.1:8123'); break\n"
ASK += "    except OSError: time.sleep(0.1)\nelse: raise SystemExit(1)\nEND\n"
# What a solution leaves beside the working folder, and what its tests look for.
LEFT: Mapping[str, tuple[str, str]] = {
    "a file": ("echo done > /tmp/left\n", "grep -q done /tmp/left"),
    "a service": (SERVICE, ASK.rstrip()),
}
# Files that would pass the tests, where they were found before those of the task.
PLANTED = (
    "for place in /opt/runner/site /opt/runner/bin /tests; do mkdir -p $place; done\n"
    "echo 'raise SystemExit(0)' > /opt/runner/site/pytest.py\n"
    "echo 'def test(): pass' > /tests/test_twice.py; chmod -R 500 /tests\n"
    "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.json\n"
)


@pytest.fixture
async def rollouts() -> AsyncIterator[ExecuteRollout]:
    async with opened_rollouts() as made:
        yield made


async def judged(rollouts: ExecuteRollout, folder: Path, place: VerificationPlace) -> RolloutResult:
    spec = RolloutSpec(read_task(folder), RolloutAgent(AgentKind.ORACLE, verification=place))
    return await rollouts.execute(RolloutExecution(spec, "session"))


@pytest.mark.parametrize("way", LEFT)
async def test_only_the_same_sandbox_has_what_the_agent_left_elsewhere(
    rollouts: ExecuteRollout, tmp_path: Path, way: str
) -> None:
    solution, test = LEFT[way]
    folder = write(harbor_folder(tmp_path / "a", test=test), {"solution/solve.sh": solution})
    same = await judged(rollouts, folder, VerificationPlace.SAME)
    assert (same.result.score, '"verification": "same"' in same.record_json) == (1.0, True)
    if way == "a file":
        fresh = await judged(rollouts, folder, VerificationPlace.FRESH)
        assert (fresh.result.score, '"verification": "fresh"' in fresh.record_json) == (0.0, True)


@pytest.mark.parametrize("make", [harbor_folder, terminal_bench_folder])
async def test_what_the_agent_put_in_the_place_of_tests_has_no_effect(
    rollouts: ExecuteRollout, tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    folder = make(tmp_path / "a")
    right = await judged(rollouts, folder, VerificationPlace.SAME)
    solution = "solution.sh" if make is terminal_bench_folder else "solution/solve.sh"
    write(folder, {solution: PLANTED})
    planted = await judged(rollouts, folder, VerificationPlace.SAME)
    assert (right.result.score, planted.result.score) == (1.0, 0.0)
