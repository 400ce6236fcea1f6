"""Queries are written in one style: indented by fours, with large keywords, in lines that fit a screen."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "services").rglob("queries.sql"))
MAX_COLUMNS = 130
STRING_OR_COMMENT = re.compile(r"'[^']*'|--.*")
# Other names of tables are written small as well, and this is one.
PSEUDO_TABLE = re.compile(r"\bEXCLUDED\b")
KEYWORD = re.compile(
    r"\b(select|insert|update|delete|from|where|and|or|not|join|values|returning|order by|group by|limit)\b"
)
# A condition that continues a clause is deeper than the clause.
CONDITION = re.compile(r"(AND|OR)\b")


def faults(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("-- name: "):
            continue
        code = STRING_OR_COMMENT.sub("", line)
        if len(line) > MAX_COLUMNS:
            yield f"{number}: {len(line)} columns, more than {MAX_COLUMNS}"
        if (len(line) - len(line.lstrip(" "))) % 4:
            yield f"{number}: not indented by fours"
        if PSEUDO_TABLE.search(code):
            yield f"{number}: excluded is written small"
        if KEYWORD.search(code):
            yield f"{number}: keywords are written large"
        if CONDITION.match(line):
            yield f"{number}: not deeper than the clause that it continues"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_queries_have_one_style(file: Path) -> None:
    assert list(faults(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "SELECT a,\n       b FROM t;",
        "SELECT a FROM t\nWHERE a\nAND b;",
        "SELECT a FROM t\nWHERE a\n  AND b;",
        "UPDATE t SET a = EXCLUDED.a;",
        "SELECT a from t;",
        f"SELECT {'a' * MAX_COLUMNS};",
    ],
)
def test_other_styles_are_found(line: str) -> None:
    assert len(list(faults(line))) >= 1


def test_texts_and_comments_are_not_code() -> None:
    assert list(faults("-- and so on, from EXCLUDED\nSELECT 'and from' FROM t;")) == []
