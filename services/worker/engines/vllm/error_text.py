"""Why an engine did not start, in one line: from its error, or from the output of its processes."""

import re
from collections.abc import Sequence

# It is shown in one line, in heartbeats and as the error of a run.
_MAX_CHARACTERS = 300
# "(EngineCore pid=12) ERROR 11-22 01:10:09 [core.py:1510] " before each line of a logged traceback.
_LOG_PREFIX = re.compile(r"^\([^)]*\)\s+(?:[A-Z]+ \S+ \S+ \[[^\]]*\]\s?)?")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt): (?P<message>.+)")
# The message of a process when another one failed.
_ELSEWHERE = ("initialization failed", "root cause", "cancelled")
_NOISE = (
    re.compile(r"^Value error, "),
    re.compile(r"\s*\[type=\w+, input_value=.*"),
    re.compile(r"^\[enforce fail at [^\]]*\][^.]*\.\s*"),
)
_QUOTED = re.compile(r"Worker failed with error '(?P<message>.*)', please check")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def reason_in_output(lines: Sequence[str]) -> str | None:
    """The last exception that does not repeat another one; None without any."""
    found = (_EXCEPTION.match(_LOG_PREFIX.sub("", line)) for line in reversed(lines))
    messages = (match["message"] for match in found if match)
    cause = next((message for message in messages if not any(word in message for word in _ELSEWHERE)), None)
    return None if cause is None else shortened(cause)


def is_echo(text: str) -> bool:
    """Whether it only reports that another process failed."""
    return any(word in text for word in _ELSEWHERE)


def reason_in_error(text: str) -> str:
    """The first informative line: the first line of pydantic only counts the errors."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    informative = [line for line in lines if "validation error" not in line] or lines
    opens_a_list = informative[:1] and informative[0].endswith(":")
    return shortened(" ".join(informative) if opens_a_list else "".join(informative[:1]))


def shortened(text: str) -> str:
    """The text without noise, cut to whole sentences."""
    quoted = _QUOTED.search(text)
    text = quoted["message"] if quoted else text
    for noise in _NOISE:
        text = noise.sub("", text)
    kept, *rest = _SENTENCE_END.split(text)
    for sentence in rest:
        if len(kept) + len(sentence) >= _MAX_CHARACTERS:
            break
        kept = f"{kept} {sentence}"
    return kept if len(kept) <= _MAX_CHARACTERS else f"{kept[:_MAX_CHARACTERS].rstrip()} …"
