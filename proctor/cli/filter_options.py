"""Options that choose among answers, and the filter that they stand for."""

from typing import Annotated

import typer

from proctor.client_errors import Refused
from proctor.v1 import results_service_pb2

_MOST = 2**31 - 1

RowPart = Annotated[str, typer.Option("--id", metavar="PART", help="Only rows whose id has this part.")]
TextPart = Annotated[
    str, typer.Option("--text", metavar="PART", help="Only where the prompt or the answer has this part.")
]
OfMetric = Annotated[str, typer.Option(help="What --min-score and --max-score are about; else the main one.")]
MinScore = Annotated[float | None, typer.Option(help="Only answers that score at least so much.")]
MaxScore = Annotated[float | None, typer.Option(help="Only answers that score at most so much.")]
MinLength = Annotated[
    int | None, typer.Option(min=0, max=_MOST, help="Only answers of at least so many characters.")
]
MaxLength = Annotated[int | None, typer.Option(min=0, max=_MOST, help="Only answers of at most so many.")]
OnlyGolden = Annotated[bool, typer.Option("--golden", help="Only answers that were marked as golden.")]


def is_set(chosen: results_service_pb2.OutcomeFilter) -> bool:
    return bool(chosen.ListFields())


def refuse_empty_range(chosen: results_service_pb2.OutcomeFilter) -> None:
    """In the words of the options; the service would name the fields of its contract."""
    if chosen.HasField("max_characters") and chosen.min_characters > chosen.max_characters:
        raise Refused(
            f"--min-length {chosen.min_characters} is above --max-length {chosen.max_characters}.",
            "INVALID_PARAMETER",
        )
    if chosen.HasField("min_score") and chosen.HasField("max_score") and chosen.min_score > chosen.max_score:
        raise Refused(
            f"--min-score {chosen.min_score:g} is above --max-score {chosen.max_score:g}.",
            "INVALID_PARAMETER",
        )
