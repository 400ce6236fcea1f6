"""Renders a task's rows to samples, serially: few-shot draws depend on the order of the documents."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import cast

from services.common.threads.cancellable_threads import check_cancelled
from services.scheduler.suites.errors import FewshotPoolTooSmall, InvalidRow, NoFewshotPool, NoRows
from services.scheduler.suites.rendering.make_sample import SampleMaker
from services.scheduler.suites.rendering.row_renderer import RowRenderer
from services.scheduler.suites.rendering.sample import MAX_SAMPLE_BYTES, RenderedSample
from services.scheduler.suites.rows.errors import UnreadableRow
from services.scheduler.suites.rows.ports import RowSource
from services.scheduler.suites.rows.row_source import (
    ExampleDraw,
    Provenance,
    RowSet,
    RowsReference,
    SourceRow,
    chosen_rows,
)
from services.scheduler.suites.rows.task_code import SAMPLER, without_code
from services.scheduler.suites.suite import FewshotRule, FewshotSampler, TaskDefinition
from services.scheduler.suites.templates.errors import RowFault

SEED = FewshotRule().seed


class FewshotDraws:
    """One random generator per task. Each draw depends on earlier ones: call once per document, in order."""

    def __init__(self, task: str, rule: FewshotRule, pool: Sequence[SourceRow]) -> None:
        self._task = task
        self._rule = rule
        self._pool = pool
        self._random = Random(rule.seed)

    def draw(self, document: SourceRow) -> list[int]:
        """Indexes in the pool of the examples to show before this document. Raises `FewshotPoolTooSmall`."""
        wanted = self._rule.num_fewshot
        if wanted == 0:
            return []
        is_first_n = self._rule.sampler is FewshotSampler.FIRST_N
        indexes = self._first_ones(document) if is_first_n else self._random_ones(document)
        if len(indexes) < wanted:
            raise self._too_small()
        return indexes

    def _first_ones(self, document: SourceRow) -> list[int]:
        everything = range(len(self._pool))
        if not self._rule.drops_document:
            return list(everything[: self._rule.num_fewshot])
        others = (index for index in everything if self._pool[index] != document)
        return list(islice(others, self._rule.num_fewshot))

    def _random_ones(self, document: SourceRow) -> list[int]:
        """Draws one extra, so that the document can be dropped; draws again if it occurs twice."""
        wanted = self._rule.num_fewshot
        if not self._rule.drops_document:
            return self._sample(range(len(self._pool)), wanted)
        # As lm-evaluation-harness draws: the prompts are to be the same.
        drawn = self._sample(range(len(self._pool)), wanted + self._spare())
        indexes = self._without(document, drawn)[:wanted]
        if len(indexes) == wanted:
            return indexes
        return self._sample(self._without(document, range(len(self._pool))), wanted)

    def _spare(self) -> int:
        """Examples in the task file are not documents, so no extra is drawn if all are wanted."""
        is_all = self._rule.num_fewshot == len(self._rule.samples)
        return 0 if is_all else 1

    def _sample(self, indexes: Sequence[int], wanted: int) -> list[int]:
        if wanted > len(indexes):
            raise self._too_small()
        return self._random.sample(indexes, wanted)

    def _without(self, document: SourceRow, indexes: Sequence[int]) -> list[int]:
        return [index for index in indexes if self._pool[index] != document]

    def _too_small(self) -> FewshotPoolTooSmall:
        return FewshotPoolTooSmall(
            task=self._task, num_fewshot=self._rule.num_fewshot, pool_size=len(self._pool)
        )


@dataclass(frozen=True, slots=True)
class RenderedTask:
    """`samples` can be read once; it raises `SuiteError` at the first invalid row."""

    samples: Iterator[RenderedSample]
    provenance: Provenance
    fewshot_provenance: Provenance | None = None

    @property
    def is_stand_in(self) -> bool:
        """True also if only the examples are a stand-in: they are part of the prompt."""
        shown = self.fewshot_provenance
        return self.provenance.is_stand_in or (shown is not None and shown.is_stand_in)

    @property
    def revision(self) -> str:
        """Revision of the rows, and of the examples if there are any."""
        shown = self.fewshot_provenance
        return self.provenance.revision + (f" examples {shown.revision}" if shown is not None else "")


def open_task(
    task: TaskDefinition, source: RowSource, num_fewshot: int | None = None, limit: int | None = None
) -> RenderedTask:
    """Finds the rows now and renders them as they are read. `num_fewshot` None means the task's default."""
    shots = task.fewshot.num_fewshot if num_fewshot is None else num_fewshot
    if shots and task.fewshot.code is not None:
        pool, origin = _pool(source, task, shots)
        rule = task.fewshot
        draw = ExampleDraw(task.fewshot.code, pool, shots, rule.drops_document, rule.seed)
        rows = _opened(source, replace(task.rows, draw=draw))
    else:
        rows = _opened(source, task.rows)
        pool, origin = _pool(source, task, shots) if shots else ((), None)
    return RenderedTask(render_task(task, rows.rows, pool, shots, limit), rows.provenance, origin)


