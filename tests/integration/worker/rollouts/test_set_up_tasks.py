"""Files, folders and steps of a Dockerfile are there in real sandboxes, for the agent and for the tests."""

import asyncio
import json
from pathlib import Path

import pytest

from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec
from services.common.sandboxes.sandbox import TarLimits
from services.worker.rollouts.errors import FilesNotCollected
from services.worker.rollouts.execute_rollout import RolloutExecution
from services.worker.rollouts.rollout_result import RolloutResult
from tests.harness.rollout_tasks import SOLVE as SOLVED
from tests.harness.rollout_tasks import harbor_folder, opened_rollouts, read_task, steps_folder, write

DOCKERFILE = """FROM x
WORKDIR /home/user/project
ENV PATH=/data/bin:$PATH
COPY doubling.py .
COPY --chmod=755 tool /data/bin/
RUN apt-get install -y x && mkdir -p /opt/made && echo made > /opt/made/file && git init -q repo
RUN ln -s doubling.py link && chmod 600 doubling.py && false
"""
TEST = """#!/bin/bash
set -e
echo 0 > /logs/verifier/reward.txt
[ "$PWD" = /home/user/project ]
tool | grep -q tool
[ "$(cat /opt/made/file)" = made ]
[ "$(cat /opt/made/more)" = more ]
[ -d repo/.git ]
[ "$(readlink link)" = doubling.py ]
[ -e done ]
pytest --version
echo 1 > /logs/verifier/reward.txt
"""
SOLVE = 'tool && [ "$(cat /opt/made/file)" = made ] && echo more > /opt/made/more && touch done\n'


async def executed(folder: Path, agent: AgentKind, collected: TarLimits | None = None) -> RolloutResult:
    spec = RolloutSpec(read_task(folder), RolloutAgent(agent))
    async with asyncio.timeout(120), opened_rollouts(collected) as rollouts:
        return await rollouts.execute(RolloutExecution(spec, "session"))


def made_by_a_dockerfile(folder: Path) -> Path:
    files = {
        "environment/Dockerfile": DOCKERFILE,
        "environment/tool": "#!/bin/sh\necho tool\n",
        "tests/test.sh": TEST,
        "solution/solve.sh": SOLVE,
    }
    return write(harbor_folder(folder), files)


async def test_files_folders_and_steps_of_a_dockerfile_are_there(tmp_path: Path) -> None:
    folder = made_by_a_dockerfile(tmp_path / "a")
    solved = await executed(folder, AgentKind.ORACLE)
    assert solved.result.score == 1.0, solved.result.log
    # What the steps made is not the agent's change.
    assert [line for line in solved.diff.splitlines() if line.startswith("+++")] == ["+++ b/opt/made/more"]
    notes = json.loads(solved.record_json)["notes"]
    assert "of RUN these are not executed: apt-get install -y x" in notes
    assert any(note.startswith("of RUN this failed: ln -s doubling.py link") for note in notes)
    assert (await executed(folder, AgentKind.NONE)).result.score == 0.0


STAGES = """FROM x AS base
RUN mkdir -p /data && echo secret > /data/secret
FROM base AS made
WORKDIR /build
COPY doubling.py tool .
RUN mkdir out && sh tool > out/a.txt && cp doubling.py out/b.py && ln -s b.py out/link
FROM x
WORKDIR /app
COPY --from=made /build/out/ /app/out
COPY --from=made /build/out/*.txt /data/
COPY --from=made /build/absent /app/absent
RUN cat out/a.txt > again
COPY doubling.py .
"""
STAGED = """#!/bin/bash
set -e
echo 0 > /logs/verifier/reward.txt
[ "$(cat out/a.txt again /data/a.txt | uniq -c | tr -d ' ')" = 3tool ]
[ "$(readlink out/link)" = b.py ]
[ ! -e /data/secret ] && [ ! -e /build ]
[ -e done ]
echo 1 > /logs/verifier/reward.txt
"""


