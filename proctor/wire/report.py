"""Which figures stand for a run in the report of a model, and of which kind a run is."""

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from proctor.v1 import leaderboard_pb2, run_pb2, summary_pb2
from proctor.values.metrics.catalogue import REWARD_UNSUSPECTED, UNSUSPECTED
from proctor.values.rollout import suspicions_sentence
from proctor.values.scoring import benchmark_group
from proctor.wire.enums import shown_word
from proctor.wire.well_known import read_struct

_REWARD, _SCORE = "reward", "score"
_NAMES = {
    "ScoringMethod": "scored by",
    "PromptForm": "prompt form",
    "Truncation": "truncation",
    "Reasoning": "reasoning",
}
# Values that say what holds where nothing is said.
_SAME_AS_NONE = frozenset(
    {("Truncation", run_pb2.TRUNCATION_NONE), ("Reasoning", run_pb2.REASONING_SEPARATE)}
)
# Longer values of a provider's parameters are cut.
_MAX_VALUE = 40


class ReportKind(StrEnum):
    """The data types of a report, in its order."""

    SUITE = "suite"
    DATASET = "data set"
    ROLLOUTS = "rollouts"

    @property
    def heading(self) -> str:
        return {"suite": "Suites", "data set": "Data sets", "rollouts": "Rollouts"}[self.value]


def figures_of(summary: summary_pb2.RunSummary) -> list[summary_pb2.MetricFigure]:
    """The figures that stand for a run.

    For rollouts: the score, pass@1, and pass@k and pass^k with the largest k. Otherwise: the first figure of
    the benchmark and its score, or the first two figures of the tasks if there is no group.
    """
    of_tasks = _of_tasks(summary)
    if kind_of_figures(summary) is ReportKind.ROLLOUTS:
        by_name = {figure.metric: figure for figure in of_tasks}
        names = (_REWARD, "pass@1", *_largest(by_name, "pass@"), *_largest(by_name, "pass^"))
        return [by_name[name] for name in dict.fromkeys(names) if name in by_name]
    benchmark = benchmark_group(summary.groups)
    of_suite = list(benchmark.metrics) if benchmark else []
    score = [figure for figure in of_suite[1:] if figure.metric == _SCORE]
    return [*of_suite[:1], *score] or of_tasks[:2]


def kind_of_figures(summary: summary_pb2.RunSummary) -> ReportKind | None:
    """Only rollouts have a reward."""
    has_reward = any(figure.metric == _REWARD for figure in _of_tasks(summary))
    return ReportKind.ROLLOUTS if has_reward else None


def kind_of(entry: leaderboard_pb2.LeaderboardEntry, summary: summary_pb2.RunSummary) -> ReportKind:
    over_rows = ReportKind.DATASET if entry.dataset_name else ReportKind.SUITE
    return kind_of_figures(summary) or over_rows


def latest_complete(
    entries: Iterable[leaderboard_pb2.LeaderboardEntry],
) -> Mapping[str, leaderboard_pb2.LeaderboardEntry]:
    """The first completed run of each suite or data set, of entries with the newest first."""
    latest: dict[str, leaderboard_pb2.LeaderboardEntry] = {}
    for entry in entries:
        if entry.state == run_pb2.RUN_STATE_COMPLETED:
            latest.setdefault(entry.benchmark, entry)
    return latest


def run_note(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> str:
    """How a run differs from one rollout over everything that was read, under conditions that nobody chose.

    Empty if it does not.
    """
    order = run.order
    parts = (
        f"first {order.limit} rows" if order.HasField("limit") else "",
        f"only {', '.join(order.tasks)}" if order.tasks else "",
        f"{order.rollouts} rollouts" if order.rollouts > 1 else "",
        *_chosen_conditions(order),
        f"{summary.failed} failed" if summary.failed else "",
        unparsed_share(summary),
        suspicions_of(summary),
    )
    return ", ".join(part for part in parts if part)


def _chosen_conditions(order: run_pb2.RunOrder) -> Iterator[str]:
    """What an order says of how the model is asked and scored, a phrase each."""
    if order.HasField("num_fewshot"):
        yield f"{order.num_fewshot} {'shot' if order.num_fewshot == 1 else 'shots'}"
    for field, value in order.params.ListFields():
        if field.name != "provider_params":
            yield f"{field.name} {value:g}" if isinstance(value, float) else f"{field.name} {value}"
    for name, value in read_struct(order.params.provider_params).items():
        text = json.dumps(value, ensure_ascii=False)
        yield f"{name} {text if len(text) <= _MAX_VALUE else f'{text[:_MAX_VALUE]}…'}"
    for enum, number in (
        (run_pb2.ScoringMethod, order.scoring_method),
        (run_pb2.PromptForm, order.prompt_form),
        (run_pb2.Truncation, order.truncation),
        (run_pb2.Reasoning, order.reasoning),
    ):
        if number and (enum.DESCRIPTOR.name, number) not in _SAME_AS_NONE:
            yield f"{_NAMES[enum.DESCRIPTOR.name]} {shown_word(enum, number)}"
    if order.imported_from:
        yield f"imported from {order.imported_from}"


def unparsed_share(summary: summary_pb2.RunSummary) -> str:
    """Of the answers, in words; empty where all were read."""
    return f"{summary.unparsed / summary.answered:.1%} unparsed" if summary.unparsed else ""


def suspicions_of(summary: summary_pb2.RunSummary) -> str:
    """How many rollouts are suspicious, and the score of the others; empty where none is."""
    means = {figure.metric: figure.mean for figure in _of_tasks(summary) if figure.HasField("mean")}
    return suspicions_sentence(
        means.get(UNSUSPECTED), means.get(REWARD_UNSUSPECTED), summary.answered, is_whole=not summary.failed
    )


def suspicions_of_entry(entry: leaderboard_pb2.LeaderboardEntry) -> str:
    """The same for the run of a leaderboard or a history."""
    return suspicions_sentence(
        entry.unsuspected if entry.HasField("unsuspected") else None,
        entry.reward_unsuspected if entry.HasField("reward_unsuspected") else None,
        entry.answered,
        is_whole=not entry.failed,
    )


def _of_tasks(summary: summary_pb2.RunSummary) -> list[summary_pb2.MetricFigure]:
    return [figure for task in summary.tasks for figure in task.metrics]


def _largest(names: Iterable[str], beginning: str) -> list[str]:
    sizes = [name for name in names if name.startswith(beginning) and name.removeprefix(beginning).isdigit()]
    return sorted(sizes, key=lambda name: int(name.removeprefix(beginning)))[-1:]
