"""Whether what follows a claimed choice explains it, or takes it back."""

import re
from collections.abc import Iterator
from itertools import pairwise

from services.results.scoring.answer_text import Mention
from services.results.scoring.answer_words import (
    DENIAL_ABROAD,
    DOUBT_WORDS,
    OF_OTHERS_ABROAD,
    allows_others_abroad,
    any_of,
)
from services.results.scoring.choices.claims import EXPLAINED_BELOW, EXPLAINS
from services.results.scoring.choices.options import ChoiceOptions

_IN_NEXT_SENTENCE = r"[^.!?。\n]*"
_EXPLAINS = re.compile(rf"\s*{EXPLAINS}", re.IGNORECASE)
# Not "A. 10%" and not the initials of "C. S. Lewis".
_SAYS_WHAT_A_LETTER_IS = re.compile(r"[\s(-]*(?![A-Z]\.|\d+\s*[%/])[A-Za-z\d$\\\u0080-\uffff]")
# "A. This confuses ...": about the option, which may be right or wrong.
_ABOUT_IT = re.compile(
    r"[ \t(:-]*(?:this|that|it|which|the (?:\w+ )?(?:option|choice|answer|statement))\b", re.IGNORECASE
)
_BREAKS_OFF = re.compile(
    r"(?:\b(?:which|the|an?|of|and|is|in|to|that|for|with|by|or|was|are|as|it|because|on|at|from|but"
    r"|its|this)|[,:;(-])\s*\Z",
    re.IGNORECASE,
)
NO = frozenset({"no", "false"})
YES = frozenset({"yes", "true", "correct", "entailment", "acceptable", "positive"})
_AFFIRMS = re.compile(r"[\s,]*(?:that|this|it)(?: is|'s) (?:correct|right|true)\b", re.IGNORECASE)
# "Yes, because there is no evidence against it."
_DENYING_REASON = re.compile(r"[\s,]*because (?!not?\b)[^.!?;\n]*[.!]?\s*", re.IGNORECASE)
_NO_OF_NOUN = re.compile(r"\bno(?= [a-z]+ (?:of|for|to|that|in|against|between|about|with)\b)")
_AFFIRMS_NO = re.compile(
    r"[\s,]*(?:that|this|it)(?: is|'s) (?:false|wrong|incorrect|untrue)[\s.!]*", re.IGNORECASE
)
# An option that is about the others: "D. Both A and B".
_SUMS_UP = re.compile(
    r"[\s.:)-]*(?:all|both|none|neither|either|only)\b(?: of)?(?: the| these)?(?: above| options?| choices?)?"
    r"(?:(?:,| and| or| nor|,? &|,? and|,? or)? ?\(?[A-Z]\)?(?![\w']))*(?: only)?"
    r"(?:,? (?:because|since|as) [^.?!\n]*)?(?=[.,;)\n]|\Z)",
    re.IGNORECASE,
)
# Not a share, which another choice may have more of.
_COUNTS = re.compile(r"\s*\d+ (?:out )?of \d+(?!\s*%)")
_EXCLUDES = re.compile(
    r"[\s,]*\((?:not|rather than|instead of) (?:[^()\n]{1,40}|\([^()\n]{1,4}\))\)"
    r"|\s*,? instead of (?:(?:option|choice) )?\(?(?-i:[A-J])\)?(?=[.!]?\s*\Z)",
    re.IGNORECASE,
)
# What follows the mark of a list, or the name of a field, is no claim.
_MARKED = re.compile(
    r"(?:(?:\A|\n)[ \t]*[-•]|\b(?:why|explanation|reason|reasoning|rationale|note|because):)\s*\Z",
    re.IGNORECASE,
)
_CONFIRMS = re.compile(
    r"[^.!?\n]*\b(?:confirms?|supports?|agrees|affirms?|proves|says so|is true|is correct|is right)\b",
    re.IGNORECASE,
)
DENIES_OTHER = re.compile(
    r"\b(?:not|no|nor|neither|than|over|unlike|isn't|aren't|wasn't|instead of)(?: an?| the)?(?: option"
    r"| choice| answer)? ?[(\[]?\Z",
    re.IGNORECASE,
)
IS_WRONG = re.compile(
    r"[)\]]? (?:is|are|was|were) (?:\w+ly )?(?:wrong|incorrect|false|not\b)"
    r"|(?:选?项|選項)?(?:是|的说法)?(?:错|錯|不正|不对|不符|不选)",
    re.IGNORECASE,
)
# Words with "no" that deny nothing: "Yes. No other country has it."
_AFFIRMING_NO = re.compile(r"\bno (?:other|doubt|question|wonder|matter|one else)\b", re.IGNORECASE)
_STANDS_FOR = re.compile(r"[)\]]? (?:is|was|says|means|stands for) (?:the |an? )?", re.IGNORECASE)
_IN_PASSING = re.compile(
    r"\s+(?!(?:and|or|but|so|then|it|they|he|she|we|you|i|this|that|too|also|fits|works)\b)"
    r"(?!(?:is|are|was|were|must be|seems?|could be|may be|might be) "
    r"(?:(?:also|the|more|most|a|clearly|in fact|both|all|equally) )*"
    r"(?:correct|right|true|best|likely|better|possible|plausible|valid|acceptable|answers?))[^\W\d_]",
    re.IGNORECASE,
)
# "Because A is in the UK, C is in Germany and D is in Spain": it goes on to tell of others.
_REASON = re.compile(r"[\s,;(-]*(?:because|since|as|given that)\b", re.IGNORECASE)
_NEXT_OF_REASON = re.compile(r"(?:\w, (?:and |while |whereas )?|\w (?:and|while|whereas) )[(\[]?\Z")
_TELLS = re.compile(
    r"[)\]]? (?:is|are|was|were|has|have|had|refers? to|describes?|represents?|lies|belongs?|does|do"
    r"|occurs?|causes?|leads?|involves?|applies)\b",
    re.IGNORECASE,
)
_CLAIMS_OTHER = any_of(
    "[:;,=→-]",
    r"\b(?:is|it's|be|are|was|say|said|choose|pick|select|prefer|with|rather|so|thus|to|but|and|or|also|an?)",
    r"\b(?:therefore|well|then|hence|probably|likely|definitely|clearly)",
    after=r"\s*[(\[]?\Z",
)
_JOINED = re.compile(
    r"[)\]]?\s*(?:,|/|&|\band\b|\bor\b|,\s*and\b|,\s*or\b)\s*(?:the |an? |option |choice )?[(\[]?\Z"
)
# Characters before a choice in which words that deny or claim it are searched: room for the longest words.
_BEFORE = 40
# About the choice itself: "A. Incorrect.", "Paris. This is wrong."
_VERDICT = any_of(
    "correct|incorrect|wrong|right|true|false|yes|no|not|never|none|nothing|neither|or|and|narrow|broad"
    "|vague",
    r"ruled|rejected|eliminated|excluded|discarded|discarding|irrelevant|mistaken|plausible"
    r"|un(?:likely|true|supported|related|clear|certain|fortunately|necessary|reasonable|acceptable|proven|founded"
    r"|helpful|correct|fit|warranted|justified|sound|persuasive|substantiated|suitable|satisfactory|realistic|convincing|tenable)"
    r"|im(?:possible|plausible|probable|proper|practical|material|precise|permissible)"
    r"|tempting",
    r"partly|partially|hardly|barely|possible|possibly",
    before=r"[\s(:-]*(?:(?:this|that|it|which)(?: option| choice| one)?(?: is| was|'s) )?"
    r"(?:(?:also|clearly|not|(?P<too>too)) )*",
    after=r"\b",
)
_TOO = re.compile(r"[\s(:-]*(?:(?:this|it) is )?(?:far |much |a bit )?too \w", re.IGNORECASE)
_DOUBT = any_of(
    *DOUBT_WORDS,
    r"no (?:idea|clue|opinion)|not (?:sure|certain|clear)|un(?:clear|certain|sure|answerable)|doubt\w*",
    r"depends|either way|opposite|(?:language|ai) model|as an ai|they claim|too little"
    r"|(?<!final )answers?(?! choice)",
    r"(?:don't|do not|didn't) (?:know|think|believe)|verif\w+|checking|let(?:'s| us| me) (?:check|see"
    r"|double)",
    r"(?:can't|cannot|can not|could not|couldn't|unable to|impossible to|information to) (?:be )?(?:\w+ )?"
    r"(?:answer\w*|determin\w+|say|tell|help|assist|decide|know|choose|conclude)",
    r"(?:this|that|it|which)(?: is|'s| was) (?:wrong|incorrect|false|not (?:right|correct|true))",
    r"(?:however|but|so|therefore|thus|rather),? (?:it|that|this) (?:is|isn't|was|should)",
    r"(?:should|would|might|could) (?:be|have been)|(?:option|choice|label)s? (?:is|are|was|were|must)",
    before=r"\b",
    after=r"\b",
)
_CONDITION = any_of(
    "but|however|although|though|maybe|perhaps|possibly|unless|otherwise(?! ?[.!])|if|as long as|or else",
    before=rf"{_IN_NEXT_SENTENCE}\b",
    after=r"\b",
)
_DENIAL = any_of(
    r"not?|none|never|nothing|nor|cannot|\w+n't|wrong|incorrect|false|refuted|contradict\w*|excluded?",
    r"eliminat\w+|ruled|lacks?|fails?|den(?:y|ies|ied)|contrary|reverse|other way|discard\w*|confus\w+",
    "un(?:supported|true|likely|clear|proven)",
    before=rf"{_IN_NEXT_SENTENCE}\b",
    after=r"\b",
)


