"""What every request is checked for: user names, ids, page sizes, ranges of numbers."""

import base64
import math
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from services.scheduler.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Problem:
    """A field of an order and what is wrong with it, as a sentence."""

    field: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Range:
    """What a number may be; `above` leaves the lower end out."""

    field: str
    lowest: float
    highest: float = math.inf
    above: bool = False
    advice: str = ""

    def problem(self, value: float | None) -> Problem | None:
        if value is None or self._holds(value):
            return None
        allowed = self._allowed() if math.isfinite(value) else "must be a finite number"
        return Problem(self.field, f"{self.field} is {value}, but {allowed}.{self.advice}")

    def _holds(self, value: float) -> bool:
        is_high_enough = value > self.lowest if self.above else value >= self.lowest
        return math.isfinite(value) and is_high_enough and value <= self.highest

    def _allowed(self) -> str:
        least = f"must be {'above' if self.above else 'at least'} {self.lowest:g}"
        return least if math.isinf(self.highest) else f"{least} and at most {self.highest:.10g}"


def nul_problem(field: str, *texts: str) -> Problem | None:
    """No store and no engine takes a NUL."""
    if not any("\0" in text for text in texts):
        return None
    return Problem(field, f"{field} holds a NUL character. Leave it out.")


# Stands for all users who are not named.
EVERYBODY = "*"


DEFAULT_PAGE_SIZE = 20
MAX_PAGE_SIZE = 500
DEFAULT_USER = "local"


def checked_request_id(text: str) -> str:
    try:
        return str(UUID(text)) if text else ""
    except ValueError as error:
        sentence = f'request_id is "{text}", but must be a UUID. Leave it out where calls are not repeated.'
        raise InvalidParameter(field="request_id", sentence=sentence) from error


def checked_page_size(wanted: int, default: int = DEFAULT_PAGE_SIZE, most: int = MAX_PAGE_SIZE) -> int:
    if not 0 <= wanted <= most:
        sentence = f"page_size is {wanted}, but must be at least 1 and at most {most}."
        raise InvalidParameter(field="page_size", sentence=sentence)
    return wanted or default


def page_token(time: datetime, name: str, total: int) -> str:
    return base64.urlsafe_b64encode(f"{time.isoformat()} {name} {total}".encode()).decode()


def read_page_token(token: str) -> tuple[datetime, str, int]:
    written, name, total = base64.urlsafe_b64decode(token).decode().split(" ")
    time = datetime.fromisoformat(written)
    if time.tzinfo is None:
        raise ValueError("a time without its zone")
    return time, name, int(total)


MAX_USER_LETTERS = 128


def user_problem(user: str) -> Problem | None:
    is_name = 0 < len(user) <= MAX_USER_LETTERS and user.isprintable() and user == user.strip()
    if is_name and user != EVERYBODY:
        return None
    shape = f"1 to {MAX_USER_LETTERS} printable characters without blanks around them"
    return Problem("user", f"user is {user[:MAX_USER_LETTERS]!a}, but must be {shape}, and not {EVERYBODY}.")
