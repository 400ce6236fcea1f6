"""Views of a run's answers for their templates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from proctor.v1 import outcome_pb2, summary_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.wire.values import USAGE
from services.gateway.api.dataset_runs.rows import given_answer
from services.gateway.http.presentation import optional
from services.gateway.pages.answer_marks import MarkView, mark_of, outcome_badge
from services.gateway.pages.answers.filters import FAILURES, SORTS
from services.gateway.pages.runs_table import RunRow

_GLIMPSE = 120
# Filters that the form shows folded.
_RARE = frozenset(
    {"metric", "min_score", "max_score", "min_characters", "max_characters", "marked", "failure"}
)


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer or a failure in the table. Texts are their beginnings; `css_class` is that of its badge."""

    key: str
    row_id: str
    rollout: int
    task: str
    css_class: str
    word: str
    prompt: str
    answer: str
    target: str
    seconds: float | None
    mark: str


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A choice of a sample, with its log-likelihood where the model gave one."""

    text: str
    logprob: float | None
    is_greedy: bool


@dataclass(frozen=True, slots=True)
class AnswerDetail:
    """All that is recorded of one answer or failure."""

    row: AnswerRow
    prompt: str
    answer: str
    prediction: str
    target: str
    choices: Sequence[ChoiceRow]
    scores: Sequence[tuple[str, float]]
    failure: str
    body: str
    tokens: Sequence[tuple[str, int]]
    first_token_seconds: float | None
    finish_reason: str
    attempt: int
    digest: str
    is_reused: bool
    marks: MarkView


@dataclass(frozen=True, slots=True)
class AnswersView:
    """A page of answers, and the chosen one; `filters` are those of its address, without empty ones.

    `fault` is the sentence about a filter that the run refuses.
    """

    run: RunRow
    rows: Sequence[AnswerRow]
    chosen: AnswerDetail | None
    following: str
    filters: Mapping[str, str]
    tasks: Sequence[str]
    metrics: Sequence[str]
    recorded: int
    failed: int
    unparsed: int
    fault: str

    def link(self, **changes: str) -> str:
        """The address with other filters, from the first page and without a chosen answer."""
        changed = {**self.filters, "after": "", "row": "", "from": "", **changes}
        kept = {name: value for name, value in changed.items() if value}
        path = f"/runs/{self.run.job_id}/results"
        return f"{path}?{urlencode(kept)}" if kept else path

    def get(self, name: str) -> str:
        return self.filters.get(name, "")

    @property
    def address(self) -> str:
        """The address of what is shown."""
        return self.address_with(row=self.get("row"))

    def address_with(self, **changes: str) -> str:
        """The address of this page of the list."""
        return self.link(**{"after": self.get("after"), "from": self.get("from"), **changes})

    @property
    def lm_eval_task(self) -> str:
        """The task whose answers are offered as a file of lm-eval, which holds one task; "" for none."""
        if self.run.dataset_id or not self.recorded:
            return ""
        return self.get("task") or (self.tasks[0] if len(self.tasks) == 1 else "")

    @property
    def sorts(self) -> Mapping[str, str]:
        """The orders that are offered, in words."""
        return SORTS

    @property
    def failures(self) -> Sequence[str]:
        return FAILURES

    @property
    def leaves_out(self) -> bool:
        """Answers without the value that the list is sorted by are not on it."""
        return self.get("sort").removeprefix("-") in {"score", "length", "time"}

    def sort_link(self, name: str, first: str) -> str:
        """The list sorted by a column: `first` is the order of the first click, and the second turns it."""
        turned = name if first.startswith("-") else f"-{name}"
        return self.link(sort=turned if self.get("sort") == first else first)

    def aria_sort(self, name: str) -> str:
        """The direction in which the list is sorted by a column, as ARIA names it."""
        return {name: "ascending", f"-{name}": "descending"}.get(self.get("sort"), "none")

    @property
    def is_filtered(self) -> bool:
        return bool(self.filters.keys() - {"after", "row", "from", "sort"})

    @property
    def has_rare_filters(self) -> bool:
        return bool(self.filters.keys() & _RARE)


def answers_view(
    run: RunRow,
    summary: summary_pb2.RunSummary,
    page: results_pb2.ListOutcomesResponse,
    filters: Mapping[str, str],
    fault: str = "",
) -> AnswersView:
    """`summary` is empty before the run is planned."""
    metrics_of = {task.task: [figure.metric for figure in task.metrics] for task in summary.tasks}
    wanted = filters.get("row", "")
    rows, chosen = [], None
    for recorded in page.outcomes:
        row = _row(recorded, metrics_of.get(recorded.task, ()))
        rows.append(row)
        if row.key == wanted:
            chosen = _detail(row, recorded, run.job_id)
    return AnswersView(
        run=run,
        rows=rows,
        chosen=chosen,
        following=page.next_page_token,
        filters=filters,
        tasks=_with([task.task for task in summary.tasks], filters.get("task", "")),
        metrics=_with(
            dict.fromkeys(name for names in metrics_of.values() for name in names), filters.get("metric", "")
        ),
        recorded=summary.answered + summary.failed,
        failed=summary.failed,
        unparsed=summary.unparsed,
        fault=fault,
    )


def _with(known: Iterable[str], given: str) -> Sequence[str]:
    """The options of a field, and the one of the address: the form does not drop it in silence."""
    return [*known] if not given or given in known else [*known, given]


def _row(recorded: outcome_pb2.RecordedOutcome, metrics: Sequence[str]) -> AnswerRow:
    outcome, answer = recorded.outcome, given_answer(recorded.outcome)
    css_class, word = outcome_badge(recorded, metrics)
    has_time = outcome.HasField("answer") and not recorded.is_reused
    text = (answer.text if answer else "") or recorded.prediction
    return AnswerRow(
        key=f"{outcome.sample}.{outcome.rollout}",
        row_id=recorded.row_id or str(recorded.doc_id),
        rollout=outcome.rollout,
        task=recorded.task,
        css_class=css_class,
        word=word,
        prompt=_glimpse(recorded.prompt.rstrip().rpartition("\n\n")[2]),
        answer=_glimpse(text if answer else outcome.failure.message),
        target=_glimpse(recorded.target),
        seconds=outcome.timing.total_seconds if has_time else None,
        mark=mark_of(recorded),
    )


def _detail(row: AnswerRow, recorded: outcome_pb2.RecordedOutcome, run_id: str) -> AnswerDetail:
    outcome, answer = recorded.outcome, given_answer(recorded.outcome)
    shown = answer or outcome_pb2.Answer()
    return AnswerDetail(
        row=row,
        prompt=recorded.prompt,
        answer=shown.text,
        prediction=recorded.prediction if recorded.prediction != shown.text else "",
        target=recorded.target,
        choices=_choices(recorded.choices, shown),
        scores=sorted(recorded.scores.items()),
        failure=outcome.failure.message if outcome.HasField("failure") else "",
        body=shown.body_json,
        tokens=[(kind, count) for kind, count in USAGE.from_proto(outcome.usage).by_kind.items() if count],
        first_token_seconds=optional(outcome.timing, "first_token_seconds"),
        finish_reason=shown.finish_reason,
        attempt=outcome.attempt,
        digest=recorded.digest.hex(),
        is_reused=recorded.is_reused,
        marks=MarkView(run_id, outcome.sample, outcome.rollout, mark_of(recorded), "1"),
    )


def _choices(texts: Sequence[str], answer: outcome_pb2.Answer) -> list[ChoiceRow]:
    """A model that answered with text gave no log-likelihoods."""
    scores = list(answer.choices) if len(answer.choices) == len(texts) else []
    if not scores:
        return [ChoiceRow(text, None, is_greedy=False) for text in texts]
    return [
        ChoiceRow(text, score.logprob, score.is_greedy) for text, score in zip(texts, scores, strict=True)
    ]


def _glimpse(text: str) -> str:
    """The beginning, in one line."""
    line = " ".join(text[: 4 * _GLIMPSE].split())
    return line if len(line) <= _GLIMPSE and len(text) <= 4 * _GLIMPSE else f"{line[:_GLIMPSE]}…"
