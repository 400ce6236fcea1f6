"""Callers that tests name, and those who sign calls of services: the gateway, and the scheduler."""

from datetime import UTC, datetime

from proctor.values.names.user import Caller, Role
from services.common.grpc.caller import caller_metadata
from services.common.grpc.signatures import Signer
from services.scheduler.audit.audit_record import Author
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY

OPERATOR = Caller("operator", role=Role.OPERATOR)
OPERATOR_METADATA = caller_metadata(OPERATOR)
CALLER_KEY = "of the gateway and others"
GATEWAY = Signer(CALLER_KEY.encode())
SCHEDULER = Signer(DISPATCH_PROOF_KEY.encode())
_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def by(at: datetime = _SOME_TIME) -> Author:
    """The author of a change at a time."""
    return Author(OPERATOR.name, at)
