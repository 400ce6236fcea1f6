"""The number that a claim states: what "the answer is" is followed by, without its reason and its remarks."""

import re
from collections.abc import Iterator

from services.results.scoring.answer_words import has_one_of
from services.results.scoring.numbers.named_things import is_of_a_name
from services.results.scoring.numbers.number_tokens import DIGIT, has_number
from services.results.scoring.numbers.written_numbers import WrittenNumber, read_number

# Behind these comes why, or where the number comes from: it is left out.
_REASON = re.compile(
    r"""[,;(]?\s* (?<!\w) (?: because | since | as\s(?:there|the|we|it|each|shown|he|she|they|this|that)\b
        | given
        | rounded\s(?:to|up|down|off)(?!(?:\s(?:up|down|off))?(?:\sto)?\s[-$€£¥]?\d[\d,.]*(?!\d)
          (?!\s?(?:d\.?p|s\.?f|decimal|significant|sig|places?|digits?)))
        | not | rather\sthan | instead\sof | assuming | which\sincludes?
        | weil | parce\sque | porque ) (?!\w)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ROUNDED_RESULT = re.compile(r"(?:\b(?:is|are|was|gives|equals|makes)|[=≈])\s\S{0,2}\d")
_WORDS_OF_REASONS = (
    *(
        "because",
        "rounded",
        "since",
        "as ",
        "as\n",
        "given",
        "not",
        "rather",
        "instead",
        "assuming",
        "which",
        "weil",
    ),
    *("parce", "porque"),
)
# "8 apples, which is 3 more than before": how much more is no second value.
_COMPARED = re.compile(
    r"(?<=\d)((?:\s[a-z]+){0,4}),?\s(?:which\s(?:is|are|was|were)\s|or\s)?\S?\d[\d.,]*%?(?:\s[a-z]+)?"
    r"\s(?:more|less|fewer|greater|larger|smaller|higher|lower|times)\b[^.,;:=\d]*(?=[.,;]|\Z)",
    re.IGNORECASE,
)
_WORDS_OF_COMPARISONS = ("more", "less", "fewer", "times", "larger", "smaller", "higher", "lower", "greater")
# "42 seats in total, 7 per row"
_SUMMED = re.compile(
    r"(?P<sum>[-$€£¥]{0,2}\d[\d,.]*\d|[-$€£¥]{0,2}\d)(?P<of>(?:\s[a-z]+){0,3}),?"
    r"\s(?:in\s(?:total|all)|altogether|all\stogether|combined|together)\b",
    re.IGNORECASE,
)
# "6 carrots to get 5 cookies in total"
_IS_FOR = re.compile(r"\d.*\bto [a-z]+ \Z", re.IGNORECASE | re.DOTALL)
# "If she picks 24 in total, then it is 12 a trip"
_GOES_ON_TO = re.compile(r"\b(?:is|are|then|so)\b[^.\n]*\d", re.IGNORECASE)
# "3 red pens and 3 blue pens": two counts.
_TWICE = re.compile(r"(?<![\d.,])(\d[\d.,]*) (?:[a-z]+ ){1,3}and \1 [a-z]+", re.IGNORECASE)
_WORDS_OF_SUMS = ("total", "all", "together", "combined")
REPLACED = re.compile(
    r"\bnot\s(?!only|just|merely|simply)[^,.;:\n]{1,40}?,?\sbut\s(?:rather\s)?", re.IGNORECASE
)
# "18 pages a day to finish within 10 days"
_PURPOSE = re.compile(
    r"(\d\S*(?: [a-z]+){0,4}),? (?:in order )?to (?:finish|complete|cover|buy|afford|pay|save|earn|meet|win"
    r"|pass|feed|fill|travel|drive|walk|read|serve|achieve)\b[^=]*\Z",
    re.IGNORECASE,
)
# Another count behind it: "and spends $12", but not "5 apples and 5 pears".
_MORE = (
    r"\band\s(?!\S?\d+\s[a-z]+(?!\sto\b)|the\b|his\b|her\b|their\b|an?\b)[^\n]*\d|\band\s\S?\d+\s[a-z]+\sto\b"
    r"|\b(?:but|or|so|then|leaving|while|plus)\b[^\n]*\d|,\s[^\n]*\d"
)
# So does "so she needs 5 eggs to make 15 flans", but no ratio: "5 eggs make 15 flans".
_PURPOSE_OF_CONCLUSION = re.compile(
    r"(\A\W*(?:so|thus|therefore|hence|this means|that means)\b[^\d=]*\d\S*(?: [a-z]+){0,4}) to "
    r"(?:speed talk|get|make|last|reach|meet|have|produce|score|climb|run|write"
    r"|cook|bake|build|paint|clean|eat|drink|sell|raise|collect|hold|fit|type|swim|cross|plant|deliver|print|pack"
    r"|wash|lose|gain|learn|play|watch|grow|mow)\b"
    rf"(?:(?!{_MORE})[^=])*\Z",
    re.IGNORECASE,
)
# "2 people that lifted at least 46 pounds": a bound in what the number is of is no second value.
_BOUNDED = re.compile(
    r"(\d\S*(?: [a-z-]+){1,4}) (?:that|who|which|with|whose|having)\b[^.,;:=\n\d]*\b(?:than|at least"
    r"|at most|over|under|above|below"
    r"|exactly) \S{0,2}\d[\d.,]*%?(?: [a-z]+){0,6}(?=[.,;\n]|\Z)",
    re.IGNORECASE,
)
# "6 ways to arrange 3 books"
_WAYS = re.compile(
    r"(\d\S*(?: (?:different|distinct|possible|total|unique))? (?:ways?|arrangements?|permutations?"
    r"|combinations?"
    r"|possibilities|outcomes?|methods?))\b(?:(?!\b(?:and|or|but|so|each|per|plus|while)\b)[^.,;:=\n])*",
    re.IGNORECASE,
)
# "He pays $12 for 5 apples and 5 pears"
_PRICE = re.compile(
    rf"([$€£₹]\s?\d[\d,.]*(?: [a-z]+){{0,4}}) (?:for|over) (?:the )?\d(?:(?!{_MORE})[^=$€£₹\n])*(?=[.\n]|\Z)",
    re.IGNORECASE,
)
_WORDS_OF_BOUNDS = ("than", "at least", "at most", "over", "under", "above", "below", "exactly")
_WORDS_OF_WAYS = ("way", "arrangement", "permutation", "combination", "possibilit", "outcome", "method")
# Behind these may come another value, and then the answer is not plain.
_TURN = re.compile(r"[,;]?\s*\b(?:which|where|who|so\sthat|if|when|unless)\b", re.IGNORECASE)
_WORDS_OF_TURNS = ("which", "where", "who", "so", "if", "when", "unless")
_COMPUTES = re.compile(r"\d\s*[×x*+/÷-]\s*\$?\d")
# "72 (or 73)" and "72 (73 if both ends count)" say another value.
_OTHER_VALUE = (
    r"(?!\s*(?:or|alternatively,?) \d+\s*\)|\s*(?:maybe|perhaps|possibly|some say) \S?\d"
    r"|\s*(?:or )?\S?\d[\d.,]*(?: [a-z]+)? (?:if|when|counting|including|excluding|depending)\b)"
)
_REMARK = re.compile(
    rf"(?<=[^\s+*/×÷=^-])\s*(?<!\w)[(（]{_OTHER_VALUE}[^()（）\n]*[)）]|(?<=\d )[(]{_OTHER_VALUE}[^()\n]*[)]"
)


def claimed(claim: str) -> WrittenNumber | None:
    """None where the claim has no number, or more than one value."""
    if "not " in claim or "Not " in claim:
        claim = REPLACED.sub("", claim)
    total = summed(claim)
    if total is not None:
        return total
    if is_of_a_name(claim):
        return None
    for candidate in _candidates(claim):
        if " and " in candidate and _TWICE.search(candidate):
            return None
        read = _without_turn(candidate)
        if read is not None or has_number(candidate):
            return read
    return None


def summed(text: str) -> WrittenNumber | None:
    """The one number that a text says to be a sum, beside the numbers that it is made of."""
    if not has_one_of(text.casefold(), _WORDS_OF_SUMS):
        return None
    sums = [*_SUMMED.finditer(text)]
    if len(sums) != 1 or "=" in text or _IS_FOR.search(text, 0, sums[0].start()):
        return None
    if _GOES_ON_TO.search(text, sums[0].end()):
        return None
    return read_number(sums[0]["sum"] + sums[0]["of"])


def without_reason(text: str) -> str:
    if " to " in text:
        text = _PURPOSE.sub(r"\1", text)
    if " for " in text or " over " in text:
        text = _PRICE.sub(r"\1", text)
    folded = text.casefold()
    if has_one_of(folded, _WORDS_OF_WAYS):
        text = _WAYS.sub(r"\1", text)
    if has_one_of(folded, _WORDS_OF_BOUNDS):
        text = _BOUNDED.sub(r"\1", text)
    if has_one_of(folded, _WORDS_OF_COMPARISONS):
        text = _COMPARED.sub(r"\1", text)
    reason = _REASON.search(text) if has_one_of(folded, _WORDS_OF_REASONS) else None
    if reason is None:
        return text
    head = text[: reason.start()]
    # "Rounded to 2 decimals it is 3.14" says first how what follows is rounded.
    is_of_what_follows = "ounded" in reason[0] and (
        not DIGIT.search(head) or _ROUNDED_RESULT.search(text, reason.end())
    )
    return text if is_of_what_follows else head


def without_purpose(sentence: str) -> str:
    """Without what the number of a conclusion is for."""
    return _PURPOSE_OF_CONCLUSION.sub(r"\1", sentence) if " to " in sentence else sentence


def may_turn(text: str) -> bool:
    """Whether another value may follow the first one."""
    return has_one_of(text.casefold(), _WORDS_OF_TURNS)


def without_remarks(text: str) -> str:
    """Without what stands in brackets behind something, where a number is left."""
    shorter = _unremarked(text)
    return shorter if shorter != text and has_number(shorter) else text


def _unremarked(text: str) -> str:
    return _REMARK.sub("", text) if "(" in text or "（" in text else text


def _candidates(claim: str) -> Iterator[str]:
    shorter = _unremarked(claim)
    yield without_reason(shorter)
    if shorter != claim:
        yield without_reason(claim)
    yield claim


def _without_turn(text: str) -> WrittenNumber | None:
    """`12, which is 3 × 4` states 12; `$90, which gives each $30` does not state one number."""
    if not may_turn(text):
        return read_number(text)
    before, *behind = _TURN.split(text, maxsplit=1)
    if not behind or not has_number(before):
        return read_number(text)
    read, other = read_number(before), read_number(behind[0])
    is_computed = other is None and "=" not in behind[0] and _COMPUTES.search(behind[0])
    is_same = read is not None and other is not None and read.value == other.value
    return read if is_same or is_computed or not has_number(behind[0]) else None
