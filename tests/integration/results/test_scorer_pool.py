"""Texts are scored in processes: an answer that takes too much costs its own score and nothing else."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType, ScoringMethod, TaskScoring
from services.common.errors import DependencyUnavailable
from services.common.processes import watched_process
from services.common.processes.watched_process import ProcessTimeouts
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.ports import AnswerToScore, Scored, UncompiledScoring
from services.results.scoring.processes import scorer_pool
from services.results.scoring.processes.scorer_pool import DEFAULT_TIMEOUTS, ScorerPool
from services.results.scoring.processes.scorer_process import ScoringLimits
from services.results.scoring.score import Score, ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.scoring.text_metrics import MATCH_METRICS, OVERLAP_METRICS
from tests.fakes.eventually import eventually, holds
from tests.fakes.scoring.obeying_scorer import PROGRAM
from tests.fakes.thorough_cases import first_cases
from tests.harness.processes import bound

pytestmark = pytest.mark.asyncio


def uncompiled(metric: str, run_id: str = "run") -> UncompiledScoring:
    task = TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse(metric),))
    return UncompiledScoring(task, ScoringMethod.GENERATE, run_id)


def words(count: int) -> str:
    return " ".join(f"w{number}" for number in range(count))


def overlapping(count: int) -> AnswerToScore:
    return AnswerToScore(ScoringTarget(texts=(words(count),), wrong_texts=("no",)), Answer(words(count)))


QUICK = overlapping(3)
LIMITS = ScoringLimits(seconds=20.0)


@asynccontextmanager
async def pool(
    limits: ScoringLimits = LIMITS, processes: int = 1, timeouts: ProcessTimeouts = DEFAULT_TIMEOUTS
) -> AsyncIterator[ScorerPool]:
    made = ScorerPool(processes, limits, timeouts)
    try:
        yield made
    finally:
        await made.close()


def reasons(scored: list[Scored]) -> list[str]:
    return [str(one) if isinstance(one, ScoringImpossible) else "" for one in scored]


async def test_answers_are_scored_in_their_order_as_in_this_process() -> None:
    answers = [AnswerToScore(ScoringTarget(texts=("yes",)), Answer(text)) for text in ("yes", "no", "yes")]
    async with pool() as scorer:
        scored = await scorer.score(uncompiled("exact_match"), answers)
    assert scored == [Score(text, {"exact_match": float(text == "yes")}) for text in ("yes", "no", "yes")]


async def test_an_answer_that_takes_long_is_no_score_and_the_others_have_theirs() -> None:
    async with pool(replace(LIMITS, seconds=0.05)) as scorer:
        scored = await scorer.score(uncompiled("rougeL_max"), [QUICK, overlapping(1400), QUICK])
    assert reasons(list(scored)) == ["", "it took over 0.05 s", ""], scored


async def test_once_slow_answers_took_their_time_each_has_less() -> None:
    limits = ScoringLimits(seconds=20.0, later_seconds=0.05, slow_seconds=0.1)
    async with pool(limits) as scorer:
        scored = await scorer.score(uncompiled("rougeL_max"), [overlapping(1000)] * 3)
        other_run = await scorer.score(uncompiled("rougeL_max", "other"), [overlapping(1000)])
    assert reasons([*scored, *other_run]) == ["", "it took over 0.05 s", "it took over 0.05 s", ""]


async def test_an_answer_that_takes_much_memory_is_no_score() -> None:
    async with pool(replace(LIMITS, memory_bytes=156 * 1024**2)) as scorer:
        scored = await scorer.score(uncompiled("rougeL_max"), [QUICK, overlapping(1413), QUICK])
    assert reasons(list(scored)) == ["", "it took too much memory", ""]


async def test_rouge_of_long_texts_is_refused_at_once() -> None:
    async with pool(replace(LIMITS, seconds=2.0)) as scorer:
        [scored] = await scorer.score(uncompiled("rougeL_max"), [overlapping(8000)])
    assert reasons([scored]) == ["ROUGE does not compare an answer of 8000 words with 8001 words"]


def boxed(expression: str) -> AnswerToScore:
    return AnswerToScore(ScoringTarget(texts=(r"\frac{1}{2}",)), Answer(rf"\boxed{{{expression}}}"))


async def test_an_expression_that_takes_long_is_no_score_and_the_library_sets_no_alarm_of_its_own() -> None:
    endless = ("9^{9^{9^{9}}}", r"\sum_{k=1}^{1000000000} k^k")
    async with pool(replace(LIMITS, seconds=1.0)) as scorer:
        scored = await scorer.score(uncompiled("math"), [*map(boxed, ("0.5", *endless, "x", "50\\%"))])
    assert reasons(list(scored)) == ["", "it took over 1 s", "it took over 1 s", "", ""]
    assert [one.scores["math"] for one in scored if isinstance(one, Score)] == [1.0, 0.0, 1.0]


@pytest.fixture
def obeying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes do what an answer says, as one that an answer has taken over."""
    monkeypatch.setattr(scorer_pool, "MODULE", PROGRAM)


