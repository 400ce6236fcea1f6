"""The times of a cron expression in a time zone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from proctor.values.generation import Problem

MAX_CHARACTERS = 100
# cronsim reads six of them with seconds.
_FIELDS = 5
# By more than this no clock is put forward or back.
_LONGEST_CHANGE = timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class CronTimes:
    """As Debian's cron has them: where the clocks go forward, what falls into the gap comes at its end; where
    they go back, what has a fixed hour comes once.
    """

    cron: str
    time_zone: str

    def next_after(self, moment: datetime) -> datetime:
        """Raises `StopIteration` where there is none in 50 years."""
        return next(self._times_after(moment))

    def latest_from(self, first: datetime, moment: datetime) -> datetime:
        """The latest one that is not after the moment; `first`, which is one, at least."""
        # Where clocks change cronsim has other times backwards than forwards, so it only says where to begin.
        backwards = CronSim(self.cron, self._local(moment), reverse=True)
        about = next(backwards, first).astimezone(UTC)
        latest = first
        for time in self._times_after(max(first, about - _LONGEST_CHANGE)):
            if time > moment:
                break
            latest = time
        return latest

    def _times_after(self, moment: datetime) -> Iterator[datetime]:
        start = self._local(moment)
        if start.fold:
            # cronsim takes an hour that comes again for the first one: it has to begin before both.
            start = self._local(moment - _LONGEST_CHANGE)
        times = (time.astimezone(UTC) for time in CronSim(self.cron, start))
        return (time for time in times if time > moment)

    def _local(self, moment: datetime) -> datetime:
        return moment.replace(microsecond=0).astimezone(ZoneInfo(self.time_zone))


def times_problem(times: CronTimes, moment: datetime) -> Problem | None:
    """Why they are refused: the expression, the zone, or because no time comes after the moment."""
    if times.time_zone not in available_timezones():
        names = "a name of the IANA database, such as Europe/Vienna or UTC"
        return Problem("time_zone", f"time_zone is {times.time_zone[:64]!a}, but must be {names}.")
    shown, form = f"cron is {times.cron[:MAX_CHARACTERS]!a}, but must", "minute hour day month weekday"
    if len(times.cron) > MAX_CHARACTERS or len(times.cron.split()) != _FIELDS:
        return Problem("cron", f'{shown} have five fields: {form}, such as "0 3 * * MON".')
    try:
        times.next_after(moment)
    except CronSimError as error:
        return Problem("cron", f"{shown} be {form}: {str(error)[0].lower()}{str(error)[1:]}.")
    except StopIteration:
        return Problem("cron", f"{shown} name a time that comes.")
    return None