def without_affirming_no(rest: str) -> str:
    return _AFFIRMING_NO.sub("the", rest) if "o " in rest else rest


def voices_doubt(text: str) -> bool:
    return _DOUBT.search(text) is not None


def is_explanation(rest: str, label: int, options: ChoiceOptions, *, is_letter: bool) -> bool:
    """Whether the rest only explains the choice that an answer begins with."""
    if not rest.strip() or (_EXPLAINS.match(rest) and not is_letter):
        return True
    sums_up = _SUMS_UP.match(rest) if is_letter else None
    if sums_up and not rest[sums_up.end() :].strip(" .\n"):
        return True
    if is_letter and EXPLAINED_BELOW.match(rest):
        return True
    if is_letter and (_ABOUT_IT.match(rest) or _TOO.match(rest) or _BREAKS_OFF.search(rest)):
        return False
    if not is_letter and (rest.startswith((" (", "\n")) or _COUNTS.match(rest)):
        return True
    repeats = any(named.label == label for named in options.named_at(rest, 0))
    says_what_it_is = is_letter and _SAYS_WHAT_A_LETTER_IS.match(rest)
    return bool(repeats or says_what_it_is or _EXPLAINS.match(rest)) and not _DENIAL.match(rest)


def is_taken_back(rest: str, label: int, options: ChoiceOptions) -> bool:
    """Whether the rest doubts a claim, judges it, or names another choice other than in passing."""
    if not rest:
        return False
    excludes = _EXCLUDES.match(rest)
    if excludes and options.names_in(excludes[0]):
        rest = rest[excludes.end() :]
    sums_up = _SUMS_UP.match(rest) if options.letters else None
    if sums_up and not any(name.label == label for name in options.names_in(sums_up[0])):
        rest = rest[sums_up.end() :]
    if allows_others_abroad(rest):
        return True
    others = OF_OTHERS_ABROAD.match(rest)
    if others and all(name.label != label for name in options.names_in(others[0])):
        rest = rest[others.end() :]
    form = options.forms[label]
    if form in NO and _AFFIRMS_NO.fullmatch(rest):
        return False
    if "?" in rest or _DOUBT.search(rest) or _CONDITION.match(rest) or _denied_abroad(rest):
        return True
    if form in NO and _CONFIRMS.match(rest) and not _DENIAL.match(rest):
        return True
    # "No. It is not so." agrees with itself, and "Yes. It is not so." does not.
    is_affirmed = form in YES and (_AFFIRMS.match(rest) or _DENYING_REASON.fullmatch(rest))
    if not is_affirmed and (
        (form not in NO and _VERDICT.match(rest)) or (form in YES and _DENIAL.match(rest))
    ):
        return True
    return _names_another(_NO_OF_NOUN.sub("a", rest) if is_affirmed else rest, label, options)


