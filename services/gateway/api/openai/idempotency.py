"""The Idempotency-Key of the OpenAI protocol, which is any text, as the UUID of a request."""

import uuid
from typing import Annotated

from fastapi import Depends, Header

_SPACE = uuid.UUID("0a4b7f3e-7d36-4f0e-9f5a-6a0d6f1f6c55")


def request_id(
    idempotency_key: Annotated[
        str, Header(max_length=255, description="A repeated call returns the object of the first one")
    ] = "",
) -> str:
    """A new UUID without a key, the key itself if it is a UUID, else a UUID derived from it."""
    if not idempotency_key:
        return str(uuid.uuid4())
    try:
        return str(uuid.UUID(idempotency_key))
    except ValueError:
        return str(uuid.uuid5(_SPACE, idempotency_key))


RequestId = Annotated[str, Depends(request_id)]
