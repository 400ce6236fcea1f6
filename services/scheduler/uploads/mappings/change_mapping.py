"""Saves mappings of columns by name, and deletes them."""

from dataclasses import dataclass

from proctor.values.names.user import Caller
from proctor.values.uploads.column_mapping import ColumnMapping, mapping_problem
from services.common.checked_fields import checked_text, invalid_field, refuse
from services.common.clock import Clock
from services.common.requests.request_fields import check_owner, check_stores
from services.scheduler.audit.audit_record import Author
from services.scheduler.uploads.mappings.postgres import PostgresMappings
from services.scheduler.uploads.mappings.saved_mapping import MAX_NAME_CHARACTERS, SavedMapping


@dataclass(frozen=True, slots=True)
class SaveMapping:
    mappings: PostgresMappings
    clock: Clock

    async def save(self, name: str, mapping: ColumnMapping, caller: Caller, project_id: int) -> SavedMapping:
        """In place of the one of that name. Raises `InvalidParameter` and `BelongsToAnother`."""
        check_stores(caller, project_id)
        if not 0 < len(checked_text("name", name).strip()) <= MAX_NAME_CHARACTERS:
            raise invalid_field("name", f"must have 1 to {MAX_NAME_CHARACTERS} characters")
        refuse(mapping_problem(mapping))
        now, name = self.clock.now(), name.strip()
        present = await self.mappings.find(name, project_id)
        if present is not None:
            check_owner(caller, present.user, f"Mapping {name}", project_id)
        owner = present.user if present else caller.name
        saved = SavedMapping(name, mapping, owner, project_id, now)
        if not await self.mappings.save(saved, Author(caller.name, now)):
            # Another user has taken the name meanwhile.
            taken = await self.mappings.get(name, project_id)
            check_owner(caller, taken.user, f"Mapping {name}", project_id)
        return await self.mappings.get(name, project_id)


@dataclass(frozen=True, slots=True)
class DeleteMapping:
    mappings: PostgresMappings
    clock: Clock

    async def delete(self, name: str, caller: Caller, project_id: int) -> None:
        """Raises `MappingNotFound` and `BelongsToAnother`."""
        saved = await self.mappings.get(name, project_id)
        check_owner(caller, saved.user, f"Mapping {name}", project_id)
        await self.mappings.delete(name, project_id, Author(caller.name, self.clock.now()))
