"""Changes and records of the audit as messages."""

from proctor.v1 import audit_pb2, change_pb2
from proctor.wire.convert import Codec
from services.scheduler.audit.audit_record import AuditRecord, Change

RECORD = Codec(AuditRecord, audit_pb2.AuditRecord)


def change_to_proto(change: Change) -> change_pb2.Change:
    message = change_pb2.Change(
        user=change.author.user,
        action=change.action,
        kind=change.kind,
        object_id=change.object_id,
        detail=change.detail,
    )
    message.changed_at.FromDatetime(change.author.at)
    return message
