"""Decisions between two runs: which samples count, what failures do to the interval, and that one stays."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from proctor.values.comparison import Decision, DecisionVerdict, sample_order
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.decisions.answered_pairs import AnsweredPairs, AnsweredSample, paired_metrics
from services.results.decisions.decide_runs import CHUNK_SAMPLES, DecideRuns, DecisionQuery
from services.results.runs.run_plan import PlannedTask, RunPlan, RunRecord
from services.results.statistics.sequential.betting import confidence_sequence, sequence_with_failures
from tests.fakes.results.memory_results import MemoryRows, MemoryRunRecords

SEED, ROWS = 5, 3000
ORDER = sample_order(SEED, ROWS)
QUERY = DecisionQuery("first", "base", SEED, alpha=0.05)


@dataclass
class Answers:
    """Outcomes by run and sample; `asked` are the samples that were read."""

    found: dict[str, dict[int, AnsweredSample]] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    async def read(
        self, run_id: str, samples: Sequence[int], metrics: Sequence[str]
    ) -> Mapping[int, AnsweredSample]:
        assert metrics == ["exact_match"]
        self.asked += samples
        found = self.found.get(run_id, {})
        return {sample: found[sample] for sample in samples if sample in found}

    def answer(self, run_id: str, samples: Sequence[int], score: float | None) -> None:
        one = AnsweredSample(0, 1, () if score is None else (score,))
        self.found.setdefault(run_id, {}).update(dict.fromkeys(samples, one))

    def answer_both(self, samples: Sequence[int], first: float | None, base: float | None) -> None:
        self.answer("first", samples, first)
        self.answer("base", samples, base)


def plan_of(run_id: str, rows: int = ROWS, metric: str = "exact_match", rollouts: int = 1) -> RunPlan:
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse(metric),))
    return RunPlan(run_id, (PlannedTask("t", "set", 0, rows, scoring),), rollouts)


def deciding(answers: Answers, *plans: RunPlan) -> DecideRuns:
    both = plans or (plan_of("first"), plan_of("base"))
    rows = MemoryRows(records={plan.run_id: RunRecord(plan, 1) for plan in both})
    return DecideRuns(MemoryRunRecords(rows), answers)


async def test_a_run_that_wins_enough_pairs_is_better_and_the_other_way_round_worse() -> None:
    answers = Answers()
    answers.answer_both(ORDER[:60], 1.0, 0.0)
    found = await deciding(answers).decide(QUERY)
    assert found is not None
    assert (found.verdict, found.pairs, found.failed) == (DecisionVerdict.BETTER, 60, 0)
    sequence = confidence_sequence(np.array([1.0]), np.array([60]))
    assert (found.difference, found.low, found.high) == (1.0, sequence.low, sequence.high)
    turned = replace(QUERY, run_id="base", base_run_id="first")
    other = await deciding(answers).decide(turned)
    assert other is not None
    assert other.verdict is DecisionVerdict.WORSE


async def test_equal_answers_are_equivalent_within_a_margin_only() -> None:
    answers = Answers()
    answers.answer_both(ORDER, 1.0, 1.0)
    assert await deciding(answers).decide(QUERY) is None
    found = await deciding(answers).decide(replace(QUERY, margin_points=2.0))
    assert found is not None
    assert found.verdict is DecisionVerdict.EQUIVALENT
    assert -0.02 < found.low < 0 < found.high < 0.02


async def test_samples_behind_a_gap_in_the_order_do_not_count() -> None:
    """Short answers come first: what is behind a gap is no random part."""
    answers = Answers()
    answers.answer_both([*ORDER[:10], *ORDER[11:500]], 1.0, 0.0)
    decide = deciding(answers)
    assert await decide.decide(QUERY) is None
    answers.answer("first", ORDER[10:11], 0.0)
    assert await decide.decide(QUERY) is None
    answers.answer("base", ORDER[10:11], 1.0)
    found = await decide.decide(QUERY)
    assert found is not None
    assert found.pairs == 500


async def test_a_look_reads_only_what_follows() -> None:
    answers = Answers()
    decide = deciding(answers)
    answers.answer_both(ORDER[:2500], 1.0, 1.0)
    assert await decide.decide(QUERY) is None
    assert len(answers.asked) == 2 * ROWS
    answers.asked.clear()
    assert await decide.decide(QUERY) is None
    assert len(answers.asked) == 2 * (ROWS - 2500) < 2 * CHUNK_SAMPLES


async def test_a_hundredth_of_new_pairs_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of many values costs as much as all of its pairs."""
    answers, tested = Answers(), list[int]()
    decided = AnsweredPairs.decided

    def counted(pairs: AnsweredPairs, alpha: float, margin_points: float | None) -> Decision | None:
        tested.append(pairs.position)
        return decided(pairs, alpha, margin_points)

    monkeypatch.setattr(AnsweredPairs, "decided", counted)
    decide = deciding(answers)
    for end in (1, 2, 1000, 1009, 1010, 1019, 1020):
        answers.answer_both(ORDER[:end], 1.0, 1.0)
        assert await decide.decide(QUERY) is None
    assert tested == [1, 2, 1000, 1010, 1020]


