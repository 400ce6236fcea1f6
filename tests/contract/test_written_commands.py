"""What texts tell people and agents to type exists: commands, their options, tools, pages."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from proctor.cli.__main__ import app
from proctor.cli.mcp.server import make_server
from proctor.client.proctor_client import ProctorClient

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "skills" / "proctor" / "SKILL.md"
PAGES = [
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "llms.txt")),
    SKILL,
]
COMMANDS = typer.main.get_command(app)
_PROGRAM = re.compile(r"^(?:\S*/)?proctor(?:-eval)?$")
# Code between backticks, and the lines of blocks; both may hold a command.
_INLINE = re.compile(r"`([^`\n]+)`")
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A step of a workflow.
_STEP = re.compile(r"^- run: (.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def written_commands(text: str) -> Iterator[list[str]]:
    """Words after the program, up to the end of the command."""
    of_blocks = "\n".join(_BLOCK.findall(text)).splitlines()
    for line in [*_INLINE.findall(_BLOCK.sub("", text)), *of_blocks, *_STEP.findall(text)]:
        for part in re.split(r"&&|\|\||[|;>]", line):
            try:
                words = shlex.split(part, comments=True)
            except ValueError:
                continue
            # Variables of the environment may stand before it.
            while words and re.match(r"^[A-Z_]+=", words[0]):
                words.pop(0)
            if len(words) > 1 and _PROGRAM.match(words[0]):
                yield words[1:]


def problem_of(words: list[str]) -> str:
    """Empty for a command that exists with all its options."""
    # Typer's class of groups is internal to it.
    command: Any = COMMANDS
    rest = list(words)
    while rest and not rest[0].startswith("-") and (commands := getattr(command, "commands", None)):
        if rest[0] not in commands:
            return f"no command {rest[0]}"
        command = commands[rest.pop(0)]
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
    unknown = [word for word in rest if word.startswith("--") and word.partition("=")[0] not in known]
    return f"no option {', '.join(unknown)}" if unknown else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_written_commands_exist_with_their_options(page: Path) -> None:
    found = {" ".join(words): problem_of(words) for words in written_commands(page.read_text())}
    assert {words: problem for words, problem in found.items() if problem} == {}


def test_commands_of_the_skill_are_found() -> None:
    found = [words[0] for words in written_commands(SKILL.read_text())]
    assert len(found) > 15
    assert {"run", "results", "compare", "datasets", "suites", "mcp"} <= set(found)
    assert problem_of(["run", "--nonsense"]) == "no option --nonsense"
    assert problem_of(["nonsense"]) == "no command nonsense"


async def test_skill_and_guide_name_the_tools_of_the_server() -> None:
    async with ProctorClient("127.0.0.1:1") as client:
        tools = {tool.name for tool in await make_server(client).list_tools()}
    for page in (SKILL, ROOT / "docs" / "guides" / "agents.md"):
        named = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", page.read_text()))
        assert tools <= named, page


def test_index_for_models_links_to_pages_that_exist() -> None:
    linked = _LINK.findall((ROOT / "llms.txt").read_text())
    assert len(linked) > 15
    assert [path for path in linked if not (ROOT / path).is_file()] == []
