"""Each migration says which code may use the schema after it (`-- compatible-from: …` on its first line)."""

import pytest

from services.common.migrations import Migration, read_migrations
from services.results import postgres as results
from services.scheduler import postgres as scheduler

# What the first release starts from: no code before it is in use.
BASELINE = {results.SCHEMA: "0003_outcome_records.sql", scheduler.SCHEMA: "0007_reads.sql"}
FOLDERS = {results.SCHEMA: results.MIGRATIONS, scheduler.SCHEMA: scheduler.MIGRATIONS}
MARK = "-- compatible-from: "


@pytest.mark.parametrize("schema", BASELINE)
def test_every_later_migration_names_the_oldest_code_that_can_use_the_schema(schema: str) -> None:
    known = [migration.name for migration in read_migrations(FOLDERS[schema])]
    for migration in read_migrations(FOLDERS[schema]):
        if migration.name <= BASELINE[schema]:
            continue
        assert migration.sql.startswith(MARK), f"{schema}/{migration.name}: its first line is no `{MARK}…`"
        assert migration.compatible_from in known, f"{schema}/{migration.name}: no such migration"
        assert migration.compatible_from <= migration.name


@pytest.mark.parametrize("schema", BASELINE)
def test_what_a_later_migration_asks_for_is_never_taken_back(schema: str) -> None:
    """Code that an earlier migration has shut out stays shut out."""
    later: list[Migration] = [
        each for each in read_migrations(FOLDERS[schema]) if each.name > BASELINE[schema]
    ]
    marks = [migration.compatible_from for migration in later]
    assert marks == sorted(marks)
