"""What files need to be known of: a store of their facts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from services.scheduler.files.stored_file import FileId, FileList, FilePage, StoredFile


class FileStore(Protocol):
    """Files, and the contents that those without faults share with data sets.

    What a prefix holds is loose until a file or a content has it, as with data sets.
    """

    async def begin(self, prefixes: Sequence[str]) -> None:
        """Before the first object is stored there."""
        ...

    async def add(self, file: StoredFile, request_id: str) -> StoredFile:
        """As stored: that of the user's first call with this id, with the content of the same file."""
        ...

    async def ordered(self, request_id: str, user: str) -> StoredFile | None:
        """What an earlier call of this user with this id has stored."""
        ...

    async def get(self, file_id: FileId) -> StoredFile:
        """Raises `FileNotFound`."""
        ...

    async def page(self, wanted: FileList) -> FilePage:
        """Raises `FileNotFound` where there is no file to begin behind."""
        ...

    async def delete(self, file_id: FileId) -> Sequence[str]:
        """Prefixes that are loose now. Raises `FileNotFound`, `FileInUse` or `FileInUseByRun`."""
        ...

    async def expired(self, now: datetime, most: int) -> Sequence[FileId]:
        """The first of those whose time is over and that nothing uses."""
        ...
