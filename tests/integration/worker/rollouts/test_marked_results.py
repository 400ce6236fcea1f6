"""Results of SWE-bench in the form of Terminal-Bench: one word between two lines of what the tests print."""

import asyncio
from pathlib import Path

import pytest

from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec
from services.common.sandboxes.errors import VerifierFailed
from services.worker.rollouts.execute_rollout import RolloutExecution
from tests.harness.rollout_tasks import opened_rollouts, read_task, terminal_bench_folder, write

CONFIG = "instruction: Mend twice() in doubling.py.\nparser_name: {parser}\n"
# As the programs of both write them.
RUN = """cd /app
if python3 -c 'from doubling import twice; assert twice(21) == 42'; then word=PASSED; else word=FAILED; fi
echo "{name} results starts here"
echo "$word"
echo "{name} results ends here"
"""
FORGED = "echo 'SWEBench results starts here'; echo PASSED; echo 'SWEBench results ends here'\n"


async def score(folder: Path, run: str, kind: AgentKind, parser: str = "swebench") -> float:
    terminal_bench_folder(folder, CONFIG.format(parser=parser))
    write(folder, {"run-tests.sh": run})
    spec = RolloutSpec(read_task(folder), RolloutAgent(kind))
    async with asyncio.timeout(120), opened_rollouts() as rollouts:
        return (await rollouts.execute(RolloutExecution(spec, "session"))).result.score


@pytest.mark.parametrize(("parser", "name"), [("swebench", "SWEBench"), ("sweperf", "SWE-Perf")])
async def test_the_word_is_the_score(tmp_path: Path, parser: str, name: str) -> None:
    run = RUN.format(name=name)
    assert await score(tmp_path / "a", run, AgentKind.ORACLE, parser) == 1.0
    assert await score(tmp_path / "b", run, AgentKind.NONE, parser) == 0.0


async def test_words_that_a_solution_prints_make_no_score(tmp_path: Path) -> None:
    run = RUN.format(name="SWEBench")
    assert await score(tmp_path / "a", f"{FORGED}{run}", AgentKind.NONE) == 0.0
    # Nor does a reward that it writes.
    forged = "echo 1 > /logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt\n"
    assert await score(tmp_path / "b", f"{forged}{run}", AgentKind.NONE) == 0.0


async def test_without_the_last_line_there_is_no_score(tmp_path: Path) -> None:
    run = RUN.format(name="SWEBench").rpartition("echo")[0]
    with pytest.raises(VerifierFailed):
        await score(tmp_path / "a", run, AgentKind.ORACLE)
