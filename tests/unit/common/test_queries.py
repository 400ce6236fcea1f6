"""Queries are found by the name in their line, and their parameters by name."""

from pathlib import Path

import pytest

from services.common.sql.queries import Query, load_queries, parse_query


def test_queries_are_split_at_their_names(tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(
        "-- name: find_one: One row\nSELECT a\nFROM b\nWHERE c = :c;\n\n"
        "-- name: drop_all: None\nDELETE FROM b;\n"
    )

    assert load_queries(file) == {
        "find_one": Query("find_one", "SELECT a\nFROM b\nWHERE c = $1;", ("c",)),
        "drop_all": Query("drop_all", "DELETE FROM b;", ()),
    }


def test_queries_of_several_topics_are_found_and_a_name_belongs_to_one(tmp_path: Path) -> None:
    first, second = tmp_path / "a.sql", tmp_path / "b.sql"
    first.write_text("-- name: find_one: One row\nSELECT 1;\n")
    second.write_text("-- name: find_two: Another row\nSELECT 2;\n")
    assert list(load_queries(first, second)) == ["find_one", "find_two"]
    with pytest.raises(ValueError, match="another query is named find_one as well"):
        load_queries(first, first)


def test_a_name_that_is_used_twice_has_one_number() -> None:
    query = parse_query("q", "SELECT :b, :a WHERE x = :b AND y IN (:a,:c)")
    assert query.statement == "SELECT $1, $2 WHERE x = $1 AND y IN ($2,$3)"
    assert query.parameters == ("b", "a", "c")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a::text, b::double precision[]",
        "SELECT 'at 10:am, :no', 'it''s :no', ':no'",
        "SELECT E'it\\'s :no', e'\\\\'",
        'SELECT ":no" AS "a:no"',
        "SELECT 1 -- as :no says",
        "SELECT 1 /* as :no\n says */",
        "SELECT $$ :no $$, $f$ :no $$ :no $f$",
        "SELECT a[1:2], a[low:high], a[f(x):high], a[b[1]:high], a[1 : high]",
        "SELECT a ->> 'x:no', make_interval(secs => 1), x := 1",
    ],
)
def test_what_only_looks_like_a_parameter_is_none(text: str) -> None:
    assert parse_query("q", text) == Query("q", text, ())


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SELECT :a::text", "SELECT $1::text"),
        ("SELECT (:a::text[])[:a]", "SELECT ($1::text[])[$1]"),
        ("SELECT f(x => :a)", "SELECT f(x => $1)"),
        ("SELECT 'it''s' || :a || E'\\''", "SELECT 'it''s' || $1 || E'\\''"),
        ("SELECT '' || :a -- it's\n", "SELECT '' || $1 -- it's\n"),
        ("SELECT a[1 + :a:2]", "SELECT a[1 + $1:2]"),
    ],
)
def test_a_parameter_is_found_beside_them(text: str, statement: str) -> None:
    assert parse_query("q", text) == Query("q", statement, ("a",))


def test_a_part_stands_where_its_name_is_in_braces(tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(
        "-- name: find_one: One row\nSELECT {columns}, '{columns}', '{}' -- {columns}\nWHERE a = :a;\n"
    )
    query = load_queries(file, parts={"columns": "b, ':c'"})["find_one"]
    assert query.call({"a": 1}) == ["SELECT b, ':c', '{columns}', '{}' -- {columns}\nWHERE a = $1;", 1]
    with pytest.raises(ValueError, match="query find_one: no part has the name columns"):
        load_queries(file)


def test_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"query q: \$2 has no name; write :name instead"):
        parse_query("q", "SELECT :a, $2")
    assert parse_query("q", "SELECT '$2' -- $3").parameters == ()


def test_values_go_to_the_parameters_of_their_names() -> None:
    query = parse_query("find_one", "SELECT :b, :a")
    assert query.call({"a": 1, "b": None}) == ["SELECT $1, $2", None, 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": 1}, r"query find_one\(b, a\): b is missing"),
        ({"a": 1, "b": 2, "c": 3}, r"query find_one\(b, a\): c is not one of its parameters"),
        ({"a": 1, "c": 3}, r"query find_one\(b, a\): b is missing, c is not one of its parameters"),
        ({}, r"query find_one\(b, a\): b is missing, a is missing"),
    ],
)
def test_a_missing_or_unknown_name_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}$"):
        parse_query("find_one", "SELECT :b, :a").call(values)