def saying(deed: str) -> AnswerToScore:
    return AnswerToScore(ScoringTarget(texts=("w",)), Answer(deed))


@pytest.mark.usefixtures("obeying")
async def test_a_scorer_that_fails_costs_one_answer() -> None:
    async with pool() as scorer:
        scored = await scorer.score(uncompiled("squad_f1"), [saying("fail"), QUICK])
    assert reasons(list(scored)) == ["the scorer failed with ZeroDivisionError('no score')", ""]


async def test_scores_of_every_metric_come_back_as_they_are() -> None:
    target = ScoringTarget(texts=("a right text",), wrong_texts=("a wrong one",))
    answer = AnswerToScore(target, Answer("a right one"))
    metrics = tuple(MetricUse(name) for name in (*OVERLAP_METRICS, *MATCH_METRICS))
    task = TaskScoring(OutputType.GENERATE_UNTIL, metrics)
    async with pool() as scorer:
        [scored] = await scorer.score(UncompiledScoring(task, None, "run"), [answer])
    assert scored == score_answer(compile_scoring(task), *answer)


async def test_text_that_is_no_unicode_is_scored() -> None:
    texts = ["\ud800", "a\udcffb", "\ud83d\ude00", "\0\U0010ffff"]
    answers = [AnswerToScore(ScoringTarget(texts=("b",)), Answer(text)) for text in texts]
    async with pool() as scorer:
        scored = await scorer.score(uncompiled("exact_match"), answers)
    predictions = ["\ufffd", "a\ufffdb", "\U0001f600", "\0\U0010ffff"]
    assert scored == [Score(prediction, {"exact_match": 0.0}) for prediction in predictions]


ENDS_PROCESS = "it ended the process that scores"
SHORT_TIMEOUTS = ProcessTimeouts(cpu_seconds=5.0, interval_seconds=0.5)


@first_cases(
    1,
    "deadly",
    [
        *("exit", "read no memory", "abort", "compute", "sleep 3600"),
        *("reply no score", "reply too many", "reply nothing", "reply a pickle"),
    ],
)
@pytest.mark.usefixtures("obeying")
async def test_an_answer_that_ends_the_process_costs_its_own_score(deadly: str) -> None:
    async with pool(timeouts=SHORT_TIMEOUTS) as scorer:
        scored = await scorer.score(uncompiled("exact_match"), [QUICK, saying(deadly), QUICK])
    assert reasons(list(scored)) == ["", ENDS_PROCESS, ""]
    assert scoring_processes() == []


@pytest.mark.thorough
@pytest.mark.usefixtures("obeying")
async def test_a_machine_that_kills_processes_is_no_fault_of_an_answer() -> None:
    """As the kernel does where memory runs out."""

    async def kill_all() -> None:
        while True:
            for process in scoring_processes():
                if has_begun(process):
                    os.kill(process, signal.SIGKILL)
            await asyncio.sleep(0.01)

    async with pool() as scorer:
        killing = asyncio.ensure_future(kill_all())
        with pytest.raises(DependencyUnavailable):
            await scorer.score(uncompiled("exact_match"), [saying("sleep 3600")])
        killing.cancel()
        scored = await scorer.score(uncompiled("exact_match"), [QUICK])
    assert reasons(list(scored)) == [""]


