"""The part of a model's text that is its answer, and texts compared as people read them."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# LaTeX's boxes around an answer.
BOXED = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
_MARKUP = re.compile(
    r"\\(?:text|mathrm|mathbf|textbf|textit|mathit|mathsf|bm|boldsymbol|mbox)\s*(?=\{)"
    r"|</?(?:b|i|u|em|strong|p|br|span|div|h[1-6]|li|ul|ol|code|mark|center)\s?/?>"
    r"|\\(?:rm|bf|it|sf|displaystyle|large|Large|quad)\b\s?|\\[()\[\],;!]"
    r"|[*`\"“”„«»【】〖〗\u2605\u2606\u2611\u2705\u2713\u2714\u2728\u2b50\ufe0f]"
    r"|[\u2600-\u2604\u2614-\u2618\u263a\u263b\u2660-\u266b\u26a0-\u26ff\u2733\u2734\u2744\u2747\u2764]"
    # Pictures, but a thumb down, a thinking face and a sign of what is forbidden.
    r"|[\U0001f300-\U0001f44d\U0001f44f-\U0001f6aa\U0001f6ac-\U0001f913\U0001f915-\U0001faff]"
)
# Raised and lowered digits: 10² is 10^2 and not 102.
_RAISED = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+")
_LOWERED = re.compile("[\u2080-\u2089]+")
_ONE_HYPHEN = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
)
# Not behind a number or a variable, of which it would become a part.
_FRACTION = re.compile(r"(?<![\w})])(?<!\d )(?<![)}] )\\[dt]?frac\{(\d+)\}\{(\d+)\}(?! ?[\w({\\])")
# Fractions stay what they are.
_IN_ONE_FORM = re.compile("[^\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209f\u2150-\u218f]+")
_OPENING = " \t\n\r'([{#$•→➡「『（"
_CLOSING = " \t\n\r.,:;!')]}$\\/•…。，！：；、」』）"
# A letter of a script that sets words apart: not of Thai, Lao, Chinese, Japanese, Korean.
SPACED = r"[^\W\u0e00-\u0eff\u1100-\u11ff\u2e80-\uffff]"
_IS_WORD_START = re.compile(rf"(?<!{SPACED})")
_IS_WORD_END = re.compile(rf"(?!{SPACED})")
_BULLET = re.compile(r"\A\s*-\s+(?!\d)")
_MINUS = re.compile(r"\A-\s+(?=\d)")


@dataclass(frozen=True, slots=True)
class Mention:
    start: int
    end: int
    label: int


def unmarked(text: str) -> str:
    """The text without emphasis and quotes, in one form of Unicode; lines stay."""
    if not text.isascii():
        text = _RAISED.sub(lambda run: f"^{unicodedata.normalize('NFKC', run[0])}", text)
        text = _LOWERED.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text).translate(_ONE_HYPHEN)
        text = (
            _IN_ONE_FORM.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
            .replace("’", "'")
            .replace("‘", "'")
        )
    if "frac" in text:
        text = _FRACTION.sub(r"\1/\2", text)
    return _MARKUP.sub("", text).replace("_", " ")


def bare(text: str) -> str:
    """The compared form: also without case, and without punctuation at the ends."""
    words = _BULLET.sub("", unmarked(text)).casefold().split()
    return _MINUS.sub("-", " ".join(words).lstrip(_OPENING).rstrip(_CLOSING))


def caseless(text: str) -> str:
    """Folded without change of length, so that positions are the same in both."""
    folded = text.casefold()
    return (
        folded
        if len(folded) == len(text)
        else "".join(one if len(one.casefold()) > 1 else one.casefold() for one in text)
    )


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Not a part of a longer word."""
    return bool(_IS_WORD_START.match(text, start) and _IS_WORD_END.match(text, end))


def mentions(text: str, forms: Sequence[str]) -> list[Mention]:
    """Mentions of forms in a caseless text, in order; where some overlap, the first and longest one."""
    found = [one for label, form in enumerate(forms) for one in _occurrences(text, form, label)]
    kept: list[Mention] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or kept[-1].end <= one.start:
            kept.append(one)
    return kept


def _occurrences(text: str, form: str, label: int) -> Iterator[Mention]:
    start = text.find(form) if form else -1
    while start >= 0:
        end = start + len(form)
        if is_whole_word(text, start, end):
            yield Mention(start, end, label)
        # Behind the whole match: steps of one would be quadratic in a text of repeats.
        start = text.find(form, end)
