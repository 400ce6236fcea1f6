"""Each migration says which code may use the schema after it (`-- compatible-from: …` on its first line)."""

import re

import pytest

from services.common.migrations import Migration, read_migrations
from services.results import postgres as results
from services.scheduler import postgres as scheduler

# The schema of the first release: no code before it is in use.
BASELINE = "0001_initial.sql"
FOLDERS = {results.SCHEMA: results.MIGRATIONS, scheduler.SCHEMA: scheduler.MIGRATIONS}
MARK = "-- compatible-from: "


@pytest.mark.parametrize("schema", FOLDERS)
def test_a_migration_has_a_number_that_no_other_has(schema: str) -> None:
    """Migrations are applied in the order of their names, which is then the order in which they were made."""
    names = sorted(path.name for path in FOLDERS[schema].glob("*.sql"))
    assert [name for name in names if not re.fullmatch(r"[0-9]{4}_[a-z_]+\.sql", name)] == []
    assert names[0] == BASELINE
    assert [name[:4] for name in names] == [f"{number:04}" for number in range(1, len(names) + 1)]
    assert [migration.name for migration in read_migrations(FOLDERS[schema])] == names


@pytest.mark.parametrize("schema", FOLDERS)
def test_every_later_migration_names_the_oldest_code_that_can_use_the_schema(schema: str) -> None:
    known = [migration.name for migration in read_migrations(FOLDERS[schema])]
    for migration in read_migrations(FOLDERS[schema]):
        if migration.name <= BASELINE:
            continue
        assert migration.sql.startswith(MARK), f"{schema}/{migration.name}: its first line is not a `{MARK}…`"
        assert migration.compatible_from in known, f"{schema}/{migration.name}: no such migration"
        assert migration.compatible_from <= migration.name


@pytest.mark.parametrize("schema", FOLDERS)
def test_what_a_later_migration_asks_for_is_never_taken_back(schema: str) -> None:
    """Code that an earlier migration has shut out stays shut out."""
    later: list[Migration] = [each for each in read_migrations(FOLDERS[schema]) if each.name > BASELINE]
    marks = [migration.compatible_from for migration in later]
    assert marks == sorted(marks)
