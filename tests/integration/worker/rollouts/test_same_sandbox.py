"""Tests that judge in the agent's own sandbox see what it left elsewhere, and its services."""

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec, VerificationPlace
from services.worker.rollouts.errors import FilesNotReached
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.rollouts.rollout_result import RolloutResult
from tests.fakes.thorough_cases import first_cases
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
    "a file": ("echo done > /tmp/left\n", "place=/tmp; grep -q done $place/left"),
    "a service": (SERVICE, ASK.rstrip()),
}
# Files that would pass the tests, where they were found before those of the task.
PLANTED = (
    "for place in /opt/runner/site /opt/runner/bin /tests; do mkdir -p $place; done\n"
    "echo 'raise SystemExit(0)' > /opt/runner/site/pytest.py\n"
    "echo 'def test(): pass' > /tests/test_twice.py; chmod -R 500 /tests\n"
    "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.json\n"
)

_WAIT = (
    "import os, signal, time\n"
    "def others():\n"
    "    for each in os.listdir('/proc'):\n"
    "        if each.isdigit() and int(each) not in (1, os.getpid()):\n"
    "            try: yield int(each), open(f'/proc/{each}/cmdline').read()\n"
    "            except OSError: pass\n"
    "while any('solve.sh' in line for _, line in others()): time.sleep(0.003)\n"
)


def _after(code: str) -> str:
    """Runs in the background from the end of the solution on, until the sandbox is closed."""
    start = "setsid python3 /tmp/later.py >/dev/null 2>&1 </dev/null &"
    return f"cat > /tmp/later.py <<'END'\n{_WAIT}{code}END\n{start}\n"


def _whenever(condition: str, action: str) -> str:
    return _after(
        f"while True:\n    for each, line in others():\n        try:\n            if {condition}: {action}\n"
        "        except OSError: pass\n    time.sleep(0.001)\n"
    )


_FILL = "for place in /tmp /logs /opt/runner /tests; do head -c 1G /dev/zero > $place/full; done; true\n"
# None is a score of 1, and none is without a score.
DODGES = {
    "no process is free": _after(
        "while True:\n    try:\n        if not os.fork(): time.sleep(60)\n"
        "    except OSError: time.sleep(0.002)\n"
    ),
    "what unpacks the tests is killed": _whenever("'-x' in line", "os.kill(each, signal.SIGKILL)"),
    "all that starts is killed": _whenever("True", "os.kill(each, signal.SIGKILL)"),
    "the tests are stopped": _whenever("'pytest' in line", "os.kill(each, signal.SIGSTOP)"),
    "the disk is full": f"mkdir -p /tests; {_FILL}",
    "the folders of the tests are closed": "mkdir -p /tests/x/y; chmod 000 /tests/x /opt/runner; true\n",
    "the folder is closed": "chmod 000 /app\n",
    "the logs are gone": "rm -rf /logs /logs/* 2>/dev/null; true\n",
    "the reward is a pipe": _after("os.makedirs('/logs/verifier')\nos.mkfifo('/logs/verifier/reward.txt')\n"),
    "the reward is removed": _after(
        "while True:\n    try: os.remove('/logs/verifier/reward.txt')\n"
        "    except OSError: time.sleep(0.0005)\n"
    ),
    "the runner is replaced": _after(
        "while True:\n    try: open('/opt/runner/bin/python3', 'w').write('#!/bin/sh\\nexit 3\\n')\n"
        "    except OSError: pass\n    time.sleep(0.0005)\n"
    ),
    "loops that ignore signals": "for each in 1 2 3; do\n"
    "    setsid sh -c 'trap \"\" 1 2 3 15; while :; do :; done' >/dev/null 2>&1 </dev/null &\ndone\n",
}


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
        with pytest.raises(FilesNotReached, match=r"scores 0 .* and left /tmp/left"):
            await judged(rollouts, folder, VerificationPlace.FRESH)


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


@first_cases(4, "way", DODGES)
async def test_no_agent_dodges_its_score(rollouts: ExecuteRollout, tmp_path: Path, way: str) -> None:
    config = 'schema_version = "1.0"\n[agent]\ntimeout_sec = 20\n[verifier]\ntimeout_sec = 20\n'
    config += "[environment]\nstorage_mb = 64\nmemory_mb = 512\n"
    folder = write(harbor_folder(tmp_path / "a", config), {"solution/solve.sh": DODGES[way]})
    assert (await judged(rollouts, folder, VerificationPlace.SAME)).result.score == 0.0


# Where a reward lies, in a form that no text names.
_START = "where=$(echo L2xvZ3MvdmVyaWZpZXIvcmV3YXJkLnR4dAo= | base64 -d)\n"
FORGERS: Mapping[str, str] = {
    "a loop": "echo 1 > $where",
    "a loop that waits for a 0": '[ "$(cat $where)" = 0 ] && echo 1 > $where',
    "a loop over a second file": "echo 1 > ${where%txt}json",
    "a loop that moves a file there": "echo 1 > /tmp/n; mv -f /tmp/n $where",
}
BY_SHELL = "#!/bin/bash\n./run > /tmp/out\nsleep 0.1\nif grep -q right /tmp/out; then echo 1; else echo 0; fi"
BY_SHELL += " > /logs/verifier/reward.txt\nsleep 0.1\n"


@pytest.mark.parametrize("place", VerificationPlace)
@first_cases(2, "way", FORGERS)
async def test_a_reward_that_a_process_of_the_agent_writes_counts_for_nothing(
    rollouts: ExecuteRollout, tmp_path: Path, way: str, place: VerificationPlace
) -> None:
    """Tests in a shell print nothing that could contradict it."""
    loop = f"{_START}while :; do {FORGERS[way]}; done"
    started = f"setsid bash -c '{loop}' >/dev/null 2>&1 </dev/null &\n"
    forge = f"cat > run <<'END'\n#!/bin/bash\n{started}END\nchmod +x run\n"
    if place is VerificationPlace.SAME:
        forge = f"printf '#!/bin/sh\\n' > run; chmod +x run\n{started}"
    folder = write(harbor_folder(tmp_path / "a"), {"tests/test.sh": BY_SHELL, "solution/solve.sh": forge})
    result = (await judged(rollouts, folder, place)).result
    assert (result.score, result.suspicions[-1:]) == (
        0.0,
        ("a process that outlived the tests writes the reward",),
    )


async def test_processes_that_outlive_the_tests_leave_their_reward(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    honest = "printf '#!/bin/sh\\necho right; sleep 100 >/dev/null &\\n' > run; chmod +x run\n"
    folder = write(harbor_folder(tmp_path / "a"), {"tests/test.sh": BY_SHELL, "solution/solve.sh": honest})
    for place in VerificationPlace:
        result = (await judged(rollouts, folder, place)).result
        assert (result.score, result.suspicions) == (1.0, ())
