"""`proctor doctor`: what is missing on this machine, and how to get it."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from proctor.cli.options import AsJson
from proctor.cli.render.table import Cell, table, texts
from proctor.cli.render.terminal import Terminal, execute, say
from proctor.exit_codes import ExitCode
from proctor.stack.doctor.examine import examine
from proctor.stack.doctor.finding import Finding, Verdict

_STYLES = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.MISSING: "red"}


def doctor(as_json: AsJson = False) -> None:
    """Check what this machine has for the local stack, what is missing and how to get it."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        found = await examine(os.environ, Path.cwd())
        is_missing = any(finding.verdict is Verdict.MISSING for finding in found)
        if as_json:
            terminal.emit({"ok": not is_missing, "checks": [asdict(finding) for finding in found]})
        else:
            terminal.out.print(table(terminal.out, texts("", "check", "found"), map(_cells, found)))
            say(terminal.out, _summary(found))
        return ExitCode.FAILED if is_missing else ExitCode.OK

    execute(terminal, work)


def _cells(finding: Finding) -> tuple[Cell, ...]:
    found = Text(finding.says)
    if finding.advice:
        found.append(f"\n→ {finding.advice}", style="bold")
    return Text(finding.verdict.value, style=_STYLES[finding.verdict]), finding.name, found


def _summary(found: Sequence[Finding]) -> str:
    counts = {verdict: sum(finding.verdict is verdict for finding in found) for verdict in Verdict}
    if counts[Verdict.MISSING]:
        return f"{counts[Verdict.MISSING]} missing, {counts[Verdict.WARNING]} to look at: see the arrows."
    if counts[Verdict.WARNING]:
        return f"The stack can run; {counts[Verdict.WARNING]} to look at: see the arrows."
    return "Nothing is missing."