async def test_what_other_stages_make_is_there_without_the_rest_of_them(tmp_path: Path) -> None:
    files = {
        "environment/Dockerfile": STAGES,
        "environment/tool": "#!/bin/sh\necho tool\n",
        "tests/test.sh": STAGED,
        "solution/solve.sh": "[ ! -e /data/secret ] && [ ! -e /build ] && cat out/a.txt > done\n",
    }
    folder = write(harbor_folder(tmp_path / "a"), files)
    solved = await executed(folder, AgentKind.ORACLE)
    assert solved.result.score == 1.0, solved.result.log
    assert "+++ b/done" in solved.diff
    assert "out" not in solved.diff
    left_out = "COPY /build/absent of the Dockerfile has no effect: its stage has not made it"
    assert left_out in json.loads(solved.record_json)["notes"]
    assert (await executed(folder, AgentKind.NONE)).result.score == 0.0


BY_PROGRAMS = """FROM gcc
WORKDIR /app
COPY doubling.py tool .
RUN mkdir -p /tmp/store /opt/gone && python3 tool && rm -rf /opt/gone
"""
TOOL = """from pathlib import Path
Path("/opt/fixtures/inner").mkdir(parents=True)
Path("/opt/fixtures/inner/case").write_text("of a program")
"""


async def test_folders_that_programs_of_run_make_are_there_and_tests_may_remove_folders(
    tmp_path: Path,
) -> None:
    test = """#!/bin/bash
echo 0 > /logs/verifier/reward.txt
rm -rf /tmp/store && [ ! -e /tmp/store ] && mkdir /tmp/store && [ ! -e /opt/gone/file ] &&
[ "$(cat /opt/fixtures/inner/case)" = 'of a program' ] && [ -e done ] && echo 1 > /logs/verifier/reward.txt
"""
    files = {
        "environment/Dockerfile": BY_PROGRAMS,
        "environment/tool": TOOL,
        "tests/test.sh": test,
        "solution/solve.sh": "rm -rf /tmp/store && grep -q program /opt/fixtures/inner/case && touch done\n",
    }
    folder = write(harbor_folder(tmp_path / "a"), files)
    solved = await executed(folder, AgentKind.ORACLE)
    assert solved.result.score == 1.0, (solved.result.log, solved.notes)
    assert not any("failed" in note for note in solved.notes)
    assert (await executed(folder, AgentKind.NONE)).result.score == 0.0


async def test_steps_of_a_task_begin_with_what_its_dockerfile_made(tmp_path: Path) -> None:
    folder = steps_folder(tmp_path / "a")
    dockerfile = "FROM x\nWORKDIR /app\nRUN echo 'def twice(n): return 2 * n' > doubling.py\n"
    write(folder, {"environment/Dockerfile": dockerfile, "steps/first/solution/solve.sh": "true\n"})
    assert (await executed(folder, AgentKind.ORACLE)).result.score == 1.0


async def test_files_over_a_limit_of_ours_are_no_failure_of_the_agent(tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a")
    write(
        folder,
        {"solution/solve.sh": f"{SOLVED}mkdir node_modules\nseq 10001 | (cd node_modules && xargs touch)\n"},
    )
    assert (await executed(folder, AgentKind.ORACLE)).result.score == 1.0
    with pytest.raises(FilesNotCollected, match=r"more than 5,000\..*PROCTOR_WORKER_ROLLOUT_MAX_FILES"):
        await executed(folder, AgentKind.ORACLE, TarLimits(members=5000))
    write(folder, {"solution/solve.sh": f"{SOLVED}head -c 2000000 /dev/zero > large\n"})
    with pytest.raises(
        FilesNotCollected, match=r"more than 1,000,000 bytes.*PROCTOR_WORKER_ROLLOUT_MAX_BYTES"
    ):
        await executed(folder, AgentKind.ORACLE, TarLimits(total_bytes=1_000_000))
