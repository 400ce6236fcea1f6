"""The filters of a run's outcomes, as the address of their page has them."""

import math
from dataclasses import dataclass
from typing import Annotated

from fastapi import Query

from proctor.v1 import outcome_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.outcome import OutcomeStatus
from proctor.values.plain import INT32_MAX
from proctor.wire.enums import value_of, words_of
from proctor.wire.well_known import unless_empty
from services.gateway.pages.rows.answer_marks import GOLDEN, WRONG

PAGE_SIZE = 50
_MAX_CHARACTERS = 512
_STATUSES = frozenset(OutcomeStatus)
_SORTS = {
    "id": results_pb2.OUTCOME_SORT_SAMPLE,
    "score": results_pb2.OUTCOME_SORT_SCORE,
    "length": results_pb2.OUTCOME_SORT_LENGTH,
    "time": results_pb2.OUTCOME_SORT_TIME,
    "disagreement": results_pb2.OUTCOME_SORT_DISAGREEMENT,
}
# Orders that are offered, by their names in the address; a minus puts the largest first.
SORTS = {
    "": "rows in their order",
    "-id": "last row first",
    "score": "lowest score first",
    "-score": "highest score first",
    "-length": "longest answer first",
    "length": "shortest answer first",
    "-time": "slowest first",
    "time": "fastest first",
}
# Offered for a run that is judged.
DISAGREEMENT = {"-disagreement": "disagreement first"}
_KNOWN_SORTS = frozenset({*SORTS, *DISAGREEMENT, "id"})
FAILURES = tuple(words_of(outcome_pb2.FailureClass))
# Bounds of the score that have a name, beside those that are entered.
_RIGHT, _WRONG = "right", "wrong"

_Text = Annotated[str, Query(max_length=_MAX_CHARACTERS)]


@dataclass(frozen=True, slots=True)
class OutcomeFilters:
    """Values that cannot be read are ignored, so that old links stay valid.

    `row_id` and `text` are substrings. `marked` is golden or wrong, and `failure` a class. `after` is a page
    token, and `row` the key of the answer that is shown in full: without it the first one is, and with "none"
    none.
    """

    status: _Text = ""
    task: _Text = ""
    # Not "id": a form with a field of that name has no id of its own for scripts.
    row_id: _Text = ""
    text: _Text = ""
    metric: _Text = ""
    min_score: _Text = ""
    max_score: _Text = ""
    min_characters: _Text = ""
    max_characters: _Text = ""
    marked: _Text = ""
    golden: _Text = ""
    failure: _Text = ""
    sort: _Text = ""
    after: _Text = ""
    row: _Text = ""
    # A sample where the list begins: links to one answer have it.
    begin: Annotated[str, Query(alias="from", max_length=_MAX_CHARACTERS)] = ""

    def named(self) -> dict[str, str]:
        """The filters that are set, by their names in the address."""
        given = {
            "status": self.status if self.status in {*_STATUSES, _RIGHT, _WRONG} else "",
            "task": self.task,
            "row_id": self.row_id.strip(),
            "text": self.text,
            "metric": self.metric,
            "min_score": self.min_score if _number(self.min_score) is not None else "",
            "max_score": self.max_score if _number(self.max_score) is not None else "",
            "min_characters": self.min_characters if _length(self.min_characters) is not None else "",
            "max_characters": self.max_characters if _length(self.max_characters) is not None else "",
            "marked": self._mark(),
            "failure": self.failure if self.failure in FAILURES else "",
            "sort": self.sort if self.sort in _KNOWN_SORTS else "",
            "after": self.after,
            "row": self.row,
            "from": self.begin if _length(self.begin) is not None else "",
        }
        return {name: value for name, value in given.items() if value}

    def _mark(self) -> str:
        """Addresses that users kept may have golden=1."""
        return self.marked if self.marked in {GOLDEN, WRONG} else GOLDEN if self.golden == "1" else ""

    def to_proto(self, run_id: str) -> results_pb2.ListOutcomesRequest:
        return results_pb2.ListOutcomesRequest(
            run_id=run_id,
            page_size=PAGE_SIZE,
            page_token=self.after,
            task=self.task,
            status=value_of(
                outcome_pb2.OutcomeStatus, self.status if self.status in _STATUSES else "", unset=""
            ),
            filter=self._filter(),
            first_sample=_length(self.begin) or 0,
            sort=_SORTS.get(self.sort.removeprefix("-"), results_pb2.OUTCOME_SORT_UNSPECIFIED),
            is_descending=self.sort.startswith("-"),
            includes_verdicts=True,
        )

    def _filter(self) -> results_pb2.OutcomeFilter | None:
        low, high = _number(self.min_score), _number(self.max_score)
        # As the badges of rows: a figure beyond 0 and 1 is neither.
        if self.status in {_RIGHT, _WRONG}:
            low = high = float(self.status == _RIGHT)
        chosen = results_pb2.OutcomeFilter(
            row_id=self.row_id.strip(),
            text=self.text,
            metric=self.metric,
            min_score=low,
            max_score=high,
            min_characters=_length(self.min_characters),
            max_characters=_length(self.max_characters),
            is_golden=self._mark() == GOLDEN,
            is_marked_wrong=self._mark() == WRONG,
            failure_class=value_of(
                outcome_pb2.FailureClass, self.failure if self.failure in FAILURES else "", unset=""
            ),
        )
        return unless_empty(chosen)


def _number(given: str) -> float | None:
    try:
        number = float(given)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _length(given: str) -> int | None:
    if not (given.isascii() and given.isdecimal()):
        return None
    return min(int(given), INT32_MAX)
