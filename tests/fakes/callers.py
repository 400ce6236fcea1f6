"""Callers that tests name: an operator, and the metadata of the gateway's calls for one."""

from datetime import UTC, datetime

from proctor.values.names.user import Caller
from services.common.grpc.caller import caller_metadata
from services.scheduler.changes.user_change import Author

OPERATOR = Caller("operator", is_operator=True)
OPERATOR_METADATA = caller_metadata(OPERATOR)
_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def by(at: datetime = _SOME_TIME) -> Author:
    """The author of a change at a time."""
    return Author(OPERATOR.name, at)
