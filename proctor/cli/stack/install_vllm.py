"""`proctor vllm install`: what this machine needs to load models itself."""

import os

import typer

from proctor.cli.gateway import command_group
from proctor.cli.options import AsJson
from proctor.cli.render.terminal import Terminal, report_error, say
from proctor.cli.render.words import JsonValue
from proctor.stack.errors import StackError
from proctor.stack.vllm.environment import ensure_vllm_environment
from proctor.stack.vllm.starter_model import ensure_starter_model
from proctor.stack.vllm.worker_source import worker_source


def install(as_json: AsJson = False) -> None:
    """Install vLLM into an environment of its own and train the starter model, each once."""
    terminal = Terminal(as_json)

    def report(sentence: str) -> None:
        say(terminal.progress, sentence)

    try:
        python = ensure_vllm_environment(worker_source(os.environ), report)
        model = ensure_starter_model(python, os.environ, report)
    except StackError as error:
        raise typer.Exit(report_error(terminal, error)) from None
    shown: dict[str, JsonValue] = {"python": str(python), "starter_model": str(model)}
    terminal.report(shown, f"vLLM is installed ({python}), and the starter model is in {model}.")


def vllm_group() -> typer.Typer:
    return command_group({"install": install}, about="Prepare this machine to load models itself, by vLLM.")
