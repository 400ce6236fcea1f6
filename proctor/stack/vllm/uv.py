"""uv in the place of pip: the same packages from the same places, for a fifth of the CPU time.

As a program, with the standard library only: `python uv.py ENVIRONMENT ARGUMENTS…` installs there what
`pip install ARGUMENTS…` installs.
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Settings by their names in pip, with the variables of uv for the same. Spaces separate several values.
VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "constraint": "UV_CONSTRAINT",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "find-links": "UV_FIND_LINKS",
}
# Settings that change how pip installs, not the packages that it installs.
WITHOUT_EFFECT = {
    *("cache-dir", "compile", "config-file", "default-timeout", "disable-pip-version-check", "log"),
    *("no-cache-dir", "no-color", "no-compile", "no-input", "no-python-version-warning"),
    *("no-warn-script-location", "prefer-binary", "progress-bar", "quiet", "require-virtualenv", "retries"),
    *("root-user-action", "timeout", "verbose"),
}
SAME_AS_PIP = {
    # pip takes the best version of all indexes, and trusts the certificates of the machine.
    "UV_INDEX_STRATEGY": "unsafe-best-match",
    "UV_SYSTEM_CERTS": "true",
    "UV_PYTHON_DOWNLOADS": "never",
    # An index of the project in the current folder is no place of pip's.
    "UV_NO_CONFIG": "true",
}


def find_uv() -> str | None:
    """Beside this Python, else on the PATH."""
    beside = Path(sys.executable).parent
    return shutil.which("uv", path=os.pathsep.join((str(beside), os.environ.get("PATH", os.defpath))))


def uv_environment(environ: Mapping[str, str]) -> Mapping[str, str] | None:
    """The variables by which uv does what pip is told to do; None where it cannot be told.

    Without pip there is nothing to follow: uv has settings of its own.
    """
    shown = subprocess.run(
        (sys.executable, "-m", "pip", "config", "list"),
        capture_output=True,
        text=True,
        check=False,
        env=environ,
    )
    if shown.returncode != 0:
        return environ
    settings = pip_settings(shown.stdout)
    if settings.keys() - VARIABLES.keys() - WITHOUT_EFFECT:
        return None
    told = {VARIABLES[name]: value for name, value in settings.items() if name in VARIABLES}
    if "UV_FIND_LINKS" in told:
        told["UV_FIND_LINKS"] = ",".join(told["UV_FIND_LINKS"].split())
    return {**SAME_AS_PIP, **told, **environ}


def pip_settings(listed: str) -> dict[str, str]:
    """Settings for `pip install` by name, of what `pip config list` prints: `section.name='value'`.

    As in pip, those of `install` win over those of all commands, and those of the environment over both.
    """
    found: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in found:
            found[section][name] = " ".join(str(ast.literal_eval(value)).split())
    return {**found["global"], **found["install"], **found[":env:"]}


def install_by_uv(python: Path, arguments: Sequence[str]) -> tuple[tuple[str, ...], Mapping[str, str]] | None:
    """The command that installs what `pip install` would, and its variables; None where only pip can."""
    uv = find_uv()
    variables = uv_environment(os.environ) if uv else None
    if uv is None or variables is None:
        return None
    return (uv, "pip", "install", "--quiet", "--python", str(python), *arguments), variables


def main(environment: str, *arguments: str) -> int:
    """By uv where it can, else by pip, whose sentence and code say why nothing can be installed."""
    python = Path(environment) / "bin" / "python"
    by_uv = install_by_uv(python, arguments)
    if by_uv and subprocess.run(by_uv[0], env=by_uv[1], check=False).returncode == 0:
        return 0
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(python))
    return subprocess.run((*pip, "install", *arguments), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
