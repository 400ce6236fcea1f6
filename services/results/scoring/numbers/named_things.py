"""Numbers that are part of a name or of a date: "a Boeing 747", "ISO 9001", "Door 2", "May 17"."""

import re
from collections.abc import Sequence

from services.results.scoring.numbers.number_tokens import DIGIT

_REACH = 60
# With more of them, a text in capitals is a sentence.
_FEW_SPACES = 2
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    "|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DATED = re.compile(rf"{_MONTH}\.?")
_MONTH_BEHIND = re.compile(rf"\d\d? (?:of )?{_MONTH}\b(?!')")
_THINGS = frozenset(
    (
        *("type", "group", "player", "worker", "employee", "student", "machine", "box", "bag", "door"),
        *("store", "shop", "plan", "stage", "class", "round", "task", "channel", "seat", "aisle", "row"),
        *("pier", "terminal", "highway", "route", "interstate", "freeway", "building", "house"),
        *("apartment", "suite", "theorem", "lemma", "corollary", "proposition", "definition", "appendix"),
        *("clause", "rule", "paragraph", "amendment", "scenario", "method", "approach", "strategy"),
        *("candidate", "patient", "war", "season", "episode", "psalm", "covid", "floor", "track", "book"),
    )
)
# "Each box 12", "the box 12 inches wide" and "they can seat 12" count.
_COUNT_OR_DO = frozenset(
    (
        *("each", "per", "every", "the", "a", "one", "his", "her", "their", "of"),
        *("to", "can", "will", "they", "we", "could", "must"),
    )
)
_QUARTER = re.compile(r"Q[1-4],? (?:of )?(?:19|20)\d\d\b")
_ACRONYM = re.compile(r"(?<![\w.])[A-Z]{2,6} \Z")
_PROPER = re.compile(
    r"\b(?:[Ii]s|[Ww]as|[Aa]re|[Ww]ere|[Tt]he|[Aa]n?|called|named|uses?|using) "
    r"(?:[a-z]?[A-Z][\w'’-]* ){1,3}\Z"
)
# A text that is a name as a whole: "Boeing 747", "The Apollo 11".
_WHOLE = re.compile(r"\W*(?:The )?(?P<name>(?:[a-z]?[A-Z]\w[\w'’-]* ){1,3})\d+\W*")
# Words that a number follows as their value, and words that lead to one.
_NO_NAMES = frozenset(
    (
        *(
            "profit",
            "cost",
            "price",
            "age",
            "speed",
            "distance",
            "length",
            "width",
            "height",
            "depth",
            "area",
        ),
        *("volume", "time", "mean", "median", "mode", "average", "difference", "product", "ratio", "percent"),
        *("percentage", "probability", "remainder", "quotient", "perimeter", "radius", "diameter", "weight"),
        *("mass", "temperature", "amount", "balance", "change", "salary", "income", "revenue", "tax", "rate"),
        *("discount", "interest", "days", "hours", "minutes", "seconds", "weeks", "months", "years", "steps"),
        *("maximum", "minimum", "max", "min", "range", "slope", "degree", "rank", "power", "output", "angle"),
        *(
            "energy",
            "force",
            "people",
            "loss",
            "gain",
            "left",
            "remaining",
            "output",
            "return",
            "yes",
            "no",
            "it",
        ),
        *(
            "hence",
            "thus",
            "so",
            "therefore",
            "then",
            "finally",
            "in",
            "on",
            "at",
            "by",
            "for",
            "from",
            "and",
        ),
        *("probably", "likely", "roughly", "approximately", "nearly", "precisely", "certainly"),
        *("we", "get", "equals", "that", "this", "not", "maybe", "perhaps", "option", "there", "has", "have"),
        *("solution", "integer", "digit", "digits", "percentile", "variance", "frequency", "population"),
        *("circumference", "payment", "side", "correct", "respuesta", "resultado", "resposta", "ergebnis"),
        *("antwort", "risposta", "risultato", "antwoord", "jawaban", "cevap", "wynik", "lösung"),
    )
)
# "It's 42" is no name, and "It's Boeing 747" has one.
_IS_SHORT = re.compile(r"(?:it|that|there|here|s?he|who)'s|(?:we|they|you)'re", re.IGNORECASE)
# Of a thing that is counted: "Apples 12", but not "Windows 11".
_MANY = re.compile(r"(?!Windows|Mars|[Vv]enus|Paris|Series|Texas)[A-Z][a-z]+(?<![usi])s")
# What stands before a number that counts; also currencies and what is measured.
_COUNTING = re.compile(
    r"(?:is|are|was|be|of|equals|has|have|gets|makes|total|answer|ans|sum|result|value|number|score|count"
    r"|final|approximately|about|exactly|only|around|roughly|just|nearly|almost|precisely|minus|negative"
    r"|plus|so|thus|rs|dollars?|euros?|rupees?|pounds?|yen|pesos?|lcm|gcd|hcf|gcf|iq|bmi|auc|rmse|mse|mae"
    r"|roi|gdp|ph|usd|eur|gbp|inr|jpy|cny|rmb|aud|cad|nzd|hkd|sgd|chf|sek|nok|dkk|pln|czk|huf|rub|try|brl"
    r"|mxn|ars|clp|cop|pen|zar|ngn|kes|ghs|egp|aed|sar|qar|kwd|pkr|bdt|lkr|npr|idr|myr|rm|thb|vnd|php|krw"
    r"|twd|ntd|tl|us|uah|ils)",
    re.IGNORECASE,
)
# A name ends its clause, or does something; behind a count comes what is counted.
_NAME_ENDS = re.compile(
    r"(?:\d[\d.,]*)?\d(?!\w)[\"')\]]*(?:[.,;:!?]|\s*\Z|\s(?:is|was|has|had|can|will|would|does|did|and|or|in"
    r"|on|at|to|by|for|from|which|that|because|since|as|wins?|won|holds?|gets?|got|lands?|landed|costs?|makes?"
    r"|produces?|weighs?|flew|says?|fixed|works?)\b)"
)
_MEMBER = re.compile(r"\d+-(?!yard line)[a-z]{3,}")


