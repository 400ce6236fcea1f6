"""Shows how a file would be stored, by its first bytes, before anything of it is."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from proctor.values.row_fields import MAX_PREVIEWED_UPLOAD_BYTES
from proctor.values.uploads.column_mapping import mapping_problem
from services.common.checked_fields import invalid_field, refuse
from services.scheduler.uploads.checking.preview_file import PreviewCheck, PreviewedFile
from services.scheduler.uploads.concurrent_uploads import Uploads
from services.scheduler.uploads.ports import CheckJob, ObjectStore


@dataclass(frozen=True, slots=True)
class ShowBeginning:
    """The bytes are read in a process as those of an upload, of which each user has a few at a time."""

    program: str
    objects: ObjectStore
    uploads: Uploads

    async def show(self, user: str, check: PreviewCheck, first: bytes) -> PreviewedFile:
        """Raises `TooManyUploads` and `InvalidParameter`."""
        if len(first) > MAX_PREVIEWED_UPLOAD_BYTES:
            limit = f"may have {MAX_PREVIEWED_UPLOAD_BYTES:,}"
            raise invalid_field("beginning", f"has {len(first):,} bytes, but {limit}")
        refuse(mapping_problem(check.mapping))
        with self.uploads.checking_slot(user):
            job = CheckJob(self.program, check, PreviewedFile)
            # It may store nowhere.
            return await self.uploads.run_check(_once(first), job, self.objects, ())


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
