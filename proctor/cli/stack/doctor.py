"""What is missing on this machine and how to get it: `proctor doctor`."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from proctor.cli.options import AsJson
from proctor.cli.render.table import compact_table
from proctor.cli.render.terminal import ExitCode, Terminal, execute, say
from proctor.stack.doctor.examine import examine
from proctor.stack.doctor.finding import Finding, Verdict

_STYLES = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.MISSING: "red"}


def doctor(as_json: AsJson = False) -> None:
    """Say what this machine has for the local stack, what is missing and how to get it."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        found = await examine(os.environ, Path.cwd())
        is_missing = any(finding.verdict is Verdict.MISSING for finding in found)
        if as_json:
            terminal.emit({"ok": not is_missing, "checks": [asdict(finding) for finding in found]})
        else:
            terminal.out.print(findings_table(terminal, found))
            say(terminal.out, _summary(found))
        return ExitCode.SOMETHING_MISSING if is_missing else ExitCode.OK

    execute(terminal, work)


def findings_table(terminal: Terminal, found: Sequence[Finding]) -> Table:
    table = compact_table(terminal.out)
    for column in ("", "check", "found"):
        table.add_column(column, overflow="fold")
    for finding in found:
        says = Text(finding.says)
        if finding.advice:
            says.append(f"\n→ {finding.advice}", style="bold")
        table.add_row(Text(finding.verdict.value, style=_STYLES[finding.verdict]), finding.name, says)
    return table


def _summary(found: Sequence[Finding]) -> str:
    counts = {verdict: sum(finding.verdict is verdict for finding in found) for verdict in Verdict}
    if counts[Verdict.MISSING]:
        return f"{counts[Verdict.MISSING]} missing, {counts[Verdict.WARNING]} to look at: see the arrows."
    if counts[Verdict.WARNING]:
        return f"The stack can run; {counts[Verdict.WARNING]} to look at: see the arrows."
    return "Nothing is missing."
