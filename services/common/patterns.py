"""Regular expressions of users: the syntax is that of `re`, and the size is limited before `regex` compiles.

`regex` writes out what is repeated n times n times, and no library says so beforehand (decision 0032).
"""

import re
import warnings
from functools import lru_cache

import regex

# Each takes some hundred bytes, so that twenty characters such as "(?:x{1000}){1000000}" take all memory.
MAX_PARTS = 10_000
# What a search may take that nothing bounds but its pattern and its text: below a millisecond.
QUICK_STEPS = 100_000

# Any other character is a part by itself. A brace that holds no numbers is such a character.
_TOKEN = re.compile(
    r"(?P<nothing>\(\?\#[^)]*\)|\(\?[aiLmsux]+\))"
    r"|(?P<plain>\(\?:)"
    r"|(?P<open>\((?:\?(?:P<\w+>|<?[=!]|>|\(\w+\)|[aiLmsux]*(?:-[imsx]+)?:))?)(?!\?P=)"
    r"|(?P<close>\))"
    r"|(?P<repeat>(?:[*+?]|\{(?=[\d,])(?P<least>\d*)(?:,\d*)?\})[?+]?)"
    r"|\(\?P=\w+\)"
    r"|\\(?:N\{[^}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\d{1,3}|.)"
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|.",
    re.DOTALL,
)
# Syntax of the `regex` module that `re` lacks: "{e<=1}" allows errors, "[:alpha:]" is a class.
_NAME_OR_ESCAPE_OR_BRACE = re.compile(r"(\\N\{[^}]*\}|\\.)|\{(?!\d*(?:,\d*)?\})", re.DOTALL)
_POSIX_CLASS = re.compile(r"\[:\^?\w+:\]")
# Groups that look around, refer back or have rules of their own, and white space that means nothing.
_UNCOUNTED = re.compile(r"\(\?(?!:|P<|[aiLmsu]+\))|\\[1-9]")
_OPTIONAL = ("|", "?", "??", "?+")
_COMMENT_OR_BLANK = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\s+|#[^\n]*", re.DOTALL)


def compile_pattern(pattern: str) -> tuple[re.Pattern[str], regex.Pattern[str]]:
    """The pattern for `re`, and for `regex`, which finds the same and takes a time limit.

    Raises re.error where `re` would, where it is too large, and where the two modules would not agree.
    """
    try:
        check_pattern_size(pattern)
        return _plain(pattern), _timed(pattern)
    except (RecursionError, OverflowError) as error:
        raise re.error("it is nested too deeply, or a number in it is too large") from error


def _plain(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern)


def _timed(pattern: str) -> regex.Pattern[str]:
    if _POSIX_CLASS.search(pattern):
        raise re.error("a class such as [:alpha:] is not known", pattern)
    try:
        # A brace that does not repeat is a brace.
        as_re_reads_it = _NAME_OR_ESCAPE_OR_BRACE.sub(lambda found: found[1] or r"\{", pattern)
        return regex.compile(as_re_reads_it, regex.VERSION0)
    except regex.error as error:
        raise re.error(str(error), pattern) from error


@lru_cache(maxsize=512)  # as many as `re` keeps
def check_pattern_size(pattern: str) -> None:
    """Raises re.error, also where `re` does not read the pattern, and RecursionError."""
    if _plain(pattern).flags & re.VERBOSE:
        pattern = _COMMENT_OR_BLANK.sub(lambda found: found[1] or "", pattern)
    parts = _parts(pattern)
    if parts > MAX_PARTS:
        raise re.error(f"it repeats too much: written out it has {parts:,} parts, and may have {MAX_PARTS:,}")


def quick_characters(pattern: str) -> int:
    """Whatever a text of so many characters says, `re` searches it in about `QUICK_STEPS` steps; 0: unknown.

    It tries the pattern at each place of the text. There each repeat may end at any place behind it, and each
    option may be taken or not. What repeats a group may take more.
    """
    tokens = [(token.lastgroup, token[0]) for token in _TOKEN.finditer(pattern)]
    if any(_UNCOUNTED.match(text) for _, text in tokens):
        return 0
    options = repeats = depth = 0
    for place, (kind, text) in enumerate(tokens):
        depth += (kind in ("plain", "open")) - (kind == "close")
        if text in _OPTIONAL:
            options += 1
        elif kind in ("repeat", "least"):
            if tokens[place - 1][0] is not None:
                return 0
            behind = tokens[place + 1 : place + depth + 2]
            is_closed = all(kind == "close" for kind, _ in behind[:depth])
            # The last of a match succeeds where it is reached, and the search goes on behind the match.
            repeats += not (is_closed and behind[depth:] in ([], [(None, "|")]))
    ways = max(_parts(pattern), len(pattern), 1) * 2**options
    return max(0, int((QUICK_STEPS / ways) ** (1 / (repeats + 1))) - 1)


def _parts(pattern: str) -> int:
    """Counts the parts of a pattern that `re` has read: its groups are closed, its repeats follow an item."""
    sums, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        match token.lastgroup:
            case "nothing":
                continue
            case "plain" | "open":
                sums.append(0 if token["plain"] else 1)
                continue
            case "close":
                last = sums.pop()
            case "repeat" | "least":
                sums[-1] -= last
                # Only the least number is written out; what goes beyond it is a loop.
                last = 1 + max(int(token["least"] or 0), 1) * last
            case _:
                last = 1
        sums[-1] += last
    return sums[0]
