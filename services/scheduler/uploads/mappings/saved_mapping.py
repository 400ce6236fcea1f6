"""A mapping of columns that was saved under a name."""

from dataclasses import dataclass
from datetime import datetime

from proctor.values.uploads.column_mapping import ColumnMapping
from services.common.errors import DomainError, ErrorKind

MAX_NAME_CHARACTERS = 100
MAX_LISTED = 500


class MappingNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="MAPPING_NOT_FOUND"):
    """There is no saved mapping {name}. List them to see those there are."""


@dataclass(frozen=True, slots=True)
class SavedMapping:
    """Names are unique in a project; 0 is none."""

    name: str
    mapping: ColumnMapping
    user: str
    project_id: int
    saved_at: datetime
