"""In the place of pip, uv, uvx and pipx in a sandbox of tests or of an agent, which has no network.

Packages that are there are installed, whatever version is asked for; others come from the wheels that the
worker put beside this program, or shows to an agent. It runs with the Python of the sandbox, and imports the
standard library and `packaging`, which pytest brings.
"""

import os
import re
import sys
import venv
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution, distributions
from pathlib import Path

RUNNER = Path(__file__).resolve().parent
# An agent's is shown read-only, with its modules unpacked.
IS_AGENTS = Path("/opt/installers") == RUNNER
INTO = Path("/opt/installed") if IS_AGENTS else RUNNER
PACKAGES, WHEELS = (
    (RUNNER / "lib", Path("/opt/wheels")) if IS_AGENTS else (RUNNER / "packages.zip", RUNNER / "wheels")
)
SITE, BIN = INTO / "site", INTO / "bin"
sys.path[:0] = [str(PACKAGES), str(SITE)]

from packaging.requirements import InvalidRequirement, Requirement  # noqa: E402  # the path comes first
from packaging.tags import sys_tags  # noqa: E402  # the path comes first
from packaging.utils import canonicalize_name, parse_wheel_filename  # noqa: E402  # the path comes first
from packaging.version import InvalidVersion, Version  # noqa: E402  # the path comes first

SETTING = "PROCTOR_WORKER_VERIFIER_WHEELS"
# They are of this program's own, or needed only to build.
OWN = {"uv", "pip", "pipx", "setuptools", "wheel", "virtualenv"}
OFFLINE = {
    "UV_OFFLINE": "1",
    "UV_NO_INDEX": "1",
    "UV_FIND_LINKS": str(WHEELS),
    "UV_PYTHON_DOWNLOADS": "never",
}
# Options that have a value in the next word.
WITH_VALUE = {
    *("-c", "--constraint", "-t", "--target", "-i", "--index-url", "--extra-index-url", "-f", "--find-links"),
    *("-p", "--python", "--prefix", "--root", "--only-binary", "--no-binary", "--progress-bar", "--timeout"),
    *("--retries", "--trusted-host", "--cache-dir", "--log", "--proxy", "--platform", "--abi", "--src"),
    *(
        "--implementation",
        "--python-version",
        "--upgrade-strategy",
        "--index",
        "--default-index",
        "--project",
    ),
    *(
        "--directory",
        "--config-file",
        "--color",
        "--prompt",
        "--extra",
        "--group",
        "--env-file",
        "--index-strategy",
    ),
    *("--python-platform", "--exclude-newer", "--pip-args", "--resolution", "--link-mode"),
    *("--prerelease", "--suffix", "--only-group", "--no-group", "--package", "--refresh-package", "-P"),
}
WITH_PACKAGES = {"--with", "-w", "--from", "--spec", "--with-editable"}
WITH_FILE = {"-r", "--requirement", "--requirements", "--with-requirements"}


class Refused(Exception):
    """What cannot be done here, in one sentence."""


def main(program: str, words: Sequence[str]) -> int:
    try:
        return {"uv": uv, "uvx": uvx, "pipx": pipx}.get(program, pip)(list(words))
    except Refused as refused:
        sys.stderr.write(f"{program}: {refused}\n")
        return 1


def pip(words: list[str]) -> int:
    options = Words(words)
    verb = next(iter(options.rest), "")
    if verb == "install":
        install([*options.rest[1:], *options.packages])
    elif verb in ("list", "freeze"):
        sys.stdout.writelines(f"{name}=={version}\n" for name, version in sorted(installed()))
    elif verb == "show":
        install(options.rest[1:])
    elif verb in ("download", "wheel"):
        raise Refused(f"{verb} cannot fetch a package: a sandbox has no network")
    elif {"--version", "-V"} & set(words):
        sys.stdout.write(f"pip 0 from {RUNNER}\n")
    return 0


def uv(words: list[str]) -> int:
    options = Words(words, until=("run", "tool", "pip", "venv", "x"))
    verb = next(iter(options.rest), "")
    rest = options.after
    if verb == "pip":
        return pip(["install", "-r", *rest[1:]] if rest[:1] == ["sync"] else rest)
    if verb == "venv":
        make_venv(Words(rest).rest)
    elif verb == "run":
        run(rest)
    elif verb == "tool" and rest[:1] == ["run"]:
        return uvx(rest[1:])
    elif verb in ("add", "tool"):
        inner = options.rest[1:] if verb == "add" else Words(rest).rest[1:]
        install([*inner, *options.packages, *Words(rest).packages])
    elif verb == "python":
        sys.stdout.write(f"{sys.executable}\n" if "find" in words else "")
    elif "--version" in words or verb in ("version", "self"):
        sys.stdout.write("uv 0.9.0 (of the sandbox)\n")
    elif verb not in ("", "cache", "init", "help", "lock"):
        real_uv(words)
    return 0


