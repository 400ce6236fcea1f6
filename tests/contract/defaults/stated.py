"""The places where defaults are stated in prose: comments of the contracts, tables and sentences of docs."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
_GENERATED = frozenset({"settings.md", "errors.md", "exit-codes.md", "metrics.md"})
_MESSAGE = re.compile(r"^message (\w+) {")
_ENUM = re.compile(r"^enum (\w+) {")
_FIELD = re.compile(r"(?:optional |repeated )?[\w.]+ (\w+) = \d+;$")
_VALUE = re.compile(r"(\w+) = \d+;$")
# What a field means that is not set.
_ABSENT = re.compile(r"\bdefaults?\b|\b(?:unset|empty|0) means\b", re.IGNORECASE)


def comments() -> Iterator[tuple[str, str]]:
    """Each message or enum, field and value of the contracts with its comment, as `Message.field`."""
    for path in sorted((ROOT / "protos" / "proctor" / "v1").glob("*.proto")):
        owner, lines = path.stem, list[str]()
        for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()):
            if line.startswith("//"):
                lines.append(line.removeprefix("//").strip())
                continue
            if named := _MESSAGE.match(line) or _ENUM.match(line):
                owner = named[1]
                yield owner, " ".join(lines)
            elif named := _FIELD.search(line) or _VALUE.search(line):
                yield f"{owner}.{named[1]}", " ".join(lines)
            lines = []


def absences() -> Mapping[str, str]:
    """The sentences of comments that say what a field means that is not set, by `Message.field`."""
    return {
        name: " ".join(part for part in re.split(r"(?<=\.) (?=[A-Z])", comment) if _ABSENT.search(part))
        for name, comment in comments()
        if _ABSENT.search(comment)
    }


def docs() -> Iterator[Path]:
    """The pages that people write."""
    yield ROOT / "README.md"
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if "decisions" not in path.parts and path.name not in _GENERATED:
            yield path


def rows(path: Path) -> Iterator[Mapping[str, str]]:
    """The rows of a page's tables, cells by column."""
    columns: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = cells
        elif not set(line) <= set("|-: "):
            yield dict(zip(columns, cells, strict=False))


def default_cells() -> Mapping[tuple[str, str], str]:
    """What tables of docs state as defaults, by page and first cell."""
    return {
        (path.name, next(iter(row.values())).strip("`")): row[column]
        for path in docs()
        for row in rows(path)
        for column in row
        if column in ("default", "limit by default")
    }


def default_sentences() -> Iterator[tuple[str, str]]:
    """Sentences of docs, and cells of other columns, that have the word default; each with its page."""
    for path in docs():
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for block in re.split(r"\n\n|\n(?=[|#-])", text):
            joined = " ".join(block.split())
            parts = (
                joined.split(" | ") if joined.startswith("|") else re.split(r"(?<=[.:]) (?=[A-Z`])", joined)
            )
            for part in parts:
                if re.search(r"\bdefaults?\b", part, re.IGNORECASE) and len(part.split()) > 1:
                    yield path.name, part
