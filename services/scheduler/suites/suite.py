"""A suite and its tasks as their files declare them, its summary in lists, and its stored versions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from proctor.values.code import DEFAULT_CODE_SECONDS, CodeAnswer
from proctor.values.generation import DEFAULT_MAX_TOKENS
from proctor.values.judging.named_judge import NamedJudge
from proctor.values.names.suite_name import versioned_name
from proctor.values.scoring import OutputType, TaskGroup, TaskScoring
from services.scheduler.suites.errors import UnknownTask, listed
from services.scheduler.suites.rows.row_source import RowsReference, SourceRow
from services.scheduler.suites.rows.task_code import TaskCode
from services.scheduler.suites.templates.prompt_template import PromptTemplate


class FewshotSampler(StrEnum):
    DEFAULT = "default"
    FIRST_N = "first_n"


# In the metadata of a task.
ASKS_NO_MODEL = "asks_no_model"


@dataclass(frozen=True, slots=True)
class FewshotRule:
    """How examples are drawn. `drops_document`: a document is never its own example.

    `samples` are rows in the task's file; if there are any, they are the pool. `delimiter` follows each
    example, `target_delimiter` precedes its answer; None: as before the answer of the question. `code` draws
    the examples instead of `sampler`.
    """

    sampler: FewshotSampler = FewshotSampler.DEFAULT
    drops_document: bool = True
    num_fewshot: int = 0
    delimiter: str = "\n\n"
    target_delimiter: str | None = None
    seed: int = 1234
    samples: tuple[SourceRow, ...] = ()
    code: TaskCode | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """Generation parameters of a task that asks for text."""

    until: tuple[str, ...] = ()
    max_tokens: int = DEFAULT_MAX_TOKENS
    temperature: float = 0.0
    top_p: float | None = None


@dataclass(frozen=True, slots=True)
class TaskTemplates:
    """How a row becomes a question. `choices` is one list for all rows, or a template that gives one.

    `target_indexes`: the right choices of every row, if the file lists several; `target` is the first.
    `answers` gives the texts that a chosen choice is compared with, `choice_texts` the text of each choice
    for that comparison, if it differs from the choice. `wrong_texts` are answers known to be wrong.
    `answer_begin` is a text that every answer begins with: it ends the prompt. `text_may_be_index`: where
    `text` gives a number, it is that of the right choice, the choices are contexts, and `target` is what
    follows each of them. `counted_text` is the text whose words and bytes count, where it is not the target.
    `row_description` is the description where it says something of the row that is asked.
    """

    text: PromptTemplate
    target: PromptTemplate
    choices: tuple[str, ...] | PromptTemplate = ()
    cluster: PromptTemplate | None = None
    description: str = ""
    answers: PromptTemplate | None = None
    wrong_texts: PromptTemplate | None = None
    target_indexes: tuple[int, ...] = ()
    choice_texts: PromptTemplate | None = None
    answer_begin: PromptTemplate | None = None
    text_may_be_index: bool = False
    counted_text: PromptTemplate | None = None
    row_description: PromptTemplate | None = None


@dataclass(frozen=True, slots=True)
class CodeRule:
    """How answers are executed: `prefix` is program text before the answer, the target is what follows it."""

    prefix: PromptTemplate | None = None
    answer: CodeAnswer = CodeAnswer.WHOLE
    timeout_seconds: float = DEFAULT_CODE_SECONDS


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """`definition_digest` is the SHA-256 of the merged declaration; runs store it.

    `example_templates`: how examples are worded, where that differs from the question.
    `scoring_code`: Python code that scores the answers, as `scoring` names it.
    `rollout_column`: where agents work on the rows, the column with the message RolloutSpec in base64.
    `repeats`: the rollouts that a run of it has.
    """

    name: str
    version: str
    rows: RowsReference
    fewshot_rows: RowsReference | None
    templates: TaskTemplates
    scoring: TaskScoring
    fewshot: FewshotRule = FewshotRule()
    example_templates: TaskTemplates | None = None
    generation: Generation | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    definition_digest: str = ""
    code: CodeRule | None = None
    rollout_column: str = ""
    scoring_code: TaskCode | None = None
    repeats: int = 1

    @property
    def asks_no_model(self) -> bool:
        """Rollouts of it show that the tasks are sound, and nothing of a model."""
        return bool(self.rollout_column and self.metadata.get(ASKS_NO_MODEL))

    @property
    def of_examples(self) -> "TaskDefinition":
        """The task as it words its examples."""
        delimiter = self.fewshot.target_delimiter
        scoring = self.scoring if delimiter is None else replace(self.scoring, target_delimiter=delimiter)
        return replace(self, templates=self.example_templates or self.templates, scoring=scoring)

    @property
    def has_code(self) -> bool:
        """Python code makes its rows, what is asked of them, or scores the answers."""
        return bool(self.code_keys)

    @property
    def code_keys(self) -> tuple[str, ...]:
        """The keys whose Python code is executed."""
        of_examples = self.fewshot_rows.code if self.fewshot_rows else None
        codes = (self.rows.code, of_examples, self.fewshot.code, self.scoring_code)
        functions = (function for code in codes if code is not None for function in code.functions)
        return tuple(dict.fromkeys(function.key for function in functions))


@dataclass(frozen=True, slots=True)
class SuiteDefinition:
    """`version` of a user's suite counts from 1, 0 is an installed one; `user` added this version.

    The last group is the whole suite. `judges` are those of orders that name none.
    """

    name: str
    description: str
    tasks: tuple[TaskDefinition, ...]
    groups: tuple[TaskGroup, ...] = ()
    version: int = 0
    digest: str = ""
    user: str = ""
    project_id: int = 0
    judges: tuple[NamedJudge, ...] = ()

    def task(self, name: str) -> TaskDefinition:
        for task in self.tasks:
            if task.name == name:
                return task
        supported = listed([task.name for task in self.tasks])
        raise UnknownTask(suite=self.name, task=name, supported=supported)

    def as_stored(self, stored: "StoredSuite") -> "SuiteDefinition":
        """This suite as that version of a user's."""
        return replace(
            self,
            version=stored.version,
            digest=stored.digest,
            user=stored.user,
            project_id=stored.project_id,
        )


