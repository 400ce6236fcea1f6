"""Whether what follows a claimed choice only explains it, or may take it back."""

import re
from re import Pattern

from services.results.scores.choice_options import Options


def _any_of(*alternatives: str, before: str = "", after: str = "") -> Pattern[str]:
    """Words, without regard to case."""
    return re.compile(rf"{before}(?:{'|'.join(alternatives)}){after}", re.IGNORECASE)


_IN_NEXT_SENTENCE = r"[^.!?。\n]*"

EXPLAINS = (
    "(?:the|this|that|it|these|those|they|there|he|she|we|you|both|because|since|based|according|given|in|an?"
    r"|its|his|her|their|not|explanation|reason|reasoning|rationale|justification)\b"
)
_EXPLAINS = re.compile(rf"\s*{EXPLAINS}", re.IGNORECASE)
# Not "A. 10%" and not the initials of "C. S. Lewis".
_SAYS_WHAT_A_LETTER_IS = re.compile(r"\s*(?![A-Z]\.|\d+\s*[%/])[A-Z\d$]")
# Of the choice itself: "A. Incorrect.", "Paris. This is wrong."
_VERDICT = _any_of(
    "correct|incorrect|wrong|right|true|false|yes|no|not|never|none|nothing|neither|or|and|narrow|broad|vague",
    r"ruled|rejected|eliminated|excluded|discarded|irrelevant|mistaken|un\w+|im\w+|plausible|tempting",
    before=r"\s*(?:(?:this|that|it|which)(?: option| choice| one)?(?: is| was|'s) )?"
    r"(?:(?:also|clearly|not|too) )*",
    after=r"\b",
)
_DOUBT = _any_of(
    r"wait|hmm+|oops|nope|actually|correct(?:ion|ed)|edit|update|revis(?:e|ed|ion)|scratch that|strike that",
    r"(?:on|upon) (?:second|further|closer|reflection|review)|second thoughts?|reconsider\w*|instead|better",
    r"mistaken|mistakenly|mistake|made an error|i was wrong|i meant?|i take|kidding|joking|sorry|apolog\w+",
    r"no (?:idea|clue|opinion)|not (?:sure|certain|clear)|un(?:clear|certain|sure|answerable)|doubt\w*",
    r"depends|either way|opposite|(?:language|ai) model|as an ai|they claim|too little|answers?",
    r"(?:don't|do not|didn't) (?:know|think|believe)",
    r"(?:can't|cannot|can not|could not|couldn't|unable to|impossible to|information to) (?:be )?(?:\w+ )?"
    r"(?:answer\w*|determin\w+|say|tell|help|assist|decide|know|choose|conclude)",
    r"(?:this|that|it|which)(?: is|'s| was) (?:wrong|incorrect|false|not (?:right|correct|true))",
    r"(?:however|but|so|therefore|thus|rather),? (?:it|that|this) (?:is|isn't|was|should)",
    r"(?:should|would|might|could) (?:be|have been)|(?:option|choice|label)s? (?:is|are|was|were|must)",
    before=r"\b",
    after=r"\b",
)
_CONDITION = _any_of(
    "but|however|although|though|maybe|perhaps|possibly|unless|otherwise|if|as long as|or else",
    before=rf"{_IN_NEXT_SENTENCE}\b",
    after=r"\b",
)
_DENIAL = _any_of(
    r"not?|none|never|nothing|nor|cannot|\w+n't|wrong|incorrect|false|refuted|contradict\w*|excluded?",
    r"eliminat\w+|ruled|lacks?|fails?|den(?:y|ies|ied)|contrary|reverse|other way",
    "un(?:supported|true|likely|clear|proven)",
    before=rf"{_IN_NEXT_SENTENCE}\b",
    after=r"\b",
)
_DENIAL_ABROAD = _any_of(
    r"\b(?:nicht|nein|kein\w*|falsch|pas|faux|jamais|incorrecto|não|errad[oa]|fals[oa]|mentira|sé|sei)\b",
    r"\b(?:sbagliat[oa]|не|нет|неверно|неправильно|değil|yanlış|ليس|ليست|خطأ|لا)\b",
    "[不没沒非错錯違誤]|ない|아니|아닙|않|틀",
    before=_IN_NEXT_SENTENCE,
)
_LAST_SENTENCE = re.compile(r"[.!?。\n]")
_NO = frozenset({"no", "false"})
_YES = frozenset({"yes", "true", "correct", "entailment", "acceptable", "positive"})
_DENIES_OTHER = re.compile(
    r"\b(?:not|nor|neither|than|unlike|isn't|aren't|wasn't)(?: an?| the)? [(\[]?\Z", re.IGNORECASE
)
_CLAIMS_OTHER = _any_of(
    "[:;,=→–—-]",
    r"\b(?:is|it's|be|are|was|say|said|choose|pick|select|prefer|with|rather|so|thus|to|but|and|or|also|an?)",
    r"\b(?:therefore|well|then|hence|probably|likely|definitely|clearly)",
    after=r"\s*[(\[]?\Z",
)
_IS_WRONG = re.compile(r" (?:is|are|was) (?:wrong|incorrect|false|not\b)", re.IGNORECASE)
_IN_PASSING = re.compile(
    r"\s+(?!(?:and|or|but|so|then|it|they|he|she|we|you|i|this|that|too|also|fits|works)\b)"
    r"(?!(?:is|are|was|must be|seems) (?:(?:also|the|more|most|a|clearly|in fact) )*"
    r"(?:correct|right|true|best|likely))[^\W\d_]",
    re.IGNORECASE,
)
_BEFORE = 40


def is_denied(before: str) -> bool:
    """In the sentence that a text ends with there is a denial."""
    sentence = _LAST_SENTENCE.split(before)[-1]
    return bool(_DENIAL.match(sentence) or _DENIAL_ABROAD.match(sentence))


def is_explanation(rest: str, label: int, options: Options) -> bool:
    """What may follow a choice with which an answer begins without more ado."""
    if not rest or (_EXPLAINS.match(rest) and not options.are_letters):
        return True
    repeats = any(named.label == label for named in options.named_at(rest, 0))
    says_what_it_is = options.are_letters and _SAYS_WHAT_A_LETTER_IS.match(rest)
    return bool(repeats or says_what_it_is or _EXPLAINS.match(rest)) and not _DENIAL.match(rest)


def is_taken_back(rest: str, label: int, options: Options) -> bool:
    """What follows a claim doubts it, judges it, or names another choice other than in passing."""
    if "?" in rest or _DOUBT.search(rest) or _CONDITION.match(rest) or _DENIAL_ABROAD.match(rest):
        return True
    form = options.forms[label]
    # "No. It is not so." agrees with itself, and "Yes. It is not so." does not.
    if (form not in _NO and _VERDICT.match(rest)) or (form in _YES and _DENIAL.match(rest)):
        return True
    return any(
        _is_named(rest[max(0, other.start - _BEFORE) : other.start], rest[other.end :])
        for other in options.others(rest, label)
    )


def _is_named(before: str, after: str) -> bool:
    if _DENIES_OTHER.search(before) or _IS_WRONG.match(after):
        return False
    return bool(_CLAIMS_OTHER.search(before)) or not _IN_PASSING.match(after)
