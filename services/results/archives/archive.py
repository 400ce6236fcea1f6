"""The archive of a run: a folder of the object store with its outcomes in parts, and how far it is."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import orjson

from proctor.values.outcome import FailureClass, OutcomeStatus
from services.results.outcomes.outcome import BEFORE_ALL, OutcomeKey

# Raise it when columns change their meaning: readers know each version.
SCHEMA_VERSION = 1
# Held in memory a few times over: as rows, as columns and as a file.
PART_OUTCOMES = 5000
PART_BYTES = 8 * 1024 * 1024
# Bounds what a statement over archived outcomes is sent of each of two runs. One that needs more is refused
# until the run is restored.
MAX_ROWS = 200_000
# A sample number after all others.
NO_SAMPLE = 2**62


class ArchivePhase(StrEnum):
    """Readers read Postgres in the first and the last one, and the object store in the others.

    So at each moment one of the two is whole and still.
    """

    # Parts are written and read back.
    WRITING = "writing"
    # The manifest is written. Rows are deleted once no reader is left that began before.
    CLEARING = "clearing"
    ARCHIVED = "archived"
    RESTORING = "restoring"
    # The rows are back. The folder is deleted once no reader is left that began before.
    REMOVING = "removing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePart:
    """A file with the outcomes of a range of keys. Digests are SHA-256, `rows_digest` of the rows as text."""

    number: int
    first: OutcomeKey
    last: OutcomeKey
    outcomes: int
    size_bytes: int
    file_digest: bytes
    rows_digest: bytes
    is_restored: bool = False


# Values of a row of the table, in the order of its columns.
OutcomeRow = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What decides whether an outcome is read."""

    status: OutcomeStatus
    epoch: int
    rollout: int
    failure_class: FailureClass | None

    @property
    def is_answered(self) -> bool:
        return self.status is not OutcomeStatus.FAILED or self.failure_class is FailureClass.SCORING


def counts_in(epoch: int) -> Callable[[Row], bool]:
    """Selects what the view current_outcomes does."""
    return lambda row: row.status is not OutcomeStatus.FAILED or row.epoch == epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Outcomes behind a key and before a sample that are wanted; of `keys` only those.

    The first `limit` of them are read, or as many until their texts have `max_bytes`. Of the long columns
    only `texts` are read, and the others are empty; None reads all.
    """

    after: OutcomeKey = BEFORE_ALL
    before_sample: int = NO_SAMPLE
    keys: Collection[OutcomeKey] | None = None
    wanted: Callable[[Row], bool] | None = None
    limit: int | None = None
    max_bytes: int | None = None
    texts: Collection[str] | None = None

    def may_have(self, first: OutcomeKey, last: OutcomeKey) -> bool:
        """Whether some of it may lie between two keys."""
        if last <= self.after or first[0] >= self.before_sample:
            return False
        return self.keys is None or any(first <= key <= last for key in self.keys)

    def has(self, key: OutcomeKey) -> bool:
        if self.keys is not None:
            return key in self.keys
        return key > self.after and key[0] < self.before_sample


def folder_of(run_id: str) -> str:
    return f"archives/{run_id}"


def part_key(run_id: str, number: int, file_digest: bytes) -> str:
    """The key of a part in the object store. No two files have the same, so that none is ever replaced."""
    return f"{folder_of(run_id)}/outcomes-{number:06}-{file_digest.hex()[:12]}.parquet"


def manifest_key(run_id: str) -> str:
    return f"{folder_of(run_id)}/manifest.json"


def manifest(run_id: str, epoch: int, parts: Sequence[ArchivePart]) -> bytes:
    """What the folder has, for those who read it without Proctor."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "epoch": epoch,
        "outcomes": sum(part.outcomes for part in parts),
        "size_bytes": sum(part.size_bytes for part in parts),
        "parts": [
            {
                "file": part_key(run_id, part.number, part.file_digest).rpartition("/")[2],
                "first": part.first,
                "last": part.last,
                "outcomes": part.outcomes,
                "size_bytes": part.size_bytes,
                "sha256": part.file_digest.hex(),
                "rows_sha256": part.rows_digest.hex(),
            }
            for part in parts
        ],
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2)