def uvx(words: list[str]) -> int:
    """One command, which the packages bring that are named by options or by the command."""
    options = Words(words, is_command=True)
    if not options.rest:
        sys.stdout.write("uvx 0.9.0 (of the sandbox)\n")
        return 0
    command, own = command_of(options.rest[0])
    install([*options.packages, *([] if options.has_source or can_run(command) else [own])])
    execute([command, *options.rest[1:]])
    return 0


def command_of(text: str) -> tuple[str, str]:
    """A command and the package that brings it, of `NAME`, `NAME@VERSION` and `NAME==VERSION`."""
    found = re.fullmatch(r"([\w.-]+)(\[[^\]]*\])?\s*(?:@(.*)|([=<>!~].*))?", text)
    if not found:
        return text, text
    name, extras, at, pin = found.groups("")
    return name, f"{name}{extras}{f'=={at}' if at[:1].isdigit() else pin}"


def pipx(words: list[str]) -> int:
    options = Words(words, until=("run",))
    verb = next(iter(options.rest), "")
    if verb == "run":
        return uvx(options.after)
    if verb == "install":
        install(options.rest[1:])
    elif verb == "inject":
        install(options.rest[2:])
    elif "--version" in words:
        sys.stdout.write("1.8.0\n")
    return 0


def run(words: list[str]) -> None:
    """`uv run`: the command in the environment of the folder, if it has one."""
    options = Words(words, is_command=True)
    install(options.packages)
    folder = Path(os.environ.get("VIRTUAL_ENV", ".venv"))
    if (folder / "bin").is_dir():
        os.environ["PATH"] = f"{folder.resolve() / 'bin'}:{os.environ['PATH']}"
    command = options.rest
    if {"-m", "--module"} & set(words[: len(words) - len(command)]):
        command = ["python3", "-m", *command]
    elif command and command[0].endswith(".py"):
        command = ["python3", *command]
    elif command and command[0] == "python" and not can_run("python"):
        command = ["python3", *command[1:]]
    execute(command)


class Words:
    """Words of a command line without options. `rest` ends with a command and all of its words."""

    def __init__(self, words: list[str], *, is_command: bool = False, until: tuple[str, ...] = ()) -> None:
        self.rest: list[str] = []
        self.after: list[str] = []
        self.packages: list[str] = []
        self.has_source = False
        left = list(words)
        while left:
            word = left.pop(0)
            option, equals, value = word.partition("=")
            if word == "--" or not word.startswith("-") or word == "-":
                self.rest += left if word == "--" else [word]
                if is_command and word != "--":
                    self.rest += left
                self.after = left
                if word == "--" or is_command or word in until:
                    return
            elif option in WITH_PACKAGES or option in WITH_FILE:
                value = value if equals else left.pop(0) if left else ""
                self.has_source = self.has_source or option in ("--from", "--spec")
                self.packages += lines_of(Path(value)) if option in WITH_FILE else split_packages(value)
            elif option in WITH_VALUE and not equals and left:
                left.pop(0)
            elif option in ("-e", "--editable") and left:
                self.rest.append(left.pop(0))


def split_packages(text: str) -> list[str]:
    """Packages with a comma between them; a comma also stands in a range of versions."""
    return re.split(r",(?=\s*[A-Za-z])", text)


