"""A suite of two small tasks in code: one with choices, one that generates. Rows come from memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from proctor.values.judging.named_judge import NamedJudge
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.scheduler.suites.errors import InvalidSuiteFile, RowsUnavailable, UnknownSuite
from services.scheduler.suites.ports import BrokenSuite
from services.scheduler.suites.rows.row_source import Provenance, RowSet, RowsReference, SourceRow
from services.scheduler.suites.suite import (
    Generation,
    SuiteDefinition,
    SuiteListing,
    TaskDefinition,
    TaskTemplates,
    summary_of,
)
from services.scheduler.suites.templates.prompt_template import compile_template

SUITE = "toy"
MODEL = "openai/fake"


@dataclass
class ToyCatalogue:
    """`broken` maps a suite to what is wrong with it."""

    broken: dict[str, InvalidSuiteFile] = field(default_factory=dict)
    judges: tuple[NamedJudge, ...] = ()

    async def suite(self, name: str) -> SuiteDefinition:
        if name in self.broken:
            raise self.broken[name]
        if name != SUITE:
            raise UnknownSuite(suite=name, supported=SUITE)
        return self._toys()

    def _toys(self) -> SuiteDefinition:
        tasks = (_choice_task(), _generation_task())
        return SuiteDefinition(SUITE, "Two small tasks.", tasks, judges=self.judges)

    async def suites(self) -> Sequence[SuiteListing | BrokenSuite]:
        return [
            summary_of(self._toys()),
            *(BrokenSuite(name, str(error)) for name, error in self.broken.items()),
        ]


@dataclass
class ToyRows:
    """The same number of rows for every task; None: nowhere. `broken` is what opening them raises.

    `on_row` is called whenever one is read.
    """

    count: int | None = 100
    broken: Exception | None = None
    on_row: Callable[[], object] = lambda: None

    def open(self, reference: RowsReference) -> RowSet:
        if self.broken is not None:
            raise self.broken
        if self.count is None:
            raise RowsUnavailable(SUITE, str(reference), ["the mirror has it not", "the hub is away"])
        return RowSet(self._rows(self.count), Provenance("memory", "here", "revision 1", is_stand_in=True))

    def _rows(self, count: int) -> Iterator[SourceRow]:
        for number in range(count):
            self.on_row()
            yield {"text": f"row {number}", "label": number % 2}


def _choice_task() -> TaskDefinition:
    return _task(
        "choose",
        TaskTemplates(compile_template("{{text}}?"), compile_template("label"), ("no", "yes")),
        TaskScoring(OutputType.MULTIPLE_CHOICE, (MetricUse("acc"),)),
    )


def _generation_task() -> TaskDefinition:
    return _task(
        "say",
        TaskTemplates(compile_template("Say {{text}}."), compile_template("text")),
        TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse("exact_match"),)),
        Generation(until=("\n",), max_tokens=8),
    )


def _task(
    name: str, templates: TaskTemplates, scoring: TaskScoring, generation: Generation | None = None
) -> TaskDefinition:
    return TaskDefinition(
        name=name,
        version="1",
        rows=RowsReference(suite=SUITE, hub_id=f"toys/{name}", split="test"),
        fewshot_rows=RowsReference(suite=SUITE, hub_id=f"toys/{name}", split="train"),
        templates=templates,
        scoring=scoring,
        generation=generation,
    )
