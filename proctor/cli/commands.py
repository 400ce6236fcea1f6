"""The commands of `proctor` and where they are defined: each is imported when it is asked for.

All of them together take most of a second of CPU to import.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from proctor.cli.gateway import add_command

# By panel, in the order of the help: name and place below `proctor.cli`. A place that ends in `_group` makes
# a group of commands.
PANELS: Mapping[str, Mapping[str, str]] = {
    "Begin": {
        "try": "trial.command:try_model",
        "doctor": "stack.commands:doctor",
        "mcp": "mcp.command:mcp",
        "vllm": "stack.install_vllm:vllm_group",
    },
    "Run the stack on this machine": {
        "up": "stack.commands:up",
        "down": "stack.commands:down",
        "status": "stack.commands:status",
        "open": "stack.open_page:open_page",
        "backup": "stack.backup:backup",
        "restore": "stack.backup:restore",
    },
    "Evaluate models": {
        "run": "runs.run:run",
        "judge": "runs.judge:judge",
        "watch": "runs.run:watch",
        "retry": "runs.commands:retry",
        "cancel": "runs.commands:cancel",
        "schedule": "runs.schedule:schedule_group",
        "watch-models": "runs.watch_models:watch_models",
        "rollouts": "rollouts.commands:rollouts_group",
    },
    "Read results": {
        "results": "results.answers:results",
        "report": "results.report:report",
        "export": "results.export:export",
        "card": "results.export:card",
        "verify": "results.cards.verify:verify",
        "contamination": "results.contamination.commands:contamination_group",
        "rescore": "runs.rescore:rescore",
        "runs": "runs.commands:runs_group",
        "golden": "results.export:golden_group",
        "annotate": "results.annotate:annotate",
        "annotations": "results.annotate:annotations",
    },
    "Compare models": {
        "compare": "results.compare:compare",
        "gate": "results.gate:gate",
        "plan-size": "results.plan_size:plan_size",
        "noise": "results.noise:noise",
        "side-by-side": "results.answers:side_by_side",
        "leaderboard": "results.leaderboard:leaderboard",
        "ratings": "results.ratings:ratings",
        "history": "results.leaderboard:history",
    },
    "Bring models, suites and data": {
        "import": "results.import_log:import_logs",
        "models": "models:models",
        "storage": "storage:storage",
        "datasets": "datasets.commands:datasets_group",
        "suites": "suites.commands:suites_group",
    },
    "Steer the queue": {
        "queue": "queue:queue",
        "pause": "runs.commands:pause",
        "resume": "runs.commands:resume",
        "limits": "queue:limits",
    },
    "Operate an installation": {
        "audit": "audit:audit",
        "changes": "changes:changes",
        "keys": "keys:keys_group",
        "notices": "notices:notices_group",
        "login": "login:login",
        "logout": "login:logout",
        "projects": "projects:projects_group",
        "nats-users": "stack.commands:nats_users",
        "reclose": "runs.commands:reclose",
    },
}
_PANEL_OF = {name: panel for panel, places in PANELS.items() for name in places}


class CommandsByName(TyperGroup):
    """The group `proctor`, whose commands are made when they are looked up."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _MadeCommands()


class _MadeCommands(MutableMapping[str, Any]):
    """Typer's class of commands is internal to it."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made_command(name, _PANEL_OF[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_PANEL_OF)

    def __len__(self) -> int:
        return len(_PANEL_OF)

    def __contains__(self, name: object) -> bool:
        return name in _PANEL_OF


def _made_command(name: str, panel: str) -> Any:
    module, _, attribute = PANELS[panel][name].partition(":")
    found = getattr(import_module(f"proctor.cli.{module}"), attribute)
    app = typer.Typer()
    if attribute.endswith("_group"):
        app.add_typer(found(), name=name, rich_help_panel=panel)
    else:
        add_command(app, found, name, panel)
    return typer.main.get_group(app).commands[name]