def lines_of(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from error
    lines = (re.split(r"(?:^|\s)#", line)[0].split(" --hash")[0].strip(" \t\\") for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("-")]


def install(wanted: Iterable[str]) -> None:
    """Raises Refused for the first that is not there and has no wheel."""
    left, seen, required = list(wanted), set(), set()
    while left:
        text = left.pop(0)
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            install_project(text)
            continue
        key = str(requirement)
        if key in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(key)
        is_other = canonicalize_name(requirement.name) not in OWN
        if is_other and is_unpacked(requirement, is_required=text in required):
            required.update(more := [*needed(requirement)])
            left += more


def install_project(path: str) -> None:
    """A folder or a wheel, by the machine's own pip."""
    command = ("pip", "install", "--no-index", "--no-build-isolation", f"--target={SITE}")
    find, variables = f"--find-links={WHEELS}", {**os.environ}
    variables.pop("PYTHONPATH", None)
    if os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-m", *command, find, path], variables):  # noqa: S606  # no shell
        raise Refused(f"{path} cannot be installed: a sandbox has no network")


def is_unpacked(requirement: Requirement, *, is_required: bool = False) -> bool:
    """False where the package was there before. What a wheel requires comes from a newer wheel if it can."""
    name = canonicalize_name(requirement.name)
    version = version_of(name)
    is_own = bool(version) and str(distribution(name).locate_file("")).startswith(str(PACKAGES))
    exact = [(each, path) for each, path in wheels_of(name) if is_in(requirement, str(each))]
    if version and not is_own and is_in(requirement, version):
        there = Version(version)
        exact = [each for each in exact if there < each[0] and there.major == each[0].major]
        is_own = not (is_required and exact)
    if is_own:
        return False
    wheels = exact or near_wheels(requirement, name)
    used = max(wheels)[0] if wheels else version
    if used and not exact:
        sys.stderr.write(f"{name} {used} is used: there is no wheel of {requirement}\n")
    if wheels:
        unpack(max(wheels)[1])
    if used:
        return bool(wheels)
    raise Refused(
        f"{requirement} cannot be installed: a sandbox has no network, and {SETTING} names no wheel of it"
    )


def near_wheels(requirement: Requirement, name: str) -> list[tuple[Version, Path]]:
    """Those of the major version that is pinned."""
    pins = [each.version for each in requirement.specifier if each.operator in ("==", "===", "~=")]
    majors = {int(found[0]) for pin in pins if (found := re.match(r"\d+", pin))}
    return [each for each in wheels_of(name) if each[0].major in majors]


def is_in(requirement: Requirement, version: str) -> bool:
    try:
        return requirement.specifier.contains(version, prereleases=True)
    except InvalidVersion:
        return False


def needed(requirement: Requirement) -> Iterator[str]:
    for text in distribution(requirement.name).requires or ():
        inner = Requirement(text)
        extras = requirement.extras or {""}
        if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
            inner.marker = None
            yield str(inner)


def version_of(name: str) -> str:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return ""


def installed() -> set[tuple[str, str]]:
    return {(each.metadata["Name"], each.version) for each in distributions() if each.metadata["Name"]}


def wheels_of(name: str) -> list[tuple[Version, Path]]:
    tags = set(sys_tags())
    found = []
    for path in sorted(WHEELS.glob("*.whl")):
        wheel, version, _, of = parse_wheel_filename(path.name)
        if wheel == name and not tags.isdisjoint(of):
            found.append((version, path))
    return found


def unpack(wheel: Path) -> None:
    SITE.mkdir(exist_ok=True)
    BIN.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as files:
        files.extractall(SITE)
        names = files.namelist()
    for name in names:
        inner = name.partition(".data/")[2]
        kind, _, path = inner.partition("/")
        if not inner or name.endswith("/"):
            continue
        place = {"purelib": SITE, "platlib": SITE, "scripts": BIN}.get(kind)
        if place is not None:
            target = place / path
            target.parent.mkdir(parents=True, exist_ok=True)
            (SITE / name).replace(target)
            if kind == "scripts":
                write_program(target, target.read_bytes().replace(b"#!python", b"#!/usr/bin/env python3", 1))
    for name in names:
        if name.endswith(".dist-info/entry_points.txt"):
            write_entry_points((SITE / name).read_text(encoding="utf-8"))


def write_entry_points(text: str) -> None:
    section = text.partition("[console_scripts]")[2].partition("\n[")[0]
    for line in section.splitlines():
        name, equals, target = line.partition("=")
        module, _, called = target.strip().partition(" ")[0].partition(":")
        if equals and not (BIN / name.strip()).exists():
            program = f"#!/usr/bin/env python3\nimport sys\nimport {module}\nsys.exit({module}.{called}())\n"
            write_program(BIN / name.strip(), program.encode())


def write_program(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o755)


def make_venv(words: list[str]) -> None:
    """With all that the sandbox has."""
    folder = words[0] if words else ".venv"
    try:
        venv.EnvBuilder(system_site_packages=True, symlinks=True).create(folder)
    except OSError as error:
        raise Refused(f"{folder} cannot be made: {error.strerror}") from error


def can_run(command: str) -> bool:
    folders = os.environ.get("PATH", "").split(":")
    return "/" in command or any(os.access(Path(folder, command), os.X_OK) for folder in folders)


def execute(command: list[str]) -> None:
    if not command:
        return
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:{BIN}"
    os.environ["PYTHONPATH"] = ":".join(
        [*filter(None, [os.environ.get("PYTHONPATH")]), str(PACKAGES), str(SITE)]
    )
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(command[0], command)  # noqa: S606  # what the tests ask for
    except OSError as error:
        sys.stderr.write(f"sh: 1: {command[0]}: not found\n")
        raise SystemExit(127) from error


def real_uv(words: list[str]) -> None:
    """uv itself, where the worker has its wheel."""
    wheels = wheels_of("uv")
    if not wheels:
        raise Refused(
            f"{words[0]} needs uv itself: a sandbox has no network, and {SETTING} names no wheel of it"
        )
    program = INTO / "uv"
    with zipfile.ZipFile(max(wheels)[1]) as files:
        name = next(name for name in files.namelist() if name.endswith(".data/scripts/uv"))
        write_program(program, files.read(name))
    os.environ.update(OFFLINE)
    execute([str(program), *words])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
