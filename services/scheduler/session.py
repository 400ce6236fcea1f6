"""The schema of the scheduler, and the queries of all its topics by name."""

from pathlib import Path

from services.common.postgres import load_queries

ROOT = Path(__file__).parent
SCHEMA = "scheduler"
MIGRATIONS = ROOT / "migrations"
QUERIES = load_queries(*sorted(ROOT.rglob("queries.sql")))
