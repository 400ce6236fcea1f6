"""The options of `proctor run`."""

from typing import Annotated

import typer

from proctor.cli.render.words import enum_words
from proctor.v1 import run_pb2

_METRIC = (
    "How answers are scored against the targets of a data set, such as exact_match, "
    'numeric:tolerance=0.01 or {"metric": "regex", "pattern": "…"}; repeat for several. Default: not at all.'
)

SuiteName = Annotated[str, typer.Option(help="A suite, such as glue (see `proctor suites`).")]
Dataset = Annotated[
    str,
    typer.Option(
        metavar="FILE|ID", help="A data set instead: its id, or a file, which is uploaded if needed."
    ),
]
Model = Annotated[str, typer.Option(help="provider/name, such as vllm/starter (see `proctor models`).")]
BaseUrl = Annotated[str, typer.Option(help="Send requests to this server; an operator has to allow it.")]
Tasks = Annotated[list[str] | None, typer.Option(help="A task of the suite; repeat for several.")]
Limit = Annotated[int | None, typer.Option(help="First N rows of each task.")]
Shots = Annotated[int | None, typer.Option(help="Examples in each prompt.")]
Rollouts = Annotated[int | None, typer.Option(help="Repetitions of each sample.")]
Metrics = Annotated[list[str] | None, typer.Option(metavar="NAME|JSON", help=_METRIC)]
Aliases = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Another name of the model in the rows; repeat for several."),
]
Window = Annotated[
    str,
    typer.Option(metavar="TIME", help="Such as 24h or 90m: the run fails after this time, waiting included."),
]
Project = Annotated[int, typer.Option(help="Number of the project that groups runs.")]
Priority = Annotated[
    str,
    typer.Option(help=f"{' | '.join(enum_words(run_pb2.Priority))}; default: high, for a data set normal."),
]
Scoring = Annotated[str, typer.Option(help=f"auto | {' | '.join(enum_words(run_pb2.ScoringMethod))}")]
Chat = Annotated[bool | None, typer.Option("--chat/--completion", help="Send prompts as chats or as text.")]
TruncateLeft = Annotated[bool, typer.Option(help="Cut prompts that are too long from the left.")]
Reuse = Annotated[
    bool, typer.Option("--reuse", help="Use stored answers of earlier runs to the same requests.")
]
Stream = Annotated[
    bool, typer.Option("--stream", help="Stream answers over HTTP: times each first token, costs CPU.")
]
MaxCost = Annotated[float | None, typer.Option(help="Stop when the tokens of the run cost this much.")]
Temperature = Annotated[float | None, typer.Option(help="0 to 2; 0 is greedy.")]
MaxTokens = Annotated[int | None, typer.Option(help="Most tokens to generate.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the sampler.")]
Params = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE", help="Any other generation parameter, such as top_p=0.9; repeat for several."
    ),
]
Detach = Annotated[bool, typer.Option("--detach", help="Print the id and let the run go on.")]