@dataclass(frozen=True, slots=True)
class TaskListing:
    name: str
    version: str
    output_type: OutputType
    metrics: tuple[str, ...]
    row_source: str
    has_code: bool = False
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class JudgeListing:
    model: str
    prompt: str
    scale: str
    has_document: bool


@dataclass(frozen=True, slots=True)
class SuiteListing:
    """A suite in lists: all but `tasks` and `judges` as in `SuiteDefinition`."""

    name: str
    description: str
    tasks: tuple[TaskListing, ...]
    version: int = 0
    digest: str = ""
    user: str = ""
    project_id: int = 0
    judges: tuple[JudgeListing, ...] = ()


def summary_of(suite: SuiteDefinition) -> SuiteListing:
    return SuiteListing(
        suite.name,
        suite.description,
        tuple(_task(task) for task in suite.tasks),
        suite.version,
        suite.digest,
        suite.user,
        suite.project_id,
        tuple(_judge(judge) for judge in suite.judges),
    )


def _judge(judge: NamedJudge) -> JudgeListing:
    """Without its document: lists hold many suites."""
    return JudgeListing(judge.model, judge.prompt, judge.scale, bool(judge.document))


def _task(task: TaskDefinition) -> TaskListing:
    metrics = tuple(metric.name for metric in task.scoring.metrics)
    scoring = task.scoring
    return TaskListing(
        task.name,
        task.version,
        scoring.output_type,
        metrics,
        str(task.rows),
        has_code=task.has_code,
        repeats=task.repeats,
    )


@dataclass(frozen=True, slots=True)
class SuiteOwner:
    """The user and the project whose storage a version counts towards; project 0 is none."""

    user: str
    project_id: int = 0


@dataclass(frozen=True, slots=True)
class StoredSuite:
    """`digest` identifies the document with its files; versions count from 1. `user` added it."""

    suite: str
    version: int
    digest: str
    user: str
    project_id: int = 0

    @property
    def full_name(self) -> str:
        return versioned_name(self.suite, self.version)


@dataclass(frozen=True, slots=True)
class AddedSuite:
    """`is_known`: the same content was already stored as this version."""

    stored: StoredSuite
    is_known: bool = False
