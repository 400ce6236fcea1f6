"""Errors of keys."""

from services.common.errors import DomainError, ErrorKind


class KeyNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="KEY_NOT_FOUND"):
    """There is no key {key_id}. Keys in the gateway's settings have no id and are removed there."""


class KeyEnded(DomainError, kind=ErrorKind.CONFLICT, reason="KEY_ENDED"):
    """Key {key_id} was revoked or is over, so it cannot be replaced; make a new one."""


class TooManyKeys(DomainError, kind=ErrorKind.CONFLICT, reason="TOO_MANY_KEYS"):
    """{limit} keys are taken already; revoke those that nobody uses."""


class KeyRequestTaken(DomainError, kind=ErrorKind.CONFLICT, reason="REQUEST_ID_TAKEN"):
    """This request_id (Idempotency-Key) has made another key, {key_id}. Give each an id of its own."""
