"""The schema of results, and the queries of all of its topics by name."""

from pathlib import Path

from services.common.sql.queries import load_queries
from services.results.export.exported_columns import SQL_PARTS

SCHEMA = "results"
MIGRATIONS = Path(__file__).parent / "migrations"
QUERIES = load_queries(*sorted(Path(__file__).parent.glob("*/queries.sql")), parts=SQL_PARTS)
