"""Each call of a query gives a value to each of its parameters, and to nothing else."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from services.common.sql.queries import Query, parse_query
from services.results.postgres import QUERIES as RESULTS
from services.scheduler.postgres import QUERIES as SCHEDULER

SERVICES = Path(__file__).resolve().parents[2] / "services"
QUERIES: Mapping[str, Mapping[str, Query]] = {"results": RESULTS, "scheduler": SCHEDULER}
ADAPTERS = [path for service in QUERIES for path in sorted((SERVICES / service).rglob("postgres*.py"))]


def calls(tree: ast.AST, queries: Mapping[str, Query]) -> Iterator[tuple[Query, ast.Call, int]]:
    """Calls that name a query, and where among their arguments."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for index, argument in enumerate(call.args):
                name = argument.value if isinstance(argument, ast.Constant) else None
                if isinstance(name, str) and name in queries:
                    yield queries[name], call, index


def faults(source: str, queries: Mapping[str, Query]) -> list[str]:
    found = []
    for query, call, index in calls(ast.parse(source), queries):
        given = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
        # What `**values`, rows of `executemany` and a call of another function hold is checked when it runs.
        is_whole = len(call.args) == index + 1 and all(keyword.arg for keyword in call.keywords)
        missing = set(query.parameters) - given if is_whole else set()
        if missing or given - set(query.parameters):
            found.append(f"{call.lineno}: {query.name} takes {query.parameters}, not {sorted(given)}")
    return found


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: str(path.relative_to(SERVICES)))
def test_values_have_the_names_of_the_parameters(path: Path) -> None:
    queries = QUERIES[path.relative_to(SERVICES).parts[0]]
    assert faults(path.read_text(encoding="utf-8"), queries) == []


@pytest.mark.parametrize("service", QUERIES)
def test_most_calls_are_checked_before_they_run(service: str) -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in ADAPTERS if service in path.parts]
    found = [one for tree in trees for one in calls(tree, QUERIES[service])]
    whole = [call for _, call, index in found if len(call.args) == index + 1]
    assert len(whole) > 0.9 * len(found) > 80


@pytest.mark.parametrize("service", QUERIES)
def test_each_query_is_used(service: str) -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in ADAPTERS if service in path.parts)
    assert [name for name in QUERIES[service] if f'"{name}"' not in texts] == []


@pytest.mark.parametrize(
    "call",
    [
        "session.fetch('read_run')",
        "session.fetch('read_run', run_id=1)",
        "session.fetch('read_run', run_id=1, epoch=1, other=1)",
        "session.fetch('read_run', other=1, **values)",
        "write_as_leader(session, token, 'read_run', run_id=1)",
        "change(made, 'read_run', run_id, other=1)",
    ],
)
def test_other_names_are_found(call: str) -> None:
    queries = {"read_run": parse_query("read_run", "SELECT :run_id, :epoch")}
    assert len(faults(call, queries)) == 1


@pytest.mark.parametrize(
    "call",
    [
        "session.fetch('read_run', epoch=1, run_id=1)",
        "session.fetch('read_run', epoch=1, **values)",
        "session.executemany('read_run', rows)",
        "change(made, 'read_run', run_id, epoch=1)",
    ],
)
def test_calls_that_may_be_right_are_none(call: str) -> None:
    queries = {"read_run": parse_query("read_run", "SELECT :run_id, :epoch")}
    assert faults(call, queries) == []
