"""What a corpus has of the rows of a job: figures beside its score, as their caller has counted them."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import summary_pb2
from proctor.values.names.contamination import (
    MAX_CORPUS_CHARACTERS,
    MAX_DIFFERENCES,
    MAX_NGRAM,
    ContaminationKind,
)
from proctor.wire.enums import number_of, word_of
from services.gateway.auth.identity import User
from services.gateway.backends.calls import ResultsCalls
from services.gateway.http.parameters import JobId, RequestBody, Text
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import moment, present
from services.gateway.http.problem import problems

router = APIRouter(prefix=BENCHMARKING, tags=["benchmarks"])

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]


class DifferenceGiven(RequestBody):
    """Mean score of the rows that overlap minus that of the others, with its 95 % interval."""

    metric: Text = Field(min_length=1)
    difference: _Finite
    ci95: tuple[_Finite, _Finite]

    def to_proto(self) -> summary_pb2.ContaminationDifference:
        low, high = self.ci95
        return summary_pb2.ContaminationDifference(
            metric=self.metric, difference=self.difference, ci_low=low, ci_high=high
        )


class ContaminationGiven(RequestBody):
    """What was counted. `proctor contamination overlap --run` and `canary --run` send it."""

    kind: ContaminationKind
    corpus: Text = Field(min_length=1, max_length=MAX_CORPUS_CHARACTERS, description="Name of the corpus")
    found: _Count = Field(description="Rows that share n-grams with it, or documents with a canary")
    searched: Annotated[int, Field(ge=1, lt=2**63, description="All rows, or all documents")]
    ngram: int = Field(default=0, ge=0, le=MAX_NGRAM, description="Words of an n-gram of an overlap")
    differences: list[DifferenceGiven] = Field(
        default_factory=list, max_length=MAX_DIFFERENCES, description="Of an overlap, by metric"
    )

    def to_proto(self) -> summary_pb2.ContaminationFigure:
        return summary_pb2.ContaminationFigure(
            kind=number_of(self.kind),
            differences=[one.to_proto() for one in self.differences],
            **self.model_dump(include={"corpus", "found", "searched", "ngram"}),
        )


class DifferenceOfRows(BaseModel):
    metric: str
    difference: float = Field(description="Rows that overlap minus the others; they may be easier, too")
    ci95: tuple[float, float]


class ContaminationShown(BaseModel):
    """A figure beside the score. It does not say that a model was trained on the corpus."""

    kind: str = Field(description="overlap or canary")
    corpus: str
    found: int
    searched: int
    share: float
    ci95: tuple[float, float] = Field(description="Wilson's")
    ngram: int = Field(description="Words of an n-gram; 0 of canaries")
    differences: list[DifferenceOfRows]
    user: str
    recorded_at: datetime | None


class Contamination(BaseModel):
    contamination: list[ContaminationShown]


@router.post(
    "/contamination/{job_id}",
    responses=problems(400, 404, 409, 422, 503),
    summary="Store beside the score of a job what a corpus has of its rows",
)
async def record(results: ResultsCalls, user: User, job_id: JobId, body: ContaminationGiven) -> Contamination:
    """A figure of the same kind and corpus is replaced."""
    request = results_pb2.RecordContaminationRequest(run_id=job_id, figure=body.to_proto(), user=user)
    response = await results.outcomes.RecordContamination(request)
    return Contamination(contamination=contamination_shown(response.summary))


def contamination_shown(summary: summary_pb2.RunSummary) -> list[ContaminationShown]:
    return [
        present(
            ContaminationShown,
            figure,
            kind=word_of(summary_pb2.ContaminationKind, figure.kind),
            ci95=(figure.ci_low, figure.ci_high),
            recorded_at=moment(figure.recorded_at),
            differences=[
                present(DifferenceOfRows, one, ci95=(one.ci_low, one.ci_high)) for one in figure.differences
            ],
        )
        for figure in summary.contamination
    ]
