"""Views of a run's answers for their templates."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from proctor.v1 import outcome_pb2, run_pb2, summary_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.names.model_name import name_of
from proctor.values.scoring import with_choice_instruction
from proctor.values.usage import TokenUsage
from services.gateway.api.dataset_runs.rows import answer_fields, given_answer, judged_fields
from services.gateway.api.dataset_runs.schemas import JudgedAnswerShown
from services.gateway.api.runs.repeat import params_of
from services.gateway.http.presentation import json_value, present
from services.gateway.pages import text
from services.gateway.pages.addresses import FilteredPage
from services.gateway.pages.answers.filters import DISAGREEMENT, FAILURES, SORTS
from services.gateway.pages.rows.answer_marks import (
    judge_of,
    mark_of,
    outcome_badge,
    silence,
    verdict_badge,
    verdict_bounds,
)
from services.gateway.pages.rows.runs import RunRow, run_row

# The model chooses in words, after an instruction.
_IN_WORDS = frozenset({run_pb2.SCORING_METHOD_GENERATE, run_pb2.SCORING_METHOD_CONSTRAINED})
# Characters of an id that a narrow column shows.
_SHORT_ID = 5
_DISPUTED = 0.5
_SORTED_BY = {
    "score": "score",
    "length": "answer",
    "time": "time of its own",
    "disagreement": "second opinion",
}
# Filters that the form shows folded.
_RARE = frozenset(
    {"metric", "min_score", "max_score", "min_characters", "max_characters", "marked", "failure"}
)


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A choice of a sample, with its log-likelihood where the model gave one."""

    text: str
    logprob: float | None
    is_greedy: bool


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """A judge of the run; `label` is short and tells it from the others, "" where it is alone."""

    name: str
    label: str


