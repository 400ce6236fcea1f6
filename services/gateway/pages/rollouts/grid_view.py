"""Views of a grid: tasks by models, and the rollouts in each cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.v1 import outcome_pb2, rollout_service_pb2, run_pb2, summary_pb2
from proctor.values.metrics.catalogue import REWARD_UNSUSPECTED, UNSUSPECTED
from proctor.values.run import CHANGING_STATES
from proctor.values.usage import TokenUsage
from proctor.wire.report import suspicions_of
from proctor.wire.rollout_orders import row_rollouts
from services.gateway.http.presentation import present
from services.gateway.pages.addresses import address
from services.gateway.pages.rollouts.order_row import OrderRow, order_row
from services.gateway.pages.rows.answer_marks import outcome_badge
from services.gateway.pages.rows.figure import Figure
from services.gateway.pages.rows.runs import RunRow, run_shown
from services.gateway.pages.text import plain

# Bounds a page, however many models and rollouts there are.
MAX_SHOWN_ROLLOUTS = 400
MAX_TASKS = 50
SCORE = "reward"
# A sentence below the table has these figures.
_IN_WORDS = frozenset({UNSUSPECTED, REWARD_UNSUSPECTED})
_MAX_WORD = 60
_MAX_METRIC = 40


@dataclass(frozen=True, slots=True)
class RolloutBadge:
    """One rollout; `number` is from 0. `css_class` is that of its badge, "" while it is not recorded."""

    number: int
    css_class: str
    word: str
    note: str
    is_suspicious: bool = False

    @property
    def name(self) -> str:
        """The name of the cell where its badge is not seen."""
        suspicious = ", suspicious" if self.is_suspicious else ""
        return plain(f"rollout {self.number}: {self.word}{suspicious}", _MAX_WORD)

    @property
    def text(self) -> str:
        """The word in the badge; a badge for right, wrong or not recorded needs none."""
        word = "" if self.css_class in {"right", "wrong", ""} else plain(self.word, _MAX_WORD)
        return f"{word} ⚑".strip() if self.is_suspicious else word


@dataclass(frozen=True, slots=True)
class Cell:
    """The rollouts of one model at one task. `score` is the mean of those that are judged."""

    run_id: str
    rollouts: Sequence[RolloutBadge]
    score: float | None


@dataclass(frozen=True, slots=True)
class TaskRollouts:
    """A task; `number` is from 0."""

    number: int
    name: str
    cells: Sequence[Cell]

    @property
    def run_id(self) -> str:
        """The first run that works on it; "" where none does."""
        return next((cell.run_id for cell in self.cells if cell.rollouts), "")


class ModelRow(RunRow):
    """A run of the order with its figures."""

    figures: list[Figure]
    answered: int
    failures: dict[str, int]
    usage: TokenUsage
    cost: float | None
    currency: str
    # How many rollouts are suspicious, and the score of the others.
    suspicions: str

    def figure(self, name: str) -> Figure | None:
        return next((each for each in self.figures if each.metric == name), None)


@dataclass(frozen=True, slots=True)
class RunPart:
    """A run, its summary (empty before it is planned), and outcomes by the indexes of task and rollout."""

    run: run_pb2.Run
    summary: summary_pb2.RunSummary
    outcomes: Mapping[tuple[int, int], outcome_pb2.RecordedOutcome]


@dataclass(frozen=True, slots=True)
class GridView:
    """An order or one run of it: `path` is its address, `first` the index of the first task of this page."""

    path: str
    order: OrderRow
    models: Sequence[ModelRow]
    metrics: Sequence[str]
    tasks: Sequence[TaskRollouts]
    first: int
    following: int | None
    is_one_run: bool
    total: int
    now: datetime
    # Seconds between two renewals where they are not pushed.
    every: str = ""

    @property
    def metric_names(self) -> Sequence[str]:
        """The metrics, as the header of their columns has them."""
        return ["Score" if name == SCORE else plain(name, _MAX_METRIC) for name in self.metrics]

    @property
    def changing_runs(self) -> Sequence[str]:
        return [model.job_id for model in self.models if model.status in CHANGING_STATES]

    @property
    def is_live(self) -> bool:
        return bool(self.changing_runs)

    @property
    def recorded(self) -> int:
        return sum(model.progress.completed for model in self.models)

    @property
    def socket(self) -> str:
        """The address of the socket that pushes this page."""
        return f"{self.path}/socket?from={self.first}"

    def link(self, first: int = 0) -> str:
        return address(self.path, {"from": str(first or "")})

    @property
    def compare(self) -> str:
        """The address of the comparison of the completed runs; "" where there are fewer than two."""
        completed = [model.job_id for model in self.models if model.status == "completed"][:6]
        chosen = [("run", run_id) for run_id in completed]
        return address("/compare", [*chosen, ("suite", self.order.suite)]) if len(completed) > 1 else ""


def tasks_per_page(order: rollout_service_pb2.RolloutsOrder, runs: int) -> int:
    return max(1, min(MAX_TASKS, MAX_SHOWN_ROLLOUTS // max(1, runs * order.rollouts)))


def grid_view(
    path: str, order: rollout_service_pb2.RolloutsOrder, parts: Sequence[RunPart], first: int, now: datetime
) -> GridView:
    """`parts` are the runs to show; `first` is the index of the first task of the page."""
    size = tasks_per_page(order, len(parts))
    names = order.task_ids[first : first + size]
    rollouts = [row_rollouts(part.run.order, len(order.task_ids)) for part in parts]
    tasks = [
        TaskRollouts(at, name, [_cell(part, at, own[at]) for part, own in zip(parts, rollouts, strict=True)])
        for at, name in enumerate(names, first)
    ]
    models = [_model_row(part) for part in parts]
    shown = dict.fromkeys(figure.metric for model in models for figure in model.figures)
    metrics = [name for name in shown if name not in _IN_WORDS]
    following = first + size if first + size < len(order.task_ids) else None
    return GridView(
        path=path,
        order=order_row(order),
        models=models,
        metrics=sorted(metrics, key=lambda name: name != SCORE),
        tasks=tasks,
        first=first,
        following=following,
        is_one_run=path.startswith("/runs/"),
        total=sum(map(sum, rollouts)),
        now=now,
    )


def _cell(part: RunPart, task: int, rollouts: int) -> Cell:
    found = [part.outcomes.get((task, number)) for number in range(rollouts)]
    scores = [one.scores[SCORE] for one in found if one and SCORE in one.scores]
    return Cell(
        run_id=part.run.run_id,
        rollouts=[rollout_badge(number, one) for number, one in enumerate(found)],
        score=sum(scores) / len(scores) if scores else None,
    )


def rollout_badge(number: int, recorded: outcome_pb2.RecordedOutcome | None) -> RolloutBadge:
    """`number` is from 0."""
    if recorded is None:
        return RolloutBadge(number, "", "not recorded yet", "")
    css_class, word = outcome_badge(recorded, (SCORE,))
    is_suspicious = recorded.scores.get(UNSUSPECTED, 1.0) < 1.0
    note = f"{_note(recorded.outcome)}{', suspicious' if is_suspicious else ''}"
    return RolloutBadge(number, css_class, word, note, is_suspicious)


def _note(outcome: outcome_pb2.Outcome) -> str:
    """Tooltip: how the rollout ended."""
    if outcome.HasField("failure"):
        return outcome.failure.message
    tokens = outcome.usage.prompt_tokens + outcome.usage.completion_tokens
    return f"{outcome.answer.finish_reason.replace('_', ' ')}, {tokens} tokens"


def _model_row(part: RunPart) -> ModelRow:
    failures = dict(part.run.progress.failures) or dict(part.summary.failures)
    return run_shown(
        ModelRow,
        part.run,
        figures=[present(Figure, each) for task in part.summary.tasks for each in task.metrics],
        answered=part.summary.answered,
        failures=dict(sorted(failures.items(), key=lambda each: (-each[1], each[0]))),
        currency=part.run.price.currency,
        error=part.run.error.message,
        suspicions=suspicions_of(part.summary),
    )
