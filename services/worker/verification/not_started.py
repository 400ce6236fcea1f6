"""Finds in what tests printed why they could not start: then a reward of 0 says nothing about the files."""

import re

from services.worker.verification.verifier_result import VerifierResult

# A usage error of pytest, no test at all, or a plugin that is missing.
_OF_PYTEST = re.compile(
    r"(?:pytest|py\.test|__main__\.py): error: unrecognized arguments: |ERROR: file or directory not found: "
    r"|No module named '?pytest|Error importing plugin |\bno tests ran in |^=*\s*\d+ deselected in "
    r"|fixture '\w+' not found"
)
# pytest counts these tests as failed.
_NOT_AWAITED = "async def functions are not natively supported"
# Programs that run tests. A program of another name may be the one that the agent was to make.
_RUNNERS = frozenset(
    {"uv", "uvx", "pip", "pip3", "pipx", "poetry", "tox", "nox", "pytest", "py.test", "bash", "bats", "prove"}
    | {"node", "npm", "npx", "yarn", "pnpm", "bun", "deno", "jest", "mocha", "vitest", "cargo", "go", "java"}
    | {"mvn", "gradle", "ruby", "bundle", "rspec", "perl", "php", "phpunit", "dotnet", "make", "ctest"}
)
_NOT_FOUND = re.compile(r"(?:^|[:\s])(?P<program>[\w.+-]+): (?:command )?not found\s*$")
_PYTHON = re.compile(r"python[\d.]*")
# A connection that is refused is none: it may be that of the agent's own server.
_NO_NETWORK = re.compile(
    r"Could not resolve host|Name or service not known|Temporary failure in name resolution"
    r"|Temporary failure resolving|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|dns error|a sandbox has no network",
    re.IGNORECASE,
)
_RAN = re.compile(r"\b[1-9]\d* (?:passed|failed)\b")
_ERRORS = re.compile(r"\b[1-9]\d* errors?\b")
_MAX_LINE_CHARACTERS = 300


def not_started(result: VerifierResult) -> str:
    """The line that says why tests could not start; empty where they scored or there is none."""
    if result.score > 0.0:
        return ""
    printed = _printed(result)
    ran = _RAN.search(printed) is not None
    has_errors = _ERRORS.search(printed) is not None
    for line in printed.splitlines():
        shown = line.strip()[:_MAX_LINE_CHARACTERS]
        if (
            _NOT_AWAITED in shown
            or (not ran and _OF_PYTEST.search(shown))
            or (not ran and not has_errors and _could_not_begin(shown))
        ):
            return shown
    return ""


def _printed(result: VerifierResult) -> str:
    """Without the first line of each script, which counts errors as failures."""
    if not result.scripts:
        return result.log
    return "\n".join(each.output.partition("\n")[2] for each in result.scripts)


def _could_not_begin(line: str) -> bool:
    missing = _NOT_FOUND.search(line)
    program = missing["program"] if missing else ""
    return bool(_NO_NETWORK.search(line)) or program in _RUNNERS or bool(_PYTHON.fullmatch(program))
