"""The part of a model's text that is its answer, and texts compared as people read them."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# LaTeX's box around an answer.
BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_ONE_FIELD = re.compile(
    r'(?:```\w*\s*)?\{\s*"(?:answer|choice|option|label)"\s*:\s*"([^"]*)"\s*\}(?:\s*```)?', re.IGNORECASE
)
_FIELD = (
    "question|q|query|problem|exercise|task|instructions?|example|passage|paragraph|context|text|input|article"
    "|document|abstract|premise|hypothesis|sentence|review|tweet|comment|statement|claim|story|title|dialogue"
    "|conversation|word|headline|options|choices|human|user|assistant|system"
)
_NEXT_TURN = re.compile(
    r"<\|[^|<>]{1,40}\|>|</?s>|<eos>|<(?:start|end)_of_turn>|\[/?INST\]"
    rf"|\n\W{{0,6}}(?:{_FIELD})\s?\d{{0,2}}\W{{0,3}}:",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s*(?=\{)|[*`\"“”„«»]")
# Raised and lowered digits and fractions stay what they are: 10² is not 102.
_IN_ONE_FORM = re.compile("[^\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209f\u2150-\u218f]+")
_OPENING = " \t\n\r'([{#$•「『（"
_CLOSING = " \t\n\r.,:;!')]}$\\/•…。，！：；、」』）"
# A letter of a script that sets words apart: not of Thai, Lao, Chinese, Japanese, Korean.
SPACED = r"[^\W\u0e00-\u0eff\u1100-\u11ff\u2e80-\uffff]"
_IS_WORD_START = re.compile(rf"(?<!{SPACED})")
_IS_WORD_END = re.compile(rf"(?!{SPACED})")
_BULLET = re.compile(r"\A\s*-\s+(?!\d)")


def final_answer(text: str) -> str:
    """Every step is linear in the text, however often a model that has lost itself repeats a sign."""
    text = _tagged(text).strip()
    as_json = _ONE_FIELD.fullmatch(text)
    if as_json:
        return as_json[1].strip()
    next_turn = _NEXT_TURN.search(text)
    return (text[: next_turn.start()] if next_turn else text).strip()


def _tagged(text: str) -> str:
    """The last answer between tags; without one, the whole text."""
    folded = text.lower()
    end = folded.rfind("</answer>")
    start = folded.rfind("<answer>", 0, end) if end >= 0 else -1
    # Where lower case has another length, positions in `folded` are not those of the text.
    return text[start + len("<answer>") : end] if start >= 0 and len(folded) == len(text) else text


@dataclass(frozen=True, slots=True)
class Mention:
    start: int
    end: int
    label: int


def unmarked(text: str) -> str:
    """The text without emphasis and quotes, in one form of Unicode; lines stay."""
    folded = _IN_ONE_FORM.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
    return _MARKUP.sub("", folded).replace("’", "'").replace("\u2212", "-").replace("_", " ")


def bare(text: str) -> str:
    """The compared form: also without case, and without punctuation at the ends."""
    words = _BULLET.sub("", unmarked(text)).casefold().split()
    return " ".join(words).lstrip(_OPENING).rstrip(_CLOSING)


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
