"""Changes as messages."""

from proctor.v1 import change_pb2
from services.scheduler.changes.user_change import Change


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
