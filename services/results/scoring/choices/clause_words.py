"""Words by which a clause denies, supposes, judges, or leads to an option; X stands for each option in it."""

import re
from itertools import pairwise

from services.results.scoring.answer_text import caseless
from services.results.scoring.answer_words import DENIAL_ABROAD, DENIAL_WORDS, any_of, is_own, stated_abroad

_CLAUSE_ENDS = re.compile(
    r";\s*|(?<=X): (?=\S)|\s-+\s(?=\w+ )"
    r"|(?<!anything)(?<!everything)(?<!all),? \(?(?=(?:but|while|whereas|although|though|because|since"
    r"|whilst|unlike|despite|instead of"
    r"|rather than|in contrast (?:to|with)|compared (?:to|with)|as opposed to)\b)"
    r"|, (?=(?:leaving|which (?:leaves|means|makes|gives)|as|so|thus|hence|therefore|not|and not|nor"
    r"|making|meaning|given"
    r"|and (?:so|thus|hence|therefore))\b)"
    r"|, (?=followed by\b)|\s(?=leaves (?:only |just |us with )?(?:(?:option|choice|answer) )?[(\[]?X)"
    r"|(?<=X)[)\]]? \(?(?=(?:(?:and )?not (?:the |an? |option )?[(\[]?X|than ))|\((?=not )",
    re.IGNORECASE,
)
# "Since x is even, the answer is B": the clause that leads in is no part of the one that follows.
_LEADS_IN = re.compile(
    r"\W*(?:although|though|while|since|because|as|given|despite|whereas|based on|considering|in|looking at"
    r"|after|with|when|between|of|among)\b(?P<reason>[^;:\n]*?),\s+"
    r"(?=(?:the|this|it|i|we|that|option|choice|answer|only|[A-J]|X+(?!\)?(?:,| and| or| nor))|my|he"
    r"|she|they)\b)",
    re.IGNORECASE,
)
_IF = re.compile(r"\bif\b", re.IGNORECASE)
_SUPPOSES_ALL = re.compile(
    r"\W*(?:if|suppose|assuming|unless|now|first|next|second|in case|you)\b", re.IGNORECASE
)
_SUPPOSED = any_of(
    r"if|unless|whether|could|might|may|maybe|perhaps|possibly|either|suppos\w+|assum\w+|imagine|almost",
    r"part(?:ial)?ly|vs\.?|versus|not sure|unsure|unclear|uncertain|torn|tempt\w*|at first|first glance"
    r"|initially|initial (?:thought|guess|answer)|original\w*|previous\w*|earlier|used to|last (?:year|time)"
    r"|my (?:first|second)|sometimes|only (?:if|when|for)",
    r"some (?:say|think|might)|students?|someone|textbook|the key|said|says|claim(?:s|ed)|argue\w*"
    r"|according to (?!the (?:passage|text|question))|mistaken\w*|misconception|trap|format|consider|examine"
    r"|(?:start|starting|begin|beginning|turning|moving|going on) (?:with|to|on to|by)"
    r"|look at|discuss|evaluate|assess|let(?:'s| us)(?! (?:go|pick|choose|say|select))|torn between"
    r"|between (?:the |option )?X|neither|nor"
    r"|wanted|thought|they|your|used",
    r"(?:second|third|next|2nd|3rd|other)(?:[- ]best| most| likeliest| choice| closest)|runner[- ]up"
    r"|close second",
    r"part [a-z]|opposite|grade:|(?<!fits )(?<!fit )better(?! (?:answer|option|choice|fit))|is out|minus|plus"
    r"|equally|also (?:correct|right|true)|tie|half[- ](?:correct|right|true)"
    r"|(?:other|another|previous|next|last|earlier) (?:question|problem|quiz|exercise)",
    before=r"\b",
    after=r"\b",
)
_SAY = "(?:be|say|choose|go|pick|lean|select|guess)"
# What an option would do: "a precursor (option A) would give two peaks".
_WOULD_DO = re.compile(
    rf"\bwould(?!(?: \w+)? {_SAY}\b)|\bwill\b(?! (?:settle|go|choose|pick|say|answer|select))"
    r"|\b(?:does|do)\b",
    re.IGNORECASE,
)
_AS_IF_IT_IS = re.compile(
    rf"(?<!people )(?<!many )(?<!most )(?<!some )(?<!others )(?<!students )(?<!they )(?<!you )\b(?:would|i'd)"
    rf"(?: \w+){{0,2}} {_SAY}\b|\bexample of\b",
    re.IGNORECASE,
)
_GUESSES = re.compile(r"\b(?:likely|probably)\b", re.IGNORECASE)
_CONCEDES = re.compile(r"[, (]*(?:although|though|even|while|whereas)\b", re.IGNORECASE)
_CONCLUDES = re.compile(
    r"(?:\A|[,;:.]\s*|\band |\bthat )\W*(?:so|thus|therefore|hence|consequently|accordingly|overall|finally"
    r"|ultimately|in (?:conclusion|summary|short)|to (?:conclude|summari[sz]e|sum up)|conclusion|final"
    r"|by elimination)\b|(?<![A-Z] )(?:[→⇒]|[=-]>)",
    re.IGNORECASE,
)
_JUDGES = re.compile(
    r"\b(?:answer|correct|right|best|is the one|true (?:statement|option|one)|settle on|closest|nearest"
    r"|choose"
    r"|select|pick|choice|conclude|go with|better (?:answer|option|choice|fit)"
    r"|opt for|diagnosis is|guess|lean\w*|i(?:'d| would) say|i think"
    r"|i believe|(?:most|more) (?:likely|probable|plausible|appropriate|accurate|important|suitable"
    r"|consistent"
    r"|logical|reasonable|common|effective|\w+ (?:cause|diagnosis|explanation|step)))\b",
    re.IGNORECASE,
)
_LEADS_TO = re.compile(
    r"\b(?:(?:classic|characteristic|typical|pathognomonic|diagnostic) (?:for|of)|points? (?:to"
    r"|towards?)|corresponds? to|matches|match|consistent with|leaves?|leaving"
    r"|explained by|explains?|describes|makes?|making|indicat\w+|suggest\w*|favou?rs?|supports?|equals|gives?"
    r"|yields?|known as|called|termed|fits?|leads? to|leading to|example of|job of|only X+|refers? to"
    r"|is the term|must be|has to be|due to|caused by)\b",
    re.IGNORECASE,
)
_DENIES = any_of(
    r"rul(?:e|es|ed|ing) out|exclud\w+|discard\w*|reject\w*|invalid|irrelevant|unrelated|unsupported"
    r"|inconsistent|implausible|less",
    r"(?:anything|everything|all) but|unlike|despite|instead|than|without|contradict\w*|rather|fails?"
    r"|lacks?|compared|contrast|opposed"
    r"|followed by|eliminating|elimination of|(?:cross|strik)(?:ing|ed)? out|dismiss\w*"
    r"|untrue|mistakes?|traps?|distractors?|misconceptions?|pitfalls?|too|impossible|other than"
    r"|odd one|improbable|insufficient|weak\w*",
    before=r"\b",
    after=r"\b",
)
_PERHAPS_ABROAD = any_of(
    r"\b(?:может|возможно|podría|puede|könnte|vielleicht|pourrait|peut|potrebbe|forse|poderia|talvez"
    r"|misschien"
    r"|olabilir|quizás?)\b|可以|可能|未必|也许|或许|かもしれ|수도 있"
)
# What stands in brackets denies nothing: "the crust (less than 1%)".
_IN_BRACKETS = re.compile(r"\((?!not\b)[^()X]*\)", re.IGNORECASE)
_AROUND_OPTION = " :*(\"'"


