"""Queries are written in one style: indented by fours, with large keywords, in lines that fit a screen.

A parameter is cast only where Postgres could not infer its type.
"""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType

import asyncpg
import pytest
import pytest_asyncio

from services.common.migrations import migrate
from services.results import postgres as results
from services.scheduler import postgres as scheduler
from tests.harness.servers import postgres_server

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "services").rglob("queries.sql"))
MAX_COLUMNS = 130
HEADER = re.compile(r"-- name: [a-z]+(_[a-z]+)+: [A-Z].*[^.]")
NO_CODE = re.compile(r"'[^']*'|--.*|:\w+")
# Other names of tables are written small as well, and this is one.
PSEUDO_TABLE = re.compile(r"\bEXCLUDED\b")
KEYWORD = re.compile(
    r"\b(select|insert|update|delete|from|where|and|or|not|join|values|returning|order by|group by|limit)\b"
)
CAST = re.compile(r"\$\d+(::(?:double precision|\w+)(?:\[\])?)")
# Types of parameters, and of columns with their names.
Types = tuple[list[str], list[tuple[str, str]]]
# The name of a query beside the number of rows that its adapter takes.
FETCHED = re.compile(r"\.fetch(row|val)?\(\s*\"(\w+)\"")
# A condition that continues a clause is deeper than the clause.
CONDITION = re.compile(r"(AND|OR)\b")


def faults(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("-- name") and not HEADER.fullmatch(line):
            yield f"{number}: a header is `-- name: read_run: Purpose`"
        code = NO_CODE.sub("", line)
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


def test_a_query_of_several_rows_is_a_list() -> None:
    adapters = [path.read_text(encoding="utf-8") for path in (ROOT / "services").rglob("postgres*.py")]
    fetched = [found.groups() for text in adapters for found in FETCHED.finditer(text)]
    assert len(fetched) > 100
    several = {name for takes, name in fetched if not takes}
    one = {name for takes, name in fetched if takes}
    assert {name for name in several if name.startswith(("read_", "find_"))} == set()
    assert {name for name in one if name.startswith("list_")} == set()


@pytest.mark.parametrize(
    "line",
    [
        "SELECT a,\n       b FROM t;",
        "SELECT a FROM t\nWHERE a\nAND b;",
        "SELECT a FROM t\nWHERE a\n  AND b;",
        "UPDATE t SET a = EXCLUDED.a;",
        "SELECT a from t;",
        f"SELECT {'a' * MAX_COLUMNS};",
        "-- name: find_one",
        "-- name: find_one: one row",
        f"-- name: find_one: Return {'a' * MAX_COLUMNS}",
    ],
)
def test_other_styles_are_found(line: str) -> None:
    assert len(list(faults(line))) >= 1


def test_texts_comments_and_parameters_are_not_code() -> None:
    assert list(faults("-- and so on, from EXCLUDED\nSELECT 'and from' FROM t LIMIT :limit;")) == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dsn() -> AsyncIterator[str]:
    async with postgres_server() as server:
        for service in (results, scheduler):
            await migrate(server.address, service.SCHEMA, service.MIGRATIONS)
        yield server.address


async def types_of(connection: asyncpg.Connection, query: str) -> Types | None:
    """None where Postgres refuses the query."""
    try:
        statement = await connection.prepare(query)
    except (asyncpg.SyntaxOrAccessError, asyncpg.DataError):
        return None
    columns = [(column.name, column.type.name) for column in statement.get_attributes()]
    return [parameter.name for parameter in statement.get_parameters()], columns


async def needless_casts(connection: asyncpg.Connection, query: str) -> list[str]:
    """Casts without which the query is the same one."""
    types = await types_of(connection, query)
    return [
        cast.group()
        for cast in CAST.finditer(query)
        if await types_of(connection, query[: cast.start(1)] + query[cast.end(1) :]) == types
    ]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("service", [results, scheduler], ids=lambda service: service.SCHEMA)
async def test_no_parameter_is_cast_to_the_type_that_it_has_anyway(dsn: str, service: ModuleType) -> None:
    connection = await asyncpg.connect(
        dsn, server_settings={"search_path": service.SCHEMA}, statement_cache_size=0
    )
    try:
        found = {
            name: casts
            for name, query in service.QUERIES.items()
            if (casts := await needless_casts(connection, query.statement))
        }
    finally:
        await connection.close()
    assert found == {}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_needless_cast_is_found(dsn: str) -> None:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": scheduler.SCHEMA})
    try:
        query = (
            "SELECT run_id FROM runs WHERE run_id = $1::uuid AND ($2::text IS NULL OR benchmark = $2::text)"
        )
        # The first cast of $2 decides its type.
        assert await needless_casts(connection, query) == ["$1::uuid", "$2::text"]
    finally:
        await connection.close()
