"""Options of `proctor rollouts run` in the place of a configuration: a data set by its name, and models."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.cli.rollouts.config import RolloutsConfig, config_of
from proctor.client.errors import Refused
from proctor.values.agents.templates import TEMPLATES
from proctor.values.rollout import AgentKind

_PROGRAM = AgentKind.COMMAND.value


@dataclass(frozen=True, slots=True)
class DatasetOptions:
    dataset: Annotated[
        str, typer.Option(metavar="NAME@VERSION", help="A data set of --registry, instead of CONFIG.toml.")
    ] = ""
    registry: Annotated[
        str,
        typer.Option(
            metavar="PATH", help="registry.json of Harbor or Terminal-Bench, or a clone that has one."
        ),
    ] = ""
    mirrors: Annotated[
        str, typer.Option(metavar="DIR", help="Folder of clones; without it the folder beside --registry.")
    ] = ""
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="With --dataset: provider/name, any number of times."),
    ] = None
    rollouts: Annotated[int, typer.Option(help="With --dataset: rollouts of each task.")] = 1
    agent: Annotated[
        str, typer.Option(help="With --dataset: shell, mini, terminus, or a program such as aider.")
    ] = AgentKind.SHELL.value

    @property
    def is_given(self) -> bool:
        return replace(self, model=self.model or None) != DatasetOptions()

    def config(self) -> RolloutsConfig:
        """Raises Refused."""
        if not self.dataset:
            raise Refused(
                "Name a CONFIG.toml, or a data set: --dataset NAME@VERSION --registry PATH --model MODEL."
            )
        missing = [f"--{name}" for name in ("registry", "model") if not getattr(self, name)]
        if missing:
            raise Refused(f"--dataset needs {' and '.join(missing)} too.")
        of_registry = {"dataset": self.dataset, "registry": self.registry}
        if self.mirrors:
            of_registry["mirrors"] = self.mirrors
        document = {
            "name": re.sub(r"[^A-Za-z0-9_.-]+", "-", self.dataset.partition("@")[0]).strip("-.") or "dataset",
            "agent": self._agent(),
            "tasks": [
                {**of_registry, "model": model, "rollouts": self.rollouts} for model in self.model or ()
            ],
        }
        return config_of(Path(self.dataset), document)

    def _agent(self) -> dict[str, Any]:
        if self.agent in TEMPLATES:
            return {"kind": _PROGRAM, "template": self.agent}
        kinds = [kind.value for kind in AgentKind if kind.value != _PROGRAM]
        if self.agent not in kinds:
            raise Refused(f"--agent is {self.agent!r}, but must be {', '.join([*kinds, *TEMPLATES])}.")
        return {"kind": self.agent}