@pytest.mark.usefixtures("obeying")
async def test_a_machine_without_time_is_no_fault_of_an_answer() -> None:
    """The process is stopped for several intervals, as one that is swapped out."""
    async with pool(timeouts=SHORT_TIMEOUTS) as scorer:
        scoring = asyncio.ensure_future(scorer.score(uncompiled("exact_match"), [saying("sleep 0.4"), QUICK]))
        await eventually(lambda: any(map(has_begun, scoring_processes())), "it is at work")
        [process] = scoring_processes()
        os.kill(process, signal.SIGSTOP)
        await holds(lambda: not scoring.done(), "no score is given", 4 * SHORT_TIMEOUTS.interval_seconds)
        os.kill(process, signal.SIGCONT)
        assert ENDS_PROCESS not in reasons(list(await scoring))


def has_begun(process: int) -> bool:
    """Whether it sleeps in the answer, not where it waits for a request."""
    with suppress(OSError):
        return "nanosleep" in Path(f"/proc/{process}/wchan").read_text()
    return False


async def test_processes_have_less_memory_than_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    container = tmp_path / "memory.max"
    container.write_text("1073741824\n")
    monkeypatch.setattr(watched_process, "CGROUP_LIMITS", (str(container), str(tmp_path / "none")))
    assert watched_process.memory_of_machine() == 1024**3
    assert ScorerPool(2)._limits.memory_bytes == 256 * 1024**2
    container.write_text("max\n")
    assert watched_process.memory_of_machine() > 1024**3


async def test_an_answer_is_not_to_blame_for_a_process_that_cannot_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scorer_pool, "MODULE", "services.results.scoring.processes.no_such_module")
    async with pool() as scorer:
        with pytest.raises(DependencyUnavailable):
            await scorer.score(uncompiled("exact_match"), [QUICK])
    assert scoring_processes() == []


async def test_processes_that_are_killed_are_replaced() -> None:
    async with pool(processes=2) as scorer:
        await asyncio.gather(*[scorer.score(uncompiled("exact_match"), [QUICK] * 3) for _ in range(2)])
        for process in scoring_processes():
            os.kill(process, signal.SIGKILL)
        scored = await scorer.score(uncompiled("exact_match"), [QUICK] * 3)
        assert reasons(list(scored)) == [""] * 3


STARTS_ONE = """
import asyncio
from tests.integration.results.test_scorer_pool import QUICK, uncompiled, scoring_processes
from services.results.scoring.processes.scorer_pool import ScorerPool

async def main():
    await ScorerPool(1).score(uncompiled("exact_match"), [QUICK])
    print(*scoring_processes(), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_process_ends_with_a_service_that_is_killed() -> None:
    service = await asyncio.create_subprocess_exec(*bound(sys.executable, "-c", STARTS_ONE), stdout=PIPE)
    assert service.stdout is not None
    async with asyncio.timeout(30):
        process = Path(f"/proc/{int(await service.stdout.readline())}")
        assert process.exists()
        service.kill()
        await service.wait()
    await eventually(lambda: not process.exists() or "Z" in _state(process), "it ends")


def _state(process: Path) -> str:
    with suppress(OSError):
        return (process / "stat").read_text().rpartition(")")[2]
    return "Z"


async def test_a_cancelled_request_leaves_no_process_and_no_reply_for_the_next() -> None:
    async with pool() as scorer:
        await scorer.score(uncompiled("rougeL_max"), [QUICK])
        scoring = asyncio.ensure_future(scorer.score(uncompiled("rougeL_max"), [overlapping(1400)] * 20))
        await eventually(lambda: len(scoring_processes()) == 1, "one is at work")
        scoring.cancel()
        await asyncio.gather(scoring, return_exceptions=True)
        [scored] = await scorer.score(
            uncompiled("exact_match"), [AnswerToScore(ScoringTarget(texts=("b",)), Answer("b"))]
        )
        assert scored == Score("b", {"exact_match": 1.0})
    assert scoring_processes() == []


async def test_a_slow_run_leaves_processes_to_others() -> None:
    async with pool() as scorer:
        await scorer.score(uncompiled("rougeL_max"), [QUICK])
        slow = asyncio.ensure_future(scorer.score(uncompiled("rougeL_max", "slow"), [overlapping(1400)] * 20))
        await scorer.score(uncompiled("rougeL_max", "quick"), [QUICK])
        assert not slow.done()
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)


def scoring_processes() -> list[int]:
    """Of this test."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    commands = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
    return [child for child, command in commands.items() if b"scorer" in command]