class AnswerRow(JudgedAnswerShown):
    """All that is recorded of an answer or a failure.

    `text` has none of the reasoning; it is None for a failure without an answer.

    `css_class` and `word` are those of its badge; `name` is the key that marks it, and `subject` "verdict"
    for an answer of a judge. `sent_prompt` is the prompt as the model read it; `judges` are those of its run,
    by the ids of the runs of the verdicts.
    """

    run_id: str
    row_id: str
    task: str
    css_class: str
    word: str
    prompt: str
    sent_prompt: str
    text: str | None
    reasoning: str
    target: str
    choices: list[ChoiceRow]
    body_json: str
    usage: TokenUsage
    first_token_seconds: float | None
    finish_reason: str
    attempt: int
    digest: str
    is_reused: bool
    judges: dict[str, NamedJudge]
    name: str = "1"
    subject: str = ""

    @property
    def key(self) -> str:
        return f"{self.sample}.{self.rollout}"

    @property
    def mark(self) -> str:
        return mark_of(self)

    @property
    def judged_key(self) -> str:
        """Of an answer of a judge: the key of the answer that it judges."""
        return ".".join(self.row_id.split(".")[:2])

    @property
    def by_judge(self) -> Sequence[tuple[NamedJudge, str]]:
        """Each judge with what it says, in one or several verdicts."""
        said: dict[str, dict[str, None]] = {}
        for one in self.verdicts:
            said.setdefault(one.job_id, {})[one.verdict or one.status] = None
        return [(self.judges[job_id], "/".join(words)) for job_id, words in said.items()]

    @property
    def is_disputed(self) -> bool:
        """Judges and people are apart by half of the scale or more."""
        return self.disagreement is not None and self.disagreement >= _DISPUTED

    @property
    def has_logprobs(self) -> bool:
        return any(choice.logprob is not None for choice in self.choices)

    @property
    def question(self) -> str:
        """The last part of the prompt, without its examples."""
        return self.prompt.rstrip().rpartition("\n\n")[2]

    @property
    def outcome(self) -> str:
        """The answer, or why there is none."""
        if self.text is None:
            return self.error.message if self.error else ""
        return self.text or self.prediction or self.silence

    @property
    def silence(self) -> str:
        """Why the answer has no text, as far as that is known; empty where it has one."""
        return silence(self.reasoning, self.finish_reason) if self.text == "" and not self.prediction else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersView(FilteredPage):
    """A page of answers, and the one shown in full; it is the first where `is_asked` is false.

    `fault` is the sentence about a filter that the run refuses. `request` and `response` are those of
    the shown answer, as JSON, and "" where it has no more than texts. `judges` counts those of the run, and
    `judge` is set for a run of verdicts.
    """

    run: RunRow
    judges: int
    judge: run_pb2.Judge | None
    rows: Sequence[AnswerRow]
    chosen: AnswerRow | None
    request: str
    is_asked: bool
    following: str
    searched: int
    tasks: Sequence[str]
    metrics: Sequence[str]
    recorded: int
    failed: int
    unparsed: int
    fault: str

    @property
    def response(self) -> str:
        document = self.chosen.body_json if self.chosen else ""
        try:
            return text.json_lines(json_value(document)) if document else ""
        except ValueError:
            return document

    @property
    def address(self) -> str:
        """The address of what is shown."""
        return self.address_with(row=self.get("row"))

    def address_with(self, **changes: str) -> str:
        """The address of this page of the list."""
        return self.link(**{"after": self.get("after"), "from": self.get("from"), **changes})

    @property
    def shared(self) -> tuple[str, str]:
        """What all ids of the page begin and end with; "" where that is short enough to be shown."""
        ids = {row.row_id for row in self.rows}
        if len(ids) == 1:
            return "", ""
        begin = _alike(ids)
        end = _alike({row_id[len(begin) :][::-1] for row_id in ids})[::-1]
        return begin if len(begin) > _SHORT_ID else "", end if len(end) > _SHORT_ID else ""

    @property
    def lm_eval_task(self) -> str:
        """The task whose answers are offered as a file of lm-eval, which holds one task; "" for none."""
        if self.run.dataset_id or not self.recorded:
            return ""
        return self.get("task") or (self.tasks[0] if len(self.tasks) == 1 else "")

    @property
    def search_on(self) -> str:
        """The address from which a script goes on searching by itself."""
        return self.link(after=self.following, on="1")

    @property
    def has_tasks(self) -> bool:
        """Whether the rows are of several tasks."""
        return len({row.task for row in self.rows}) > 1

    @property
    def has_outcomes(self) -> bool:
        """Whether the rows say more than what is filtered by, or that all of a run without metrics do."""
        known = {self.get("status"), "" if self.metrics else "answered"}
        return bool({row.word for row in self.rows} - known)

    @property
    def has_targets(self) -> bool:
        """Whether a row has a target, and not all have the same."""
        targets = {row.target for row in self.rows}
        return len(targets) > 1 or (len(self.rows) == 1 and targets != {""})

    @property
    def sorts(self) -> Mapping[str, str]:
        """The orders that are offered, in words."""
        return {**SORTS, **DISAGREEMENT} if self.judges else SORTS

    @property
    def statuses(self) -> Sequence[tuple[str, str]]:
        """Statuses and ends of the scale that are offered, in words: those of verdicts for their runs."""
        best, worst = ("right", "wrong") if self.judge is None else verdict_bounds(self.judge)
        ends = [(value, name) for value, name in (("right", best), ("wrong", worst)) if name]
        return [("", "all"), *ends, ("unparsed", "unparsed"), ("failed", "failed")]

    @property
    def failures(self) -> Sequence[str]:
        return FAILURES

    @property
    def leaves_out(self) -> bool:
        """Answers without the value that the list is sorted by are not on it."""
        return self.get("sort").removeprefix("-") in _SORTED_BY

    @property
    def left_out(self) -> str:
        """What the answers that are left out do not have."""
        return _SORTED_BY[self.get("sort").removeprefix("-")]

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
    run: run_pb2.Run,
    summary: summary_pb2.RunSummary,
    page: results_pb2.ListOutcomesResponse,
    filters: Mapping[str, str],
    fault: str = "",
    *,
    opens_first: bool = False,
) -> AnswersView:
    """`summary` is empty before the run is planned. Where no answer is chosen the first may be shown."""
    metrics_of = {task.task: [figure.metric for figure in task.metrics] for task in summary.tasks}
    judges = _named(page.judges)
    rows = [_row(recorded, run, metrics_of.get(recorded.task, ()), judges) for recorded in page.outcomes]
    chosen = next((row for row in rows if row.key == filters.get("row")), None)
    shown = chosen or (rows[0] if rows and opens_first and not filters.get("row") else None)
    return AnswersView(
        path=f"/runs/{run.run_id}/results",
        run=run_row(run),
        judges=len(page.judges),
        judge=judge_of(run),
        rows=rows,
        chosen=shown,
        request=_request(page.outcomes[rows.index(shown)], run) if shown else "",
        is_asked=chosen is not None,
        following=page.next_page_token,
        searched=page.searched_samples,
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


def _alike(words: Collection[str]) -> str:
    """What all of them begin with."""
    pairs = zip(min(words, default=""), max(words, default=""), strict=False)
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _with(known: Iterable[str], given: str) -> Sequence[str]:
    """The options of a field, and the one of the address: the form does not drop it in silence."""
    return [*known] if not given or given in known else [*known, given]


def _named(judges: Sequence[outcome_pb2.AnswerJudge]) -> dict[str, NamedJudge]:
    """By the ids of their runs. What differs between them is the label: the prompt, the model, or both."""
    prompts, models = [judge.prompt for judge in judges], [judge.model for judge in judges]
    short = [model.rpartition("/")[2] for model in models]
    both = [f"{model}, {prompt}" for model, prompt in zip(short, prompts, strict=True)]
    labels = next((each for each in (prompts, short) if len(set(each)) == len(judges)), both)
    return {
        judge.run_id: NamedJudge(f"{judge.model}, {judge.prompt}", label if len(judges) > 1 else "")
        for judge, label in zip(judges, labels, strict=True)
    }


def _row(
    recorded: outcome_pb2.RecordedOutcome,
    run: run_pb2.Run,
    metrics: Sequence[str],
    judges: dict[str, NamedJudge],
) -> AnswerRow:
    outcome, answer = recorded.outcome, given_answer(recorded.outcome)
    judge = judge_of(run)
    css_class, word = verdict_badge(recorded, judge) if judge else outcome_badge(recorded, metrics)
    return present(
        AnswerRow,
        recorded,
        outcome,
        outcome.timing,
        answer or outcome_pb2.Answer(),
        **answer_fields(recorded, run.order),
        **judged_fields(recorded),
        run_id=run.run_id,
        subject="verdict" if judge else "",
        judges=judges,
        row_id=recorded.row_id or str(recorded.doc_id),
        css_class=css_class,
        word=word,
        sent_prompt=_sent_prompt(recorded, run),
        text=answer.text if answer else None,
        choices=_choices(recorded.choices, answer or outcome_pb2.Answer()),
        digest=recorded.digest.hex(),
    )


def _sent_prompt(recorded: outcome_pb2.RecordedOutcome, run: run_pb2.Run) -> str:
    """The prompt with the instruction that the worker put before it."""
    if not recorded.choices or run.scoring_method not in _IN_WORDS:
        return recorded.prompt
    return with_choice_instruction(recorded.prompt, recorded.choices)


def _request(recorded: outcome_pb2.RecordedOutcome, run: run_pb2.Run) -> str:
    """The request of a row, as JSON, with the model and the parameters of its run; "" for a plain prompt."""
    own = json_value(recorded.request_json)
    if not isinstance(own, dict):
        return ""
    return text.json_lines({"model": name_of(run.order.model), **params_of(run.order), **own})


def _choices(texts: Sequence[str], answer: outcome_pb2.Answer) -> list[ChoiceRow]:
    """A model that answered with text gave no log-likelihoods."""
    scores = list(answer.choices) if len(answer.choices) == len(texts) else []
    if not scores:
        return [ChoiceRow(text, None, is_greedy=False) for text in texts]
    return [
        ChoiceRow(text, score.logprob, score.is_greedy) for text, score in zip(texts, scores, strict=True)
    ]
