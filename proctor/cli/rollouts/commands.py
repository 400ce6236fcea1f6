"""`proctor rollouts`: tasks with files and tests, worked on by agents in sandboxes."""

import typer

from proctor.cli.gateway import Command, command_group
from proctor.cli.rollouts.artifacts import fetch_artifacts
from proctor.cli.rollouts.check import check
from proctor.cli.rollouts.init_task import init
from proctor.cli.rollouts.list_orders import list_orders
from proctor.cli.rollouts.run import evaluate, run, summarize

_ABOUT = "Evaluate agents on coding tasks in sandboxes: write, check and order tasks, read what happened."


def rollouts_group() -> typer.Typer:
    commands: dict[str, Command] = {
        "run": run,
        "list": list_orders,
        "summarize": summarize,
        "eval": evaluate,
        "artifacts": fetch_artifacts,
        "check": check,
        "init": init,
    }
    return command_group(commands, about=_ABOUT)
