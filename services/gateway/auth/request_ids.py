"""The id of a request that creates something, which a repeated request has as well."""

import uuid
from typing import Annotated

from fastapi import Depends, Header

from services.gateway.auth.identity import User

# The namespace of request ids that are derived from keys of clients.
_SPACE = uuid.UUID("0a4b7f3e-7d36-4f0e-9f5a-6a0d6f1f6c55")


def request_id(
    user: User,
    idempotency_key: Annotated[
        str,
        Header(
            alias="Idempotency-Key",
            max_length=255,
            description="Any text; a repeated call returns what the first one created",
        ),
    ] = "",
) -> str:
    """A new UUID without a key, the key itself if it is a UUID, else a UUID derived from it and the user."""
    if not idempotency_key:
        return str(uuid.uuid4())
    try:
        return str(uuid.UUID(idempotency_key))
    except ValueError:
        return str(uuid.uuid5(_SPACE, f"{user} {idempotency_key}"))


RequestId = Annotated[str, Depends(request_id)]
