"""Stores with a closed run what a corpus has of its rows, as its caller has counted it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from proctor.values.names.contamination import (
    MAX_CORPUS_CHARACTERS,
    MAX_DIFFERENCES,
    MAX_NGRAM,
    ContaminationKind,
)
from proctor.values.names.user import Caller
from services.common.checked_fields import invalid_field
from services.common.requests.request_fields import check_stores
from services.results.runs.errors import RunNotFrozen
from services.results.runs.ports import RunRecordStore
from services.results.summaries.postgres import PostgresSummaries
from services.results.summaries.run_summary import ContaminationFigure, RunSummary


@dataclass(frozen=True, slots=True)
class RecordContamination:
    records: RunRecordStore
    summaries: PostgresSummaries

    async def record(self, run_id: str, figure: ContaminationFigure, caller: Caller) -> RunSummary:
        """Replaces the figure of the same kind and corpus.

        Raises RecordNotFound, RunNotFrozen, ProjectNotFound for who only reads in the project, and an error
        of the field for figures that mean nothing.
        """
        for field, problem in _problems(figure):
            raise invalid_field(field, problem)
        record = await self.records.get(run_id)
        check_stores(caller, record.plan.facts.project_id)
        summary = await self.summaries.add_contamination(run_id, record.epoch, figure)
        if summary is None:
            raise RunNotFrozen(run_id=run_id)
        return summary


def _problems(figure: ContaminationFigure) -> Iterator[tuple[str, str]]:
    if not 0 < len(figure.corpus.strip()) <= MAX_CORPUS_CHARACTERS:
        yield "figure.corpus", f"must have 1 to {MAX_CORPUS_CHARACTERS} characters"
    if figure.searched < 1:
        yield "figure.searched", "must be at least 1"
    if not 0 <= figure.found <= figure.searched:
        yield "figure.found", "must be 0 to the number of rows or documents that were searched"
    is_overlap = figure.kind is ContaminationKind.OVERLAP
    if not (1 <= figure.ngram <= MAX_NGRAM if is_overlap else figure.ngram == 0):
        yield "figure.ngram", f"must be 1 to {MAX_NGRAM} words of an overlap, and 0 of canaries"
    if len(figure.differences) > (MAX_DIFFERENCES if is_overlap else 0):
        yield "figure.differences", f"must be at most {MAX_DIFFERENCES} of an overlap, and none of canaries"
    for one in figure.differences:
        numbers = (one.ci_low, one.difference, one.ci_high)
        if not all(map(math.isfinite, numbers)) or not one.ci_low <= one.difference <= one.ci_high:
            yield "figure.differences", "must be numbers within their intervals"
