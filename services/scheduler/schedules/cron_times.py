"""The times of a cron expression in a time zone."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from proctor.values.generation import Problem

MAX_CHARACTERS = 100
# cronsim reads six of them with seconds.
_FIELDS = 5
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class CronTimes:
    """As Debian's cron has them: where the clocks go forward, what falls into the gap comes at its end; where
    they go back, what has a fixed hour comes once.
    """

    cron: str
    time_zone: str

    def next_after(self, moment: datetime) -> datetime:
        """Raises `StopIteration` where there is none in 50 years."""
        return next(CronSim(self.cron, self._local(moment))).astimezone(UTC)

    def last_until(self, moment: datetime) -> datetime:
        """The latest one that is not after the moment."""
        return next(CronSim(self.cron, self._local(moment) + _SECOND, reverse=True)).astimezone(UTC)

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
