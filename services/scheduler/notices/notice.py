"""Targets of notices, what happened, and what is told of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from proctor.values.names.notices import NoticeChannel, NoticeEvent, NoticeScope

# Half a day: who is away longer is not told any more.
MAX_ATTEMPTS = 20
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeTarget:
    """`address` is a URL or a mail address. `project_id` is that of the scope `PROJECT`."""

    target_id: str
    user: str
    channel: NoticeChannel
    address: str = field(repr=False)
    events: tuple[NoticeEvent, ...]
    created_at: datetime
    scope: NoticeScope = NoticeScope.OWN
    project_id: int = 0

    @property
    def shown_address(self) -> str:
        """Of a URL the part that is no secret: whoever knows a URL of Slack may write there."""
        if self.channel is NoticeChannel.EMAIL:
            return self.address
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "") + "/…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`key` is the same whenever the same thing is noted again. `text` is a sentence, `facts` its parts."""

    kinds: tuple[NoticeEvent, ...]
    key: str
    user: str
    project_id: int
    text: str
    at: datetime
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """`notice_id` is the same in each attempt, so that a receiver knows what it has had."""

    notice_id: str
    target_id: str
    event: NoticeEvent
    text: str
    created_at: datetime
    facts: Mapping[str, str] = field(default_factory=dict)
    attempts: int = 0
    delivered_at: datetime | None = None
    next_try_at: datetime | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NoticePage:
    """Latest first. `last` is the number of the last one; None on the last page."""

    notices: Sequence[Notice]
    last: int | None


def next_try(attempts: int, now: datetime) -> datetime | None:
    """When to try again after so many attempts: twice as late each time; None once it is given up."""
    if attempts >= MAX_ATTEMPTS:
        return None
    pause: timedelta = min(_FIRST_PAUSE * 2 ** (attempts - 1), _LONGEST_PAUSE)
    return now + pause
