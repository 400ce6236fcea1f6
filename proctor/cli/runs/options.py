"""The options of `proctor run`."""

from typing import Annotated

import typer

from proctor.cli.parsing import PRIORITIES, SCORING_METHODS

_PRIORITY = f"{' | '.join(PRIORITIES)}; unset: high, of a data set normal."
_PARAM = "Any other parameter of generation, such as top_p=0.9; repeat for several."
_METRIC = (
    "How answers to a data set are held against its targets, such as exact_match, "
    'numeric:tolerance=0.01 or {"metric": "regex", "pattern": "…"}; repeat for several. None: not at all.'
)
_WINDOW = "Such as 24h or 90m: it fails when it has not ended by then, waiting included."

SuiteName = Annotated[str, typer.Option(help="A suite, such as glue (see `proctor suites`).")]
Dataset = Annotated[
    str,
    typer.Option(
        metavar="FILE|ID", help="A data set instead: its id, or a file, which is uploaded if it is not yet."
    ),
]
Model = Annotated[str, typer.Option(help="provider/name, such as vllm/starter (see `proctor models`).")]
BaseUrl = Annotated[str, typer.Option(help="Ask this server instead; an operator has to allow it.")]
Tasks = Annotated[list[str] | None, typer.Option(help="A task of the suite; repeat for several.")]
Limit = Annotated[int | None, typer.Option(help="First N rows of each task.")]
Shots = Annotated[int | None, typer.Option(help="Examples in each prompt.")]
Rollouts = Annotated[int | None, typer.Option(help="Repetitions of each sample.")]
Metrics = Annotated[list[str] | None, typer.Option(metavar="NAME|JSON", help=_METRIC)]
Aliases = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Rows may call the model so as well; repeat for several."),
]
Window = Annotated[str, typer.Option(metavar="TIME", help=_WINDOW)]
Project = Annotated[int, typer.Option(help="Number of the project that groups runs.")]
Priority = Annotated[str, typer.Option(help=_PRIORITY)]
Scoring = Annotated[str, typer.Option(help=" | ".join(SCORING_METHODS))]
Chat = Annotated[bool | None, typer.Option("--chat/--completion", help="How prompts are put.")]
TruncateLeft = Annotated[bool, typer.Option(help="Cut prompts that are too long from the left.")]
Reuse = Annotated[
    bool, typer.Option("--reuse", help="Take stored answers of earlier runs to the same requests.")
]
Stream = Annotated[
    bool, typer.Option("--stream", help="Stream answers over HTTP: times each first token, costs CPU.")
]
MaxCost = Annotated[float | None, typer.Option(help="Stop when its tokens cost so much.")]
Temperature = Annotated[float | None, typer.Option(help="0 to 2; 0 is greedy.")]
MaxTokens = Annotated[int | None, typer.Option(help="Most tokens to generate.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the sampler.")]
Params = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help=_PARAM)]
Detach = Annotated[bool, typer.Option("--detach", help="Print the id and let the run go on.")]
