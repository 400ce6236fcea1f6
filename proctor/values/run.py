"""A run's id, its states, what it is over, its time limit, and how much of it is recorded.

Counts are absolute: a report that arrives twice changes nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NewType

from proctor.values.contract_enum import ContractEnum
from proctor.values.usage import TokenUsage

# The share of failed samples above which a run or a task counts as failed, unless a setting says otherwise.
DEFAULT_MAX_FAILED_SHARE = 0.05
# Requests of a user in a minute, and reads beside them, unless a setting of the scheduler says otherwise.
DEFAULT_REQUESTS_PER_MINUTE = 100
DEFAULT_READS_PER_MINUTE = 3000
# Models that a leaderboard lists.
MAX_LEADERBOARD_MODELS = 100
# Limits of a completion window: an hour and a week.
MIN_WINDOW_SECONDS, MAX_WINDOW_SECONDS = 3600, 7 * 24 * 3600
# Days back that a history lists.
MAX_HISTORY_DAYS = 3650
# The longest time limit of a run.
MAX_TIME_LIMIT_SECONDS = 365 * 24 * 3600
# The least and the most that an operator may set, against slips of the hand. Their sums are below 2**63.
# More bytes and rows than any object store holds, and far below what Postgres counts to.
LIMIT_BOUNDS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "max_running_runs": (1, 10_000),
        "max_pending_runs_per_user": (1, 100_000),
        "max_requests_per_minute": (1, 1_000_000),
        "max_stored_bytes_per_user": (1, 2**50),
        "max_stored_files_per_user": (1, 10_000_000),
        "max_stored_rows_per_user": (1, 2**50),
        # 0 means no limit.
        "max_stored_bytes_per_project": (0, 2**50),
    }
)
# A larger share of unparsed answers is worth a warning.
_MAX_UNPARSED_SHARE = 0.05
RunId = NewType("RunId", str)
_FORM = re.compile(r"([1-9][0-9]{0,5})([hm])")
# The form of a completion window of 1 to 168 hours, in hours or minutes, as JSON Schema describes it.
WINDOW_PATTERN = (
    "^(([1-9]|[1-9][0-9]|1[0-5][0-9]|16[0-8])h|([6-9][0-9]|[1-9][0-9]{2,3}|100[0-7][0-9]|10080)m)$"
)
_SECONDS = {"h": 3600, "m": 60}


class RunState(ContractEnum):
    """The state of a run. The scheduler's state machine defines which state may follow which."""

    PENDING = "pending", 1
    RUNNING = "running", 2
    PAUSED = "paused", 3
    COMPLETED = "completed", 4
    FAILED = "failed", 5
    CANCELLED = "cancelled", 6

    @property
    def is_final(self) -> bool:
        return self in FINAL_STATES


# A range of times that is wider tells a person nothing. One measured speed gives just this range.
_WIDEST_SHOWN = 4.0


def is_telling_range(low_seconds: float, high_seconds: float) -> bool:
    """Whether a range of a time to come is narrow enough to be shown."""
    # Sums of ranges may differ from it in their last digit.
    return low_seconds > 0 and high_seconds <= _WIDEST_SHOWN * low_seconds * (1 + 1e-9)


# As descriptions of interfaces list them.
STATE_WORDS = ", ".join(RunState)
FINAL_STATES = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED})
# As messages have them.
FINAL_NUMBERS = frozenset(state.number for state in FINAL_STATES)
# Pending and running: in these a run changes by itself.
CHANGING_STATES = frozenset({RunState.PENDING, RunState.RUNNING})


class ArchiveState(ContractEnum):
    """Where the answers of a closed run are that are not in Postgres, or not to stay there."""

    ARCHIVING = "archiving", 1
    ARCHIVED = "archived", 2
    RESTORING = "restoring", 3


class RunKind(ContractEnum):
    """The kind of rows that a run is over."""

    SUITE = "suite", 1
    DATASET = "dataset", 2


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """`recorded` outcomes of a task are its answers and the `failed` ones; `unparsed` ones are answers."""

    task: str
    recorded: int = 0
    failed: int = 0
    unparsed: int = 0


@dataclass(frozen=True, slots=True)
class RunCounts:
    """All tasks of a run in one epoch. `failures` counts by class, `usage` leaves reused answers out."""

    epoch: int
    tasks: tuple[TaskCounts, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    usage: TokenUsage = field(default_factory=TokenUsage)
    # Nearly what the outcomes take in the database, once the run is closed.
    answer_bytes: int = 0

    @property
    def recorded(self) -> int:
        return sum(task.recorded for task in self.tasks)

    @property
    def failed(self) -> int:
        return sum(task.failed for task in self.tasks)

    def is_older_than(self, other: "RunCounts") -> bool:
        return (self.epoch, self.recorded) < (other.epoch, other.recorded)


def window_seconds(text: str) -> int:
    """Raises ValueError for a text in another form. The scheduler limits its length."""
    found = _FORM.fullmatch(text)
    if not found:
        raise ValueError('a window is written in hours or minutes, such as "24h" or "90m"')
    return int(found[1]) * _SECONDS[found[2]]


def unparsed_warning(share: float | None, of: str = "", *, is_judging: bool = False) -> str:
    """A sentence where figures may show the form of answers more than the model; "" where few are unparsed.

    `share` of all answers; None without any. `is_judging`: they are verdicts.
    """
    if share is None or share <= _MAX_UNPARSED_SHARE:
        return ""
    what = "answers could not be parsed and count as not right"
    if is_judging:
        what = "verdicts could not be parsed and have no score"
    return f"{of and f'{of}: '}{share:.1%} of the {what}; look at them before the figures."
