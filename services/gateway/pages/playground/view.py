"""The playground as its page shows it: what was asked, and the answer of each model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from proctor.v1 import outcome_pb2, run_pb2
from proctor.values.run import CHANGING_STATES
from services.gateway.api.dataset_runs.rows import given_answer
from services.gateway.http.errors import Faults
from services.gateway.pages.addresses import address
from services.gateway.pages.order_fields import LABELS, PARAMETER_LABELS
from services.gateway.pages.rows.runs import RunRow, run_row


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """The answer of a model, beside those of others. `text` is None as long as there is none.

    `problem` is the failure in a sentence; an answer that is no text may have one too.
    """

    run: RunRow
    text: str | None = None
    reasoning: str = ""
    problem: str = ""
    finish_reason: str = ""
    tokens: int = 0
    seconds: float | None = None

    @property
    def is_waited_for(self) -> bool:
        return self.run.status in CHANGING_STATES


@dataclass(frozen=True, slots=True)
class PlaygroundView:
    """`values` are entered in the fields; `offered` are the models that can be asked now."""

    values: Mapping[str, str]
    now: datetime
    offered: Sequence[str] = ()
    faults: Faults = field(default_factory=dict)
    request_id: str = ""
    columns: Sequence[AnswerColumn] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: {**LABELS, **PARAMETER_LABELS})

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    def fault(self, name: str) -> str:
        return self.faults.get(name, "")

    @property
    def elsewhere(self) -> Sequence[str]:
        """Faults of what the page has no field for."""
        own = {"prompt", "system", "models", *PARAMETER_LABELS}
        return [sentence for name, sentence in self.faults.items() if name not in own]

    @property
    def is_live(self) -> bool:
        return any(column.is_waited_for for column in self.columns)

    @property
    def address(self) -> str:
        return address("/playground", [("run", column.run.job_id) for column in self.columns])


def answer_column(run: run_pb2.Run, recorded: outcome_pb2.RecordedOutcome | None) -> AnswerColumn:
    row = run_row(run)
    if recorded is None:
        return AnswerColumn(row, problem=row.error)
    outcome, answer = recorded.outcome, given_answer(recorded.outcome)
    return AnswerColumn(
        run=row,
        text=answer.text if answer else None,
        reasoning=answer.reasoning if answer else "",
        problem=outcome.failure.message,
        finish_reason=answer.finish_reason if answer else "",
        tokens=outcome.usage.completion_tokens,
        seconds=None if recorded.is_reused else outcome.timing.total_seconds,
    )
