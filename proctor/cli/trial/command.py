"""`proctor try`: from nothing to the figures of a model, in one command. `make run` calls it."""

from typing import Annotated

import typer

from proctor.cli.options import AsJson
from proctor.cli.render.terminal import Terminal
from proctor.cli.runs.order import OrderOptions
from proctor.cli.stack.extra import needing_stack
from proctor.stack.pools import STARTER_MODEL
from proctor.v1 import run_pb2
from proctor.wire.enums import words_of

_SCORING_HELP = (
    f"Of choices: auto | {' | '.join(words_of(run_pb2.ScoringMethod))}; auto takes generate for a server at "
    "OPENAI_BASE_URL."
)


def try_model(  # noqa: PLR0917  # options of a command, given by name
    model: Annotated[
        str,
        typer.Option(
            help="A provider's, such as openai/gpt-4o-mini or ollama/llama3.2; or one for vLLM, which is "
            f"installed once (3 GB): vllm/OWNER/NAME of the hub, ./FOLDER, or {STARTER_MODEL}, trained here."
        ),
    ] = STARTER_MODEL,
    suite: Annotated[str, typer.Option(help="The benchmark; see `proctor suites`.")] = "starter",
    task: Annotated[list[str] | None, typer.Option(help="A task of the suite; repeat for several.")] = None,
    limit: Annotated[int | None, typer.Option(help="First N rows of each task.")] = None,
    num_fewshot: Annotated[int | None, typer.Option(help="Examples in each prompt.")] = None,
    temperature: Annotated[float | None, typer.Option(help="0 to 2; 0 is greedy.")] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Any other parameter of generation; repeat for several."),
    ] = None,
    scoring_method: Annotated[str, typer.Option(help=_SCORING_HELP)] = "auto",
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="HTTP port; 0 picks one.")] = None,
    grpc_port: Annotated[int | None, typer.Option(min=0, max=65535, help="gRPC port; 0 picks one.")] = None,
    serve: Annotated[
        bool | None,
        typer.Option("--serve/--no-serve", help="Go on serving after the figures; default: on a terminal."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on this machine: start all that it needs, print the figures, go on serving.

    Called again it goes on where it was stopped, with the same data.
    """
    terminal = Terminal(as_json)
    with needing_stack(terminal):
        from proctor.cli.stack.start import StackRequest  # noqa: PLC0415  # needs the extra `stack`
        from proctor.cli.trial.evaluate import try_out  # noqa: PLC0415  # needs the extra `stack`
    order = OrderOptions(
        model,
        suite=suite,
        task=task,
        limit=limit,
        num_fewshot=num_fewshot,
        temperature=temperature,
        param=param,
        scoring_method=scoring_method,
    )
    stack = StackRequest([model], http_port=port, grpc_port=grpc_port)
    is_serving = terminal.can_ask if serve is None else serve
    raise typer.Exit(try_out(order, stack, terminal, is_serving=is_serving))