def _opened(source: RowSource, reference: RowsReference) -> RowSet:
    found = source.open(reference)
    return replace(found, rows=chosen_rows(found.rows, reference.where)) if reference.where else found


def _pool(
    source: RowSource, task: TaskDefinition, num_fewshot: int
) -> tuple[Sequence[SourceRow], Provenance | None]:
    """The rows that examples are of; the definition of the task covers those that its file has."""
    if task.fewshot_rows is None:
        if not task.fewshot.samples:
            raise NoFewshotPool(task=task.name)
        return task.fewshot.samples, None
    pool = _opened(source, task.fewshot_rows)
    rows = _pool_rows(task, pool, num_fewshot)
    return rows, None if task.fewshot_rows.is_written else pool.provenance


def _pool_rows(task: TaskDefinition, pool: RowSet, num_fewshot: int) -> list[SourceRow]:
    """Loads the whole pool into memory, because draws access it at random."""
    # The examples of all documents are then the same: no more are read.
    is_fixed = task.fewshot.sampler is FewshotSampler.FIRST_N and not task.fewshot.drops_document
    try:
        return list(_while_wanted(pool.rows, num_fewshot if is_fixed else None))
    except UnreadableRow as problem:
        raise _bad_example(task.name, problem.row - 1, problem.problem) from problem


def _while_wanted(rows: Iterable[SourceRow], limit: int | None) -> Iterator[SourceRow]:
    for row in islice(rows, limit):
        # A thread cannot be cancelled from outside: it looks once for each row.
        check_cancelled()
        yield row


def _bad_example(task: str, doc_id: int, problem: str, field: str = "") -> InvalidRow:
    return InvalidRow(task, doc_id, f"few-shot pool: {problem}", field)


def render_task(
    task: TaskDefinition,
    rows: Iterable[SourceRow],
    pool: Sequence[SourceRow] = (),
    num_fewshot: int = 0,
    limit: int | None = None,
) -> Iterator[RenderedSample]:
    """Renders the first `limit` rows, each with `num_fewshot` examples from `pool`."""
    renderer = RowRenderer(task)
    sample_of = SampleMaker(task, renderer).sample
    examples = _Examples(task, RowRenderer(task.of_examples), pool, num_fewshot)
    position = -1
    try:
        for position, row in enumerate(_while_wanted(rows, limit)):
            yield sample_of(position, row, renderer.render(row, examples.before(row)))
    except RowFault as fault:
        raise InvalidRow(task.name, position, fault.problem, fault.field) from fault
    except UnreadableRow as problem:
        raise InvalidRow(task.name, problem.row - 1, problem.problem) from problem
    if position < 0:
        raise NoRows(task=task.name)


# Examples that code draws: by their places in the pool, or as rows.
_Drawn = Sequence[int | SourceRow]


def _same(row: SourceRow) -> SourceRow:
    return row


class _Examples:
    """Few-shot examples before a document; each row of the pool is rendered at most once."""

    def __init__(
        self, task: TaskDefinition, renderer: RowRenderer, pool: Sequence[SourceRow], num_fewshot: int
    ) -> None:
        self._task_name = task.name
        self._renderer = renderer
        self._pool = pool
        # Other code makes other columns of the same row, which is compared with the document.
        is_alike = task.fewshot_rows is None or task.fewshot_rows.code == task.rows.code
        self._compared = _same if is_alike else without_code
        compared = list(map(self._compared, pool))
        self._draws = FewshotDraws(task.name, replace(task.fewshot, num_fewshot=num_fewshot), compared)
        self._rendered: dict[int, str] = {}
        code = task.fewshot.code
        self._drawn_column = code.column_of(SAMPLER) if code and num_fewshot else ""
        self._are_none = num_fewshot == 0

    def before(self, document: SourceRow) -> str:
        if self._are_none:
            return ""
        if self._drawn_column:
            return "".join(self._within_limit(cast("_Drawn", document[self._drawn_column])))
        return "".join([self._example(index) for index in self._draws.draw(self._compared(document))])

    def _within_limit(self, drawn: _Drawn) -> Iterator[str]:
        """Code may draw as many examples as it likes, and rows that are not in the pool."""
        length = 0
        for each in drawn:
            text = self._example(each) if isinstance(each, int) else self._made_example(each)
            length += len(text)
            if length > MAX_SAMPLE_BYTES:
                raise RowFault(f"its examples have more than the {MAX_SAMPLE_BYTES} bytes allowed")
            yield text

    def _made_example(self, row: SourceRow) -> str:
        try:
            return self._renderer.example(row)
        except RowFault as fault:
            raise RowFault(f"an example that its sampler made: {fault.problem}", fault.field) from fault

    def _example(self, index: int) -> str:
        if index not in self._rendered:
            try:
                self._rendered[index] = self._renderer.example(self._pool[index])
            except RowFault as fault:
                raise _bad_example(self._task_name, index, fault.problem, fault.field) from fault
        return self._rendered[index]
