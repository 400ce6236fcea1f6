"""Queries are found by the name in their line."""

from pathlib import Path

import pytest

from services.common.postgres import load_queries


def test_queries_are_split_at_their_names(tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(
        "-- name: find_one: one row ($1 id)\nSELECT a\nFROM b;\n\n-- name: drop_all: none\nDELETE FROM b;\n"
    )

    assert load_queries(file) == {"find_one": "SELECT a\nFROM b;", "drop_all": "DELETE FROM b;"}


def test_queries_of_several_topics_are_found_and_a_name_belongs_to_one(tmp_path: Path) -> None:
    first, second = tmp_path / "a.sql", tmp_path / "b.sql"
    first.write_text("-- name: find_one: one row\nSELECT 1;\n")
    second.write_text("-- name: find_two: another row\nSELECT 2;\n")
    assert load_queries(first, second) == {"find_one": "SELECT 1;", "find_two": "SELECT 2;"}
    with pytest.raises(ValueError, match="another query is named find_one as well"):
        load_queries(first, first)