def _denied_abroad(rest: str) -> bool:
    sentence = re.match(_IN_NEXT_SENTENCE, rest)
    return bool(sentence and DENIAL_ABROAD.search(sentence[0]))


def _names_another(rest: str, label: int, options: ChoiceOptions) -> bool:
    group: list[Mention] = []
    names = options.names_in(rest)
    told = {*_told_texts(names, rest)}
    for name in names:
        if name in told or not options.counts_amid(name, rest):
            continue
        if group and _JOINED.fullmatch(rest[group[-1].end : name.start]):
            group.append(name)
            continue
        if _is_meant(group, rest, label):
            return True
        group = [name]
    return _is_meant(group, rest, label)


def _told_texts(names: list[Mention], rest: str) -> Iterator[Mention]:
    """Letters that say what they stand for, and that text: "A is London, and C is Berlin"."""
    for letter, text in pairwise(names):
        if letter.label == text.label and _STANDS_FOR.fullmatch(rest, letter.end, text.start):
            yield from (letter, text)


def _is_meant(group: list[Mention], rest: str, label: int) -> bool:
    """Whether choices that are named together are claimed, or the claimed one is denied among them."""
    labels = {name.label for name in group}
    if not labels - {label}:
        return False
    before, after = rest[max(0, group[0].start - _BEFORE) : group[0].start], rest[group[-1].end :][:_BEFORE]
    if DENIES_OTHER.search(before) or IS_WRONG.match(after):
        return label in labels
    is_told_next = _NEXT_OF_REASON.search(before) and _TELLS.match(after) and _IN_PASSING.match(after)
    if is_told_next and _REASON.match(rest):
        return False
    before = _MARKED.sub("", before)
    return bool(_CLAIMS_OTHER.search(before)) or not _IN_PASSING.match(after)
