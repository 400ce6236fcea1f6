"""A suite and its tasks as their files declare them: what is asked of which rows, and how it is scored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from services.scheduler.suites.prompt_template import PromptTemplate
from services.scheduler.suites.row_source import RowsReference
from services.scheduler.suites.suite_errors import UnknownTask


class OutputType(StrEnum):
    MULTIPLE_CHOICE = "multiple_choice"
    GENERATE_UNTIL = "generate_until"


class FewshotSampler(StrEnum):
    DEFAULT = "default"
    FIRST_N = "first_n"


@dataclass(frozen=True, slots=True)
class FewshotRule:
    """How examples are drawn. `drops_document`: a document is never its own example."""

    sampler: FewshotSampler = FewshotSampler.DEFAULT
    drops_document: bool = True
    num_fewshot: int = 0
    delimiter: str = "\n\n"


@dataclass(frozen=True, slots=True)
class Generation:
    """How a model generates, where the task asks for text."""

    until: tuple[str, ...] = ()
    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float | None = None


@dataclass(frozen=True, slots=True)
class MetricUse:
    """A metric by name; its options as a JSON object, "" for none."""

    name: str
    options_json: str = ""


@dataclass(frozen=True, slots=True)
class TaskScoring:
    """What results needs to score the answers; `filters_json` is the checked `filter_list`, "" for none."""

    output_type: OutputType
    metrics: tuple[MetricUse, ...]
    filters_json: str = ""
    target_delimiter: str = " "


@dataclass(frozen=True, slots=True)
class TaskTemplates:
    """How a row becomes a question. `choices` is one list for every row, or a template that gives one."""

    text: PromptTemplate
    target: PromptTemplate
    choices: tuple[str, ...] | PromptTemplate = ()
    cluster: PromptTemplate | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """`definition_digest` is the SHA-256 of the file, so that a run can say which text of it was used."""

    name: str
    version: str
    rows: RowsReference
    fewshot_rows: RowsReference | None
    templates: TaskTemplates
    scoring: TaskScoring
    fewshot: FewshotRule = FewshotRule()
    generation: Generation | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    definition_digest: str = ""


@dataclass(frozen=True, slots=True)
class SuiteDefinition:
    name: str
    description: str
    tasks: tuple[TaskDefinition, ...]

    def task(self, name: str) -> TaskDefinition:
        for task in self.tasks:
            if task.name == name:
                return task
        raise UnknownTask(self.name, name, [task.name for task in self.tasks])
