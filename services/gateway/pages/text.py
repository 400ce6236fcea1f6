"""Figures, times and hostile text as pages show them."""

import math
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from json import dumps

from markupsafe import Markup, escape

from proctor.values.metrics.names import unit_of
from proctor.values.plain import MAX_COUNTED, is_counted
from proctor.values.run import is_telling_range

# Bodies of the OpenAI protocol have seconds since 1970.
Time = datetime | int
_THIN_SPACE = "\u2009"
_MINUS = "\u2212"
_DASH = "\u2013"
# Characters of a text that a page shows.
_SHOWN = 20_000
_GLIMPSE = 120
_KEPT = "\n\t"
# Smaller figures would be rows of zeros.
_MIN_SHOWN = 1e-6
# Eighteen digits fit into a signed integer of 64 bits.
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
# After these a name may go on in the next line.
# Of a file the ending stays whole.
_PIECES = re.compile(r"(?<=[/_,])(?=.)|(?<=.)(?=(?:\.[a-z]{2,8})+$)")
_DECIMAL = re.compile(r"[+-]?[0-9]{0,18}\.?[0-9]{1,18}")


def count(number: float | None) -> str:
    """A count with thin spaces between thousands; a dash for none."""
    return _DASH if number is None else signless(f"{number:,.0f}".replace(",", _THIN_SPACE))


def total(number: int) -> str:
    """A count of a list, which may be `more than 1 000`."""
    return count(number) if is_counted(number) else f"more than {count(MAX_COUNTED)}"


def days(number: int) -> str:
    """A length of time that follows "the last": `day`, `7 days`."""
    return "day" if number == 1 else f"{count(number)} days"


def percent(share: float | None, digits: int = 1) -> str:
    """The share that is done as a percentage, without its sign: only a whole one is 100."""
    if share is None or not math.isfinite(share):
        return _DASH
    shown = _rounded_percent(share, digits)
    return f"{100 - 10**-digits:.{digits}f}" if share < 1 and float(shown) == 100 else signless(shown)


def score(figure: float | None, metric: str = "", *beside: float | None) -> str:
    """A figure of a metric: shares as percentages, others as they are.

    `beside` are figures of the same unit (the ends of its interval, the means that it is the difference of).
    Where the metric is unknown, the sizes of the related figures decide whether this is a share.
    """
    if figure is None or not math.isfinite(figure):
        return _DASH
    return signless(_rounded_percent(figure)) if is_share(metric, figure, *beside) else number(figure)


def is_share(metric: str, *figures: float | None) -> bool:
    """Whether these figures of one unit are shares of one: by the metric, else by how large they are."""
    unit = unit_of(metric)
    return unit.is_of_one if unit else all(each is None or abs(each) <= 1 for each in figures)


def tick(figure: float, ticks: Sequence[float], metric: str = "") -> str:
    """The label of a tick of a scale as `score` shows figures, with the digits that its step needs."""
    factor = 100 if is_share(metric, ticks[0], ticks[-1]) else 1
    step = factor * (ticks[1] - ticks[0])
    digits = next((each for each in range(10) if math.isclose(round(step, each), step, rel_tol=1e-4)), 10)
    return signless(f"{factor * figure:z,.{digits}f}".replace(",", _THIN_SPACE))


def duration_tick(seconds: float) -> str:
    """The label of a tick of time: not rounded to the units of `duration` where it is short."""
    if 0 < seconds < 1:
        return f"{number(1000 * seconds)} ms"
    return f"{number(seconds)} s" if seconds < 60 else duration(seconds)


def signed(figure: float | None, metric: str = "", *beside: float | None) -> str:
    """A difference of two figures as `score` shows it, with its sign."""
    shown = score(figure, metric, *beside)
    return f"+{shown}" if figure is not None and figure > 0 else shown


def number(value: float | None) -> str:
    """Three significant digits, whole thousands."""
    if value is None or not math.isfinite(value):
        return _DASH
    if 0 < abs(value) < _MIN_SHOWN:
        return f"below {_MIN_SHOWN:.6f}" if value > 0 else f"above {_MINUS}{_MIN_SHOWN:.6f}"
    # Python would write a number that rounds to a thousand, and a small one, as a power of ten.
    return count(value) if abs(value) >= 999.5 else signless(f"{Decimal(f'{value:.3g}'):f}")


def money(amount: float | None, currency: str = "") -> str:
    """An amount with its currency; cents where there are any."""
    if amount is None:
        return _DASH
    digits = 2 if amount >= 1 or not amount else min(6, 1 - math.floor(math.log10(abs(amount))))
    return f"{count(int(amount)) if amount >= 1000 else f'{amount:.{digits}f}'} {currency}".strip()


def size(count_of_bytes: float | None) -> str:
    """Bytes in powers of a thousand."""
    if count_of_bytes is None:
        return _DASH
    value, unit = float(count_of_bytes), "bytes"
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"


def duration(seconds: float | None) -> str:
    """Time in the two largest units."""
    if seconds is None or not math.isfinite(seconds):
        return _DASH
    if 0 < seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def time_range(low: float | None, high: float | None) -> str:
    """Two times with a dash; empty for a range that is unknown, or too wide to say anything."""
    if low is None or high is None or not is_telling_range(low, high):
        return ""
    return f"{duration(low)} {_DASH} {duration(high)}"


def stamp(time: Time) -> str:
    """A time for machines."""
    return _utc(time).isoformat(timespec="seconds")


def clock(time: Time) -> str:
    """A time for people, in UTC; a script shows the browser's own time in its place."""
    return _utc(time).strftime("%Y-%m-%d %H:%M UTC")


def ago(time: Time, now: datetime) -> str:
    """How long a time is past."""
    seconds = max((now - _utc(time)).total_seconds(), 0)
    if seconds < 60:
        return "just now"
    for length, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


def glimpse(text: str) -> str:
    """The beginning, in one line."""
    line = " ".join(text[: 4 * _GLIMPSE].split())
    return line if len(line) <= _GLIMPSE and len(text) <= 4 * _GLIMPSE else f"{line[:_GLIMPSE]}…"


def json(value: object) -> str:
    return dumps(value, ensure_ascii=False)


def json_lines(value: object) -> str:
    """An item in each line."""
    return dumps(value, ensure_ascii=False, indent=1)


def plain(text: str, max_characters: int = _SHOWN) -> str:
    """Foreign text without characters that change how others are shown: they appear as their numbers."""
    cut = text[:max_characters]
    shown = "".join(map(_visible, cut)) if not cut.isascii() or not cut.isprintable() else cut
    left = len(text) - len(cut)
    return f"{shown} … ({count(left)} more characters)" if left else shown


def breakable(name: str) -> Markup:
    """A name, which has no spaces, with the places where a narrow column may break it."""
    return Markup("<wbr>").join(escape(piece) for piece in _PIECES.split(name))


def entered(given: str) -> int | float | str:
    """The number that was entered in a field; the text itself where it is none."""
    if _WHOLE.fullmatch(given):
        return int(given)
    return float(given) if _DECIMAL.fullmatch(given) else given


def signless(figure: str) -> str:
    """A figure with a minus of the width of a plus."""
    return figure.replace("-", _MINUS)


def _utc(time: Time) -> datetime:
    return datetime.fromtimestamp(time, UTC) if isinstance(time, int) else time.astimezone(UTC)


def _rounded_percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:z.{digits}f}"


def _visible(character: str) -> str:
    is_hidden = unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    return f"\u27e8U+{ord(character):04X}\u27e9" if is_hidden and character not in _KEPT else character
