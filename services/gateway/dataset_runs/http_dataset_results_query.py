"""Which answers to a data set are wanted, and in which form."""

from typing import Annotated, Literal

from fastapi import Depends, Query

from proctor.v1 import outcome_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from services.gateway.errors import FileIsWhole
from services.gateway.http_text import Text

_INT32_MAX = 2**31 - 1
_STATUSES = {
    "answered": outcome_pb2.OUTCOME_STATUS_SCORED,
    "scored": outcome_pb2.OUTCOME_STATUS_SCORED,
    "unparsed": outcome_pb2.OUTCOME_STATUS_UNPARSED,
    "failed": outcome_pb2.OUTCOME_STATUS_FAILED,
}

Characters = Annotated[int | None, Query(ge=0, le=_INT32_MAX, description="Of the answer")]
Score = Annotated[float | None, Query(allow_inf_nan=False, description="Of the metric")]


class WithoutStatus:
    """What has to be true of an answer; all that is given."""

    def __init__(  # noqa: PLR0913  # a query has as many parameters as it has words
        self,
        row_id: Annotated[Text, Query(alias="id", description="A part of the id of the row")] = "",
        text: Annotated[Text, Query(description="A part of the prompt or the answer")] = "",
        metric: Annotated[Text, Query(description="That min_score and max_score are about")] = "",
        min_score: Score = None,
        *,
        max_score: Score = None,
        min_length: Characters = None,
        max_length: Characters = None,
        golden: Annotated[bool, Query(description="Only those that were marked as golden")] = False,
    ) -> None:
        self.filter = results_pb2.OutcomeFilter(
            row_id=row_id,
            text=text,
            metric=metric,
            min_score=min_score,
            max_score=max_score,
            min_characters=min_length,
            max_characters=max_length,
            is_golden=golden,
        )

    @property
    def is_set(self) -> bool:
        return bool(self.filter.ListFields())


class AnswerFilter:
    """The same, and how the answer ended."""

    def __init__(
        self,
        chosen: Annotated[WithoutStatus, Depends()],
        status: Literal["answered", "scored", "unparsed", "failed"] | None = None,
    ) -> None:
        self.filter = chosen.filter
        self.status = _STATUSES[status] if status else outcome_pb2.OUTCOME_STATUS_UNSPECIFIED

    @property
    def is_set(self) -> bool:
        return bool(self.status or self.filter.ListFields())


class AnswerPage:
    """Where a page begins, and how much is on it."""

    def __init__(
        self,
        limit: Annotated[int, Query(ge=1, le=1000, description="A page of heavy answers has fewer")] = 100,
        cursor: Annotated[Text, Query(description="next_cursor of the page before")] = "",
    ) -> None:
        self.limit = limit
        self.cursor = cursor


def outcomes_wanted(run_id: str, chosen: AnswerFilter, page: AnswerPage) -> results_pb2.ListOutcomesRequest:
    return results_pb2.ListOutcomesRequest(
        run_id=run_id,
        page_size=page.limit,
        page_token=page.cursor,
        status=chosen.status,
        filter=chosen.filter if chosen.filter.ListFields() else None,
    )


def refuse_chosen(chosen: AnswerFilter, page: AnswerPage) -> None:
    """A file that looks whole and is not would be taken for the run."""
    if chosen.is_set or page.cursor:
        raise FileIsWhole(parameters="cursor and the filters")
