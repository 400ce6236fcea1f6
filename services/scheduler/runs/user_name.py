"""What a user may be called: whatever door a name comes through, it is shown to others as it is."""

from services.scheduler.runs.queue_limits import EVERYBODY
from services.scheduler.runs.run_order import Problem

MAX_USER_LETTERS = 128


def user_problem(user: str) -> Problem | None:
    is_name = 0 < len(user) <= MAX_USER_LETTERS and user.isprintable() and user == user.strip()
    if is_name and user != EVERYBODY:
        return None
    shape = f"1 to {MAX_USER_LETTERS} printable characters without blanks around them"
    return Problem("user", f"user is {user[:MAX_USER_LETTERS]!a}, but must be {shape}, and not {EVERYBODY}.")
