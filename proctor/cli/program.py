"""How a hint calls this program, so that its reader can type it."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from proctor.distribution import COMMANDS, NAME

# In texts commands stand between these, by their first name.
_QUOTED = f"`{COMMANDS[0]} "
# Environments that uv makes for one command lie in its cache, in folders of such names.
_UV_CACHE = "archive-v"
# Only the stack needs it.
_OF_STACK = "asyncpg"


def program_name(environ: Mapping[str, str] = os.environ) -> str:
    """By the first of its names that the shell finds, else by its path; by uvx where that has started it."""
    if "UV" in environ and Path(sys.prefix).parent.name.startswith(_UV_CACHE):
        # It adds the folder of the program to the PATH of the program alone.
        return f"uvx --from {shlex.quote(_requirement())} {COMMANDS[0]}"
    beside = [Path(sys.executable).absolute().with_name(name) for name in COMMANDS]
    for program in beside:
        found = shutil.which(program.name)
        if found and program.exists() and Path(found).samefile(program):
            return program.name
    own, here = beside[0], Path.cwd()
    if not own.exists():
        return own.name
    return str(own.relative_to(here) if own.is_relative_to(here) else own)


def with_program_name(text: str) -> str:
    """A sentence with its commands as the reader can type them."""
    return text.replace(_QUOTED, f"`{program_name()} ") if _QUOTED in text else text


def _requirement() -> str:
    """The distribution, or the file it was installed from, with the extra that it has."""
    extra = "[stack]" if find_spec(_OF_STACK) else ""
    origin = json.loads(distribution(NAME).read_text("direct_url.json") or "{}").get("url", "")
    parts = urlsplit(origin)
    return f"{unquote(parts.path) if parts.scheme == 'file' else origin or NAME}{extra}"
