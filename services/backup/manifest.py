"""What a backup holds: the manifest `backup.json`, which is written last, and the parts it names.

Rows are in Postgres's text format of COPY, one zstd stream for each table, cut into parts. The list of
objects is cut into parts of its own, each a zstd stream of JSON lines.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

MANIFEST = "backup.json"
# Of this layout; a release that changes it takes the next number.
LAYOUT = 1
_NAME = "%Y-%m-%dT%H-%M-%SZ"


class Part(msgspec.Struct, frozen=True):
    """An object of the backup, or of the installation, by its SHA-256."""

    key: str
    size: int
    sha256: str


class Table(msgspec.Struct, frozen=True):
    name: str
    columns: Sequence[str]
    rows: int
    parts: Sequence[Part]


class Schema(msgspec.Struct, frozen=True):
    """`migrations`: name to the first migration whose code can use the schema after it.

    A table comes after those that it refers to.
    """

    name: str
    migrations: Mapping[str, str]
    tables: Sequence[Table]


class Manifest(msgspec.Struct, frozen=True):
    """`object_lists` are the parts with the list of objects; `object_bytes` is the size of all objects."""

    layout: int
    release: str
    taken_at: datetime
    schemas: Sequence[Schema]
    object_lists: Sequence[Part]
    objects: int
    object_bytes: int

    @property
    def rows(self) -> int:
        return sum(table.rows for schema in self.schemas for table in schema.tables)

    def parts(self) -> Iterator[Part]:
        """Everything but the objects and the manifest."""
        for schema in self.schemas:
            for table in schema.tables:
                yield from table.parts
        yield from self.object_lists


def name_of(taken_at: datetime) -> str:
    """The folder of a backup: names sort by time."""
    return taken_at.strftime(_NAME)


def is_name(folder: str) -> bool:
    try:
        datetime.strptime(folder, _NAME)  # noqa: DTZ007  # only its form is asked for
    except ValueError:
        return False
    return True


def part_of(key: str, content: bytes) -> Part:
    return Part(key, len(content), hashlib.sha256(content).hexdigest())


def object_key(key: str) -> str:
    """Where the backup keeps an object of the installation."""
    return f"objects/{key}"