def clauses(sentence: str) -> list[tuple[int, int]]:
    """Where the clauses of a sentence begin and end."""
    lead = _LEADS_IN.match(sentence)
    start = lead.end() if lead and not _IF.search(lead["reason"]) else 0
    bounds = [start, *(found.end() for found in _CLAUSE_ENDS.finditer(sentence, start)), len(sentence)]
    return [*pairwise(bounds)]


def without_brackets(clause: str) -> str:
    """As long as before."""
    return _IN_BRACKETS.sub(lambda found: " " * len(found[0]), clause) if "(" in clause else clause


def is_denial(clause: str) -> bool:
    return bool(DENIAL_WORDS.search(clause) or _DENIES.search(clause) or DENIAL_ABROAD.search(clause))


def supposes_all(sentence: str) -> bool:
    """Whether the whole sentence is about a case, a next step, or a reader."""
    return _SUPPOSES_ALL.match(sentence) is not None


def is_supposition(clause: str, before: str) -> bool:
    """Whether a clause only thinks of its options; `before`: its words before the first one."""
    if _WOULD_DO.search(clause) or _SUPPOSED.search(clause):
        return True
    return (" would be " in clause and not judges(clause)) or not is_own(
        _AS_IF_IT_IS.sub("", before), leads_in=False
    )


def is_guess(clauses: str) -> bool:
    return _GUESSES.search(clauses) is not None


def concedes(clause: str) -> bool:
    return _CONCEDES.match(clause) is not None


def concludes(clause: str) -> bool:
    return _CONCLUDES.search(clause) is not None


def judges(clause: str) -> bool:
    return _JUDGES.search(clause) is not None


def leads_to_option(clause: str) -> bool:
    return _LEADS_TO.search(clause) is not None or concludes(clause)


def judges_abroad(clause: str) -> bool:
    """Whether words of another language beside an option say that it is the answer."""
    return not _PERHAPS_ABROAD.search(clause) and any(
        clause[found.end() :].lstrip(_AROUND_OPTION).startswith("X") or "X" in clause[: found.start()]
        for found in stated_abroad(caseless(clause))
    )
