"""The id of a job in a path."""

import uuid
from typing import Annotated

from fastapi import Depends, Path

from services.gateway.errors import RunNotFound


def _known_form(job_id: Annotated[str, Path(description="UUID")]) -> str:
    """A name that no job can have names no job."""
    try:
        return str(uuid.UUID(job_id))
    except ValueError as error:
        raise RunNotFound(run_id=job_id) from error


JobId = Annotated[str, Depends(_known_form)]
