"""A path that a page, a contract or a comment names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = (
    "*.md",
    "docs/**/*.md",
    "protos/**/*.proto",
    "services/**/*.py",
    "services/**/*.sql",
    "proctor/**/*.py",
)
# Dots may end a sentence; a star is any name.
NAMED = re.compile(r"(?<![\w./:-])((?:services|proctor|tests|docs|protos|suites|\.ci)/[\w*/.{},-]*[\w*/])")
SHORT = re.compile(r"`((?:gateway|scheduler|worker|results)/[a-z_/]+)`")


def text_files() -> list[Path]:
    found = {path for pattern in PATTERNS for path in ROOT.glob(pattern)}
    return sorted(path for path in found if "_pb2" not in path.name and path.name != "CHANGELOG.md")


def exists(name: str) -> bool:
    """`tests/x/test_{a,b}.py` names two files."""
    choice = re.fullmatch(r"(.*)\{(.*)\}(.*)", name)
    if choice:
        before, names, after = choice.groups()
        return all(exists(before + each + after) for each in names.split(","))
    if name.startswith("proctor/v1/"):
        name = f"protos/{name}" if name.endswith(".proto") else name
    return bool(list(ROOT.glob(name.rstrip("/")))) if "*" in name else (ROOT / name).exists()


@pytest.mark.parametrize("path", text_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_that_is_named_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.name == "routes.py":
        # Names of templates: a test of pages renders them.
        text = re.sub(r'show\("[a-z_/]+"', "", text)
        text = re.sub(r'part="[a-z_/]+"', "", text)
    assert [name for name in NAMED.findall(text) if not exists(name)] == []


def test_every_file_on_the_path_of_a_run_exists() -> None:
    named = SHORT.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / "services" / f"{name}.py").exists()] == []
    assert len(named) > 5


def test_each_decision_has_a_number_of_its_own_and_names_it() -> None:
    records = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    numbers = [path.name[:4] for path in records]
    assert len(set(numbers)) == len(numbers), numbers
    for path in records:
        assert path.read_text(encoding="utf-8").startswith(f"# {path.name[:4]} "), path.name
