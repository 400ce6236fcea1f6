"""The version of a release and its notes: `pyproject.toml` has the version, every other place repeats it.

`check` names the places that say another version, `set VERSION` writes it to all of them, `notes` prints what
`CHANGELOG.md` says of it.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_VERSION = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"


@dataclass(frozen=True, slots=True)
class Place:
    """A file that repeats the version; the expression has what stands before and after it as groups."""

    file: str
    expression: str

    @property
    def pattern(self) -> re.Pattern[str]:
        before, _, after = self.expression.partition("<version>")
        return re.compile(f"(?m)({before})({_VERSION})({after})")


PLACES = (
    Place("pyproject.toml", r'^version = "<version>"'),
    Place("deploy/helm/proctor/Chart.yaml", r"^version: <version>$"),
    Place("deploy/helm/proctor/Chart.yaml", r'^appVersion: "<version>"'),
    Place("deploy/helm/proctor/examples/production.yaml", r'tag: "<version>"'),
    Place("compose.yaml", r"image: [^\s:]*proctor-[a-z-]+:<version>"),
    Place("Dockerfile", r"^ARG VERSION=<version>$"),
    Place("Dockerfile.vllm", r"^ARG VERSION=<version>$"),
)


def version_of(root: Path) -> str:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def problems_of(root: Path, tag: str = "") -> Iterator[str]:
    version = version_of(root)
    for place in PLACES:
        found = [
            match[2] for match in place.pattern.finditer((root / place.file).read_text(encoding="utf-8"))
        ]
        if not found:
            yield f"{place.file}: no version stands where `{place.expression}` would be"
        for other in sorted({*found} - {version}):
            yield f"{place.file}: {other}, but pyproject.toml has {version}"
    if not notes_of(root):
        yield f"CHANGELOG.md: nothing is said of {version}: a heading `## {version}` and lines below it"
    if tag and tag != f"v{version}":
        yield f"the tag {tag} is not v{version}"


def notes_of(root: Path) -> str:
    """The lines below the heading of the version; empty where there is none."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"(?ms)^## {re.escape(version_of(root))}\b[^\n]*\n(.*?)(?=^## |\Z)"
    found = re.search(heading, text)
    return found[1].strip() if found else ""


def set_version(root: Path, version: str) -> None:
    if not re.fullmatch(_VERSION, version):
        raise SystemExit(f"{version} is not a version: write it as 1.2.3 or 1.2.3rc1.")
    for place in PLACES:
        file = root / place.file
        written = place.pattern.sub(rf"\g<1>{version}\g<3>", file.read_text(encoding="utf-8"))
        file.write_text(written, encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check").add_argument("--tag", default="", help="the tag that is released")
    commands.add_parser("notes")
    commands.add_parser("set").add_argument("version")
    given = parser.parse_args(arguments)
    if given.command == "set":
        set_version(ROOT, given.version)
    elif given.command == "notes":
        print(notes_of(ROOT))
    else:
        problems = list(problems_of(ROOT, given.tag))
        print("\n".join(problems) or f"Version {version_of(ROOT)} in {len(PLACES)} places, with notes.")
        return 1 if problems else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
