"""Limits as messages."""

from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from proctor.v1 import queue_service_pb2 as messages
from proctor.values.priority import Priority
from proctor.wire.convert import member_of, number_of
from services.scheduler.errors import InvalidParameter
from services.scheduler.runs.limits.queue_limits import LimitChanges, LimitName, QueueLimits

_LONGEST_SECONDS = 10**9


def limits_to_proto(limits: QueueLimits) -> messages.QueueLimits:
    message = messages.QueueLimits(
        max_running_runs=limits.max_running,
        max_pending_runs_per_user=limits.max_pending_per_user,
        max_requests_per_minute=limits.max_requests_per_minute,
        priorities=[
            messages.UserPriority(user=user, highest=number_of(highest))
            for user, highest in sorted(limits.priorities.items())
        ],
    )
    message.run_time_limit.FromTimedelta(limits.run_time_limit)
    message.min_run_time.FromTimedelta(limits.min_run_time)
    return message


def changes_from_proto(request: messages.SetLimitsRequest) -> LimitChanges:
    limits = request.limits
    return LimitChanges(
        max_running=limits.max_running_runs if limits.HasField("max_running_runs") else None,
        max_pending_per_user=(
            limits.max_pending_runs_per_user if limits.HasField("max_pending_runs_per_user") else None
        ),
        max_requests_per_minute=(
            limits.max_requests_per_minute if limits.HasField("max_requests_per_minute") else None
        ),
        run_time_limit=_time(limits.run_time_limit) if limits.HasField("run_time_limit") else None,
        min_run_time=_time(limits.min_run_time) if limits.HasField("min_run_time") else None,
        priorities={each.user: _priority(each) for each in limits.priorities},
        reset=frozenset(map(_limit_name, request.reset)),
    )


def _limit_name(text: str) -> LimitName:
    try:
        return LimitName(text)
    except ValueError as error:
        sentence = f'reset names "{text}", but there is no such limit: there are {", ".join(LimitName)}.'
        raise InvalidParameter(field="reset", sentence=sentence) from error


def _time(duration: Duration) -> timedelta:
    """One that Python cannot hold is refused like any other that is too long."""
    seconds = min(max(duration.seconds, -_LONGEST_SECONDS), _LONGEST_SECONDS)
    return timedelta(seconds=seconds, microseconds=duration.nanos / 1000)


def _priority(each: messages.UserPriority) -> Priority:
    highest = member_of(Priority, each.highest)
    if highest is None:
        sentence = f'The highest priority of user "{each.user}" is missing: say high, normal or low.'
        raise InvalidParameter(field="limits.priorities", sentence=sentence)
    return highest