async def test_every_rollout_of_a_sample_is_waited_for() -> None:
    answers = Answers()
    answers.answer_both(ORDER[:200], 1.0, 0.0)
    plans = [plan_of(run_id, rollouts=2) for run_id in ("first", "base")]
    assert await deciding(answers, *plans).decide(QUERY) is None


async def test_failures_are_no_pairs_and_may_have_been_anything() -> None:
    answers = Answers()
    answers.answer_both(ORDER[:40], 1.0, 0.0)
    answers.answer_both(ORDER[40:60], None, 1.0)
    decide = deciding(answers)
    assert await decide.decide(QUERY) is None
    answers.answer_both(ORDER[60:200], 1.0, 0.0)
    found = await decide.decide(QUERY)
    assert found is not None
    assert (found.pairs, found.failed, found.difference) == (180, 20, 1.0)
    without = confidence_sequence(np.array([1.0]), np.array([180]))
    assert found.low < without.low
    assert found.low == confidence_sequence(np.array([1.0, -1.0]), np.array([180, 20])).low


def test_the_interval_with_failures_holds_that_of_any_answers_in_their_place() -> None:
    kinds, counts = np.array([1.0, 0.0, -1.0]), np.array([60, 400, 20])
    found = sequence_with_failures(kinds, counts, 10)
    for extra in ([10, 0, 0], [0, 10, 0], [0, 0, 10], [3, 3, 4]):
        inside = confidence_sequence(kinds, counts + np.array(extra))
        assert found.low <= inside.low
        assert inside.high <= found.high


async def test_the_first_decision_stays_whatever_comes_later_and_whoever_asks() -> None:
    answers = Answers()
    answers.answer_both(ORDER[:60], 1.0, 0.0)
    decide = deciding(answers)
    found = await asyncio.gather(*(decide.decide(QUERY) for _ in range(4)))
    answers.answer_both(ORDER[60:], 0.0, 1.0)
    assert [*found, await decide.decide(QUERY)] == [found[0]] * 5
    # Another replica reads what is stored.
    other = DecideRuns(decide.records, Answers())
    assert await other.decide(QUERY) == found[0]


async def test_a_decision_that_could_not_be_stored_is_stored_by_the_next_call() -> None:
    answers = Answers()
    answers.answer_both(ORDER[:60], 1.0, 0.0)
    decide = deciding(answers)
    stored = decide.records.decide
    failures = iter([True, False])

    async def store(*values: object) -> object:
        if next(failures):
            raise ConnectionError
        return await stored(*values)  # type: ignore[arg-type]  # passed on

    decide.records.decide = store  # type: ignore[method-assign,assignment]  # an outage of the store
    with pytest.raises(ConnectionError):
        await decide.decide(QUERY)
    assert await decide.decide(QUERY) is not None


async def test_runs_that_are_not_open_or_over_other_samples_are_not_decided() -> None:
    answers = Answers()
    answers.answer_both(ORDER[:200], 1.0, 0.0)
    first = plan_of("first")
    assert await deciding(answers, first).decide(QUERY) is None
    for base in (plan_of("base", rows=ROWS - 1), plan_of("base", metric="bleu"), plan_of("base", rollouts=2)):
        assert not paired_metrics(first, base)
        assert await deciding(answers, first, base).decide(QUERY) is None


def test_scores_are_shares_of_their_range_and_rollouts_averaged() -> None:
    pairs = AnsweredPairs()
    [metric] = paired_metrics(plan_of("first"), plan_of("base"))
    pairs.add(metric, (1.0, 0.0), (1.0, 1.0), 2)
    assert (pairs.position, pairs.differences) == (1, {-0.5: 1})


def test_a_sample_of_which_one_rollout_failed_is_no_pair() -> None:
    """The rollouts that did not fail are no random part of all: the score of the failed one may be any."""
    pairs = AnsweredPairs()
    [metric] = paired_metrics(plan_of("first"), plan_of("base"))
    pairs.add(metric, (1.0,), (1.0, 0.0), 2)
    assert (pairs.position, pairs.failed, pairs.count) == (1, 1, 0)


@pytest.mark.parametrize("metric", ["bleu", "ter", "f1"])
def test_figures_of_all_answers_and_scores_of_which_less_is_better_allow_no_pairs(metric: str) -> None:
    assert not paired_metrics(*[plan_of(run_id, metric=metric) for run_id in ("first", "base")])