def is_of_a_name(text: str, start: int = 0) -> bool:
    """Whether the first number from there on is part of a name, by the words around it."""
    number = DIGIT.search(text, start)
    if number is None or "=" in text:
        return False
    before, at = text[max(0, number.start() - _REACH) : number.start()], number.start()
    if before.endswith(("the ", "The ")) and _MEMBER.match(text, at):
        # "The 17-year-old" is somebody; "a 12-foot board" is a length.
        return True
    if _MONTH_BEHIND.match(text, at) or _QUARTER.match(text, at - 1):
        return True
    if not before.endswith(" "):
        return False
    *earlier, word = before[:-1].rsplit(" ", 2)[-2:]
    if _DATED.fullmatch(word) or word.casefold() == "type":
        return True
    return _NAME_ENDS.match(text, at) is not None and _is_called(before, word, earlier, text)


def _is_called(before: str, word: str, earlier: Sequence[str], text: str) -> bool:
    """`word` stands before the number, and `earlier` before that."""
    if word.casefold() in _THINGS:
        return not earlier or earlier[0].casefold() not in _COUNT_OR_DO
    if not word[1:].isalnum() or word.islower() or _COUNTING.fullmatch(word):
        return False
    if text.isupper() and text.count(" ") > _FEW_SPACES:
        return False
    return _ACRONYM.search(before) is not None or _PROPER.search(before) is not None


def is_a_name(text: str) -> bool:
    """Whether a whole answer is a name with its number."""
    found = _WHOLE.fullmatch(text) if len(text) <= _REACH else None
    if found is None:
        return False
    words = found["name"].split()
    if _MANY.fullmatch(words[-1]) or _IS_SHORT.fullmatch(words[-1]) or not words[-1].isascii():
        return False
    return not any(one.casefold() in _NO_NAMES or _COUNTING.fullmatch(one) for one in words)
