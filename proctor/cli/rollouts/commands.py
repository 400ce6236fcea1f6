"""`proctor rollouts`: tasks with files and tests, worked on by agents in sandboxes."""

import typer

from proctor.cli.gateway import command_group
from proctor.cli.rollouts.check import check

_ABOUT = "Coding tasks that agents work on in sandboxes."


def rollouts_group() -> typer.Typer:
    return command_group({"check": check}, about=_ABOUT)
