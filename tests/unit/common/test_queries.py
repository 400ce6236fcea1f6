"""Queries are found by the name in their line."""

from pathlib import Path

from services.common.postgres import load_queries


def test_queries_are_split_at_their_names(tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(
        "-- name: find_one: one row ($1 id)\nSELECT a\nFROM b;\n\n-- name: drop_all: none\nDELETE FROM b;\n"
    )

    assert load_queries(file) == {"find_one": "SELECT a\nFROM b;", "drop_all": "DELETE FROM b;"}
