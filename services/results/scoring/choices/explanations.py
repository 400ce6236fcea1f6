"""Whether an explanation of several sentences takes a claim back; it may tell of other options."""

import re

from services.results.scoring.answer_words import any_of
from services.results.scoring.choices.doubts import DENIES_OTHER, IS_WRONG
from services.results.scoring.choices.options import ChoiceOptions

_UNDOES = any_of(
    r"(?:\A|[.!?\n…:;-]\s+)\W*(?:(?:but|oh|so|however),? )?(?:wait|hmm+|actually|oops|nope"
    r"|(?:no|edit|update)(?=[,.!:])|sorry|apolog\w+|correct(?:ion|ed)|scratch|strike|rather,"
    r"|i (?:made|meant?|was|take|lied|mis\w+|need to correct)"
    r"|let(?:'s| us| me) (?:re\w*|double|check|verify|correct)|my mistake|checking|verif\w+)(?!\w)",
    r"\b(?:(?:on|upon) (?:second|further|closer|reflection|review)|second thoughts?|reconsider\w*|mistaken"
    r"|made an error|i was wrong|kidding|joking|not (?:entirely |quite |completely )?(?:sure|certain))\b",
    r"\b(?:this|that|it|my (?:answer|choice)|the (?:above|previous|first) (?:answer|choice|option))"
    r"(?: is|'s| was| seems) (?:\w+ly )?(?:wrong|incorrect|false|not (?:right|correct|true))\b",
    r"\bnone of (?:the|these)(?: \w+){0,3} (?:options|choices|answers)",
    r"\bnot (?:among|in|listed|one of|included)",
    r"\b(?:cannot|can't|could not|impossible to) (?:be )?(?:\w+ly )?"
    r"(?:determined?|answer(?:ed)?|say|tell|decide|choose)",
)
_OF_OTHERS = re.compile(
    r"\W*(?:解析|分析|详解|詳解|解释|解釋|说明|理由|点评)[:：\s]*"
    r"|\W*(?:why )?(?:are |not |is )?(?:the |all )?(?:others?|remaining|rest)\b"
    r"(?! (?:hand|possib|candidate))",
    re.IGNORECASE,
)
_WHY = re.compile(r"\W*(?:why|how|what)\b", re.IGNORECASE)
_ASKED = re.compile(r"[^.!?\n]*\?")
_TURNS = re.compile(
    r"(?:\A|[.!?\n;]\s*)\W*(?:however|but|although|though|yet|still|that said|nevertheless"
    r"|on the other hand|if|alternatively|instead|in fact|or)\b[^.!?\n]*\Z",
    re.IGNORECASE,
)
_IS_POSSIBLE = re.compile(
    r"[)\]]?(?: is| are| was| would be| seems?| could be| may be| might be| looks?| should be| must be)"
    r"(?: (?!not|less|un|in|im|never|no\b|also not)\w+){0,2}? "
    r"(?:correct|right|true|best|better|likely|possible|plausible|valid|acceptable|answers?)\b",
    re.IGNORECASE,
)
_CLAIMED = re.compile(
    r"\b(?:answer|choose|pick|select|go with|prefer|should be|could be|might be|may be|maybe|perhaps|so|thus"
    r"|therefore|hence|either|or)\b,?(?: (?:is|it is|it's|be|with))?:?(?: the)?(?: option| choice| answer)? ?"
    r"[(\[]?\Z",
    re.IGNORECASE,
)
_FIRST_SENTENCE = re.compile(r"\s*[^\n]*?(?:[.!?](?=\s|\Z)|\n|\Z)")


# Characters beside a name in which words that claim or deny it are looked for.
_BEFORE, _BEHIND = 200, 60


def first_sentence(rest: str) -> str:
    """Of what follows a claim, which may be the rest of its own sentence; empty where others are told of."""
    if _OF_OTHERS.match(rest):
        return ""
    found = _FIRST_SENTENCE.match(rest)
    return found[0] if found else rest


def is_undone(rest: str, label: int, options: ChoiceOptions) -> bool:
    """Whether an explanation of several sentences takes the claim before it back.

    It may tell of the other options, deny them, and doubt what is not the claim.
    """
    if not rest.strip():
        return False
    if is_doubted(rest):
        return True
    for name in options.names_in(rest):
        before, after = rest[max(0, name.start - _BEFORE) : name.start], rest[name.end :][:_BEHIND]
        is_letter = len(rest[name.start : name.end].strip("()[]")) == 1
        is_denied = name.label == label and is_letter and IS_WRONG.match(after)
        if is_denied or (name.label != label and _is_claimed(before, after, is_letter=is_letter)):
            return True
    return False


def is_doubted(rest: str) -> bool:
    """Whether an explanation goes back on itself, or asks."""
    return bool(_UNDOES.search(rest)) or any(not _WHY.match(asked) for asked in _ASKED.findall(rest))


def _is_claimed(before: str, after: str, *, is_letter: bool) -> bool:
    if DENIES_OTHER.search(before) or IS_WRONG.match(after):
        return False
    is_named = is_letter and (_CLAIMED.search(before) or _TURNS.search(before))
    return bool(is_named or _IS_POSSIBLE.match(after))
