"""Finds in what tests printed why they could not start: then a reward of 0 says nothing about the files."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from services.worker.verification.printed import plain_lines
from services.worker.verification.verifier_result import VerifierResult

# Usage errors (exit code 4), no test at all (5), errors of pytest itself (3), and plugins that are missing.
_OF_PYTEST = re.compile(
    r"(?:pytest(?:\.main\(\))?|py\.test|__main__\.py): error: "
    r"|^ERROR: (?:not found: |file or directory not found: )"
    r"|^ERROR: (?:Missing required plugins: |Wrong expression |Unknown )|^INTERNALERROR> "
    r"|ImportError while loading conftest|No module named '?_?pytest|Error importing plugin "
    r"|\bno tests ran in "
    r"|^collected 0 items\s*$|^=*\s*\d+ deselected in |fixture '\w+' not found"
)
# Said by the runner of a sandbox, wherever it comes among the lines of pytest itself.
_ENDED = re.compile(r"^pytest ended with exit code [345]$")
# No test is found, or none can be imported: where tests start on the solution, that is of an agent's files.
_OF_FILES = re.compile(
    r"^pytest ended with exit code [45]$|^ERROR: (?:not found: |file or directory not found: )"
    r"|ImportError while loading conftest|\bno tests ran in |^collected 0 items\s*$"
)
_OF_OTHERS = re.compile(
    r"^Ran 0 tests in |^NO TESTS RAN|^No tests? (?:suites? )?found|\[no test files\]|no tests to run"
    r"|No solution found when resolving |Could not find a version that satisfies the requirement "
    r"|\\r': command not found|\^M: bad interpreter"
    # No sandbox has them.
    r"|^Cannot connect to the Docker daemon|^System has not been booted with systemd"
    r"|(?:can't open file|cannot open|bash:|sh: \d+:|line \d+:) '?/tests/[^:]*: .*No such file",
    re.IGNORECASE,
)
# The installers of a sandbox say so.
NOT_INSTALLED = "a sandbox has no network"
OTHER_VERSION = " is used: there is no wheel of "
# pytest counts these tests as failed.
_NOT_AWAITED = "async def functions are not natively supported"
# Programs that run or build tests, or bring one that does: they are never the work of an agent.
_RUNNERS = frozenset(
    {"uv", "uvx", "pip", "pip3", "pipx", "poetry", "tox", "nox", "pytest", "py.test", "bash", "bats", "prove"}
    | {"node", "npm", "npx", "yarn", "pnpm", "bun", "deno", "jest", "mocha", "vitest", "cargo", "go", "java"}
    | {"mvn", "gradle", "ruby", "bundle", "rspec", "perl", "php", "phpunit", "dotnet", "make", "ctest"}
    | {
        "cc",
        "gcc",
        "g++",
        "clang",
        "clang++",
        "cmake",
        "ninja",
        "rustc",
        "javac",
        "kotlin",
        "kotlinc",
        "scala",
    }
    | {
        "sbt",
        "swift",
        "swiftc",
        "tsc",
        "Rscript",
        "R",
        "julia",
        "ghc",
        "cabal",
        "lua",
        "elixir",
        "mix",
        "dart",
    }
)
# What they fetch is there, or its absence is told by the program that needs it.
_FETCHERS = frozenset({"apt", "apt-get", "apk", "dnf", "yum", "sudo", "curl", "wget", "deactivate"})
_NOT_FOUND = re.compile(
    r"(?:^|[:\s])(?P<program>[\w.+-]+): (?:command )?not found\s*$"
    r"|\benv: [‘'\"]?(?P<called>[\w.+-]+)[’'\"]?: No such file or directory"
)
_PYTHON = re.compile(r"python[\d.]*")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<module>\w+)")
# A connection that is refused is none: it may be that of the agent's own server.
NO_NETWORK = re.compile(
    r"Could not resolve (?:host|proxy)|Name or service not known|Temporary failure in name resolution"
    r"|Temporary failure resolving|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|\bENOTFOUND\b|dns error"
    r"|failed to lookup address|unable to resolve host address|bad address '|Network is unreachable"
    r"|dial tcp: lookup .* (?:no such host|server misbehaving)",
    re.IGNORECASE,
)
_RAN = re.compile(r"\b[1-9]\d* (?:passed|failed)\b")
_ERRORS = re.compile(r"\b[1-9]\d* errors?\b")
_MAX_LINE_CHARACTERS = 300


def not_started(result: VerifierResult, is_named: Callable[[str], bool] = lambda _: True) -> str:
    """The line that says why tests could not start; empty where they scored or there is none.

    `is_named`: the task names a program or module, so it may be one that the agent was to make.
    """
    if result.score > 0.0:
        return ""
    output = _Output(plain_lines(_printed(result)), is_named)
    explained = next(filter(output.explains, output.lines), "")
    return (explained or output.ended).strip()[:_MAX_LINE_CHARACTERS]


def is_of_files(line: str) -> bool:
    """Whether such a line is no word of what a machine lacks."""
    return _OF_FILES.search(line) is not None


def _printed(result: VerifierResult) -> str:
    """Without the first line of each script, which counts errors as failures."""
    if not result.scripts:
        return result.log
    return "\n".join(each.output.partition("\n")[2] for each in result.scripts)


@dataclass(frozen=True)
class _Output:
    lines: list[str]
    is_named: Callable[[str], bool]

    @cached_property
    def has_run(self) -> bool:
        return any(map(_RAN.search, self.lines))

    @cached_property
    def has_errors(self) -> bool:
        return any(map(_ERRORS.search, self.lines))

    @cached_property
    def ended(self) -> str:
        """The line of an exit code of pytest's with which nothing has run."""
        return "" if self.has_run else next((line for line in self.lines if _ENDED.search(line.strip())), "")

    def explains(self, line: str) -> bool:
        if _NOT_AWAITED in line:
            return True
        if self.has_run:
            return False
        if NOT_INSTALLED in line or _OF_PYTEST.search(line.strip()) or self._lacks_module(line):
            return True
        return not self.has_errors and self._could_not_begin(line.strip())

    def _could_not_begin(self, line: str) -> bool:
        found = _NOT_FOUND.search(line)
        return bool(NO_NETWORK.search(line) or _OF_OTHERS.search(line)) or (
            found is not None and self._is_missing(found["program"] or found["called"])
        )

    def _is_missing(self, program: str) -> bool:
        is_known = program in _RUNNERS or bool(_PYTHON.fullmatch(program))
        return is_known or (program not in _FETCHERS and not self.is_named(program))

    def _lacks_module(self, line: str) -> bool:
        """Whether tests import a package that is not installed."""
        found = _NO_MODULE.search(line)
        return found is not None and not self.is_named(found["module"])
