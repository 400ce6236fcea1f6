"""Limits as messages."""

from dataclasses import replace

from proctor.v1 import queue_service_pb2 as messages
from proctor.values.priority import Priority
from proctor.wire.convert import Codec, member_of, number_of
from services.scheduler.errors import InvalidParameter
from services.scheduler.runs.limits.queue_limits import LimitChanges, LimitName, QueueLimits

_LONGEST_SECONDS = 10**9
_NAMES = {"max_running": "max_running_runs", "max_pending_per_user": "max_pending_runs_per_user"}
_LIMITS = Codec(QueueLimits, messages.QueueLimits, names=_NAMES, unpaired={"priorities"})
_CHANGES = Codec(LimitChanges, messages.QueueLimits, names=_NAMES, unpaired={"priorities", "reset"})


def limits_to_proto(limits: QueueLimits) -> messages.QueueLimits:
    message = _LIMITS.to_proto(limits)
    for user, highest in sorted(limits.priorities.items()):
        message.priorities.add(user=user, highest=number_of(highest))
    return message


def changes_from_proto(request: messages.SetLimitsRequest) -> LimitChanges:
    limits = messages.QueueLimits()
    limits.CopyFrom(request.limits)
    # A time that Python cannot hold is refused like any other that is too long.
    for name in {"run_time_limit", "min_run_time"} & {field.name for field, _ in limits.ListFields()}:
        duration = getattr(limits, name)
        duration.seconds = min(max(duration.seconds, -_LONGEST_SECONDS), _LONGEST_SECONDS)
    return replace(
        _CHANGES.from_proto(limits),
        priorities={each.user: _priority(each) for each in limits.priorities},
        reset=frozenset(map(_limit_name, request.reset)),
    )


def _limit_name(text: str) -> LimitName:
    try:
        return LimitName(text)
    except ValueError as error:
        sentence = f'reset names "{text}", but there is no such limit: there are {", ".join(LimitName)}.'
        raise InvalidParameter(field="reset", sentence=sentence) from error


def _priority(each: messages.UserPriority) -> Priority:
    highest = member_of(Priority, each.highest)
    if highest is None:
        sentence = f'The highest priority of user "{each.user}" is missing: say high, normal or low.'
        raise InvalidParameter(field="limits.priorities", sentence=sentence)
    return highest
