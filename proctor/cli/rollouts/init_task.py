"""`proctor rollouts init`: writes the folder of a small task that is sound, to start from."""

import re
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.options import AsJson
from proctor.cli.render.terminal import Terminal, say
from proctor.exit_codes import ExitCode

_TESTS = "tests"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PROGRAMS = frozenset({f"{_TESTS}/test.sh", "solution/solve.sh"})
_FILES = {
    "task.toml": """schema_version = "1.0"

[metadata]
difficulty = "easy"
tags = ["python"]

[agent]
timeout_sec = 600.0

[verifier]
timeout_sec = 120.0

[environment]
cpus = 1
memory_mb = 1024
""",
    "instruction.md": """`slugs.py` has a function `slug`, which turns a title into a part of an address.
It forgets that titles have more than one space in a row, and spaces at their ends.

Mend it, so that `slug("  Hello   big world ")` is `"hello-big-world"`.
""",
    "environment/Dockerfile": """FROM python:3.13-slim
WORKDIR /app
COPY slugs.py .
""",
    "environment/slugs.py": """def slug(title: str) -> str:
    return title.lower().replace(" ", "-")
""",
    f"{_TESTS}/test.sh": """#!/bin/bash
# The tests are in /tests, what the agent left is in the working folder. The reward is a number from 0 to 1.
if python3 -m pytest -rA /tests/test_slugs.py; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
""",
    f"{_TESTS}/test_slugs.py": """import sys

sys.path.insert(0, "/app")

from slugs import slug


def test_one_space():
    assert slug("Hello world") == "hello-world"


def test_several_spaces():
    assert slug("  Hello   big world ") == "hello-big-world"
""",
    "solution/solve.sh": """#!/bin/bash
sed -i 's/return .*/return "-".join(title.lower().split())/' slugs.py
""",
}

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the task and of its folder.")]
IntoOption = Annotated[Path, typer.Option("--into", help="Folder in which it is written.")]


def init(name: NameArgument, into: IntoOption = Path(), as_json: AsJson = False) -> None:
    """Write the folder of a small task that is sound, to start from."""
    terminal = Terminal(as_json)
    folder = into / name
    if _NAME.fullmatch(name) is None:
        problem = "NAME is letters, digits, dots, hyphens and underscores, and begins with a letter or digit."
        terminal.print_error(problem, "INVALID_ARGUMENT")
        raise typer.Exit(ExitCode.REFUSED)
    try:
        folder.mkdir(parents=True)
        for path, text in _FILES.items():
            target = folder / path
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")
            if path in _PROGRAMS:
                target.chmod(0o755)
    except OSError as error:
        terminal.print_error(f"{folder} cannot be written: {error.strerror}.", "INVALID_ARGUMENT")
        raise typer.Exit(ExitCode.REFUSED) from error
    if terminal.is_json:
        terminal.emit({"folder": str(folder), "files": list(_FILES)})
        return
    say(terminal.out, f"{folder} is a task. Prove it with: proctor rollouts check {folder}")
