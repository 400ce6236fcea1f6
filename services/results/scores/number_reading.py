"""The number that an answer names, for metrics that correlate numbers. What is not plain is unread."""

import re

# Not a part of "B2", "1.000.000", "4,5", "4/5", "5-2" or "80 %": which scale a task has is not known here.
_NUMBER = re.compile(
    r"(?<![\w.,/-])[-+]?(?:\d+(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?(?!\w|[.,]\d|\s*[/%])"
)
_DIGIT = re.compile(r"\d")
# No task asks for more, and a few such numbers would leave a correlation nothing but noise.
_LARGEST = 1e15


def named_number(text: str) -> float | None:
    """None where the text names no number, or more than one: which of them is meant is not guessed."""
    text = text.replace("\u2212", "-")
    found = {float(number.replace(",", "")) for number in _NUMBER.findall(text)}
    if len(found) != 1 or _DIGIT.search(_NUMBER.sub("", text)):
        return None
    number = found.pop()
    return number if abs(number) <= _LARGEST else None
