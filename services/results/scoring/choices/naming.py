"""Where an answer names its options, amid letters and words that only look like them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.results.scoring.answer_text import Mention, caseless, mentions
from services.results.scoring.choices.options import ChoiceOptions, is_of_another_number

_LETTER = re.compile(
    r"(?<![A-Za-z0-9\u00c0-\u024f'^{\\/+=&°∧∨∪∩¬-])(?<!\w [<>≤≥∧∨∪∩] )"
    r"(?P<open>[(\[]?)(?P<letter>[A-Z])(?P<close>[)\]]?)"
    r"(?![A-Za-z0-9\u00c0-\u024f'^/+&∧∨∪∩]|-\w| ?[=<](?!>))"
)
_OF_OPTION = re.compile(
    r"\b(?:options?|choices?|answers?|letter|alternative)(?: (?:is|would be|must be|should be))?:?\s*\Z",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"\s*(?:\Z|[.,;:!?)\]\n(，。、；：）]|-\s|[=-]>|[→⇒\u3000-\u9fff\uac00-\ud7a3\uff00-\uffef]"
    r"|(?:o|ou|oder|of|или|и|y|e|et|und|veya|ve|atau|to|through|with|&|/) [A-J]\b"
    r"|(?:matches|fits)[.!]?(?:\Z|\n)|(?:correct|right)\b(?! \w)"
    r"|(?:is|was|are|as|because|since|best|it is|therefore|which|would|has|must|seems|fits|works|and|or|for"
    r"|most|indeed|correctly|accurately|here|the|die|der|das|la|le|el|il|de|het|ist|est|es|è|é)\b)",
    re.IGNORECASE,
)
# Words before a letter that is an option; others say which thing it names, as in "matrix A".
_MAY_LEAD = re.compile(
    r"(?:\A|[^\x00-\x7f]|[.,:;!?\n(\[>#*|/→$&\"-]|\b(?:is|are|was|be|it's|that's|that|this|so|thus|hence"
    r"|therefore|then|only|choose|chose|pick|select|selecting|choosing|picking|with|for|say|answers?|as|to"
    r"|towards?|leaves?|leaving|left|and|or|nor|not|makes|making|probably|definitely|certainly|surely|likely"
    r"|clearly|still|also|fact|have|because|since|but|while|though|although|between|both|either|neither|than|eliminate"
    r"|exclude|rejects?|out|except|think|believe|guess|prefer|take|mark|letter|remains|over|through|like|of|veya|ve"
    r"|или|и|atau|es|est|è|é|ist|het|la|el|o|ou|oder|y|e|und|et|op|die|der|lautet|là|adalah|är|er|cevap|option"
    r"|antwort|lettre|letra|lettera))\s*[(\[\"'*$]*\Z",
    re.IGNORECASE,
)
_OF_A_GENUS = re.compile(r"\. [a-z]")
_PRONOUN = re.compile(r" (?!is\b|and\b|or\b|are\b)[a-z]|'")
_THING = re.compile(
    r"\b(?:Dr|Mr|Mrs|Ms|Prof|St|vitamins?|hepatitis|type|group|class|grade|influenza|factor|protein"
    r"|immunoglobulin|cytochrome|statements?|scenario|step|point|stage|phase|angle|side|path|person|company"
    r"|case|set|figure)\.? \(?\Z",
    re.IGNORECASE,
)
_NUMBERED_THING = re.compile(
    r"\b(?:statement|step|option|choice|answer|no\.|case|question|figure|part|equation|scenario|number|type"
    r"|day)s? \(?\Z|\(\Z",
    re.IGNORECASE,
)
# As in "London Bridge", and "East Berlin".
_NAME_GOES_ON = re.compile(r" [A-Z]\w+")
_NAME_BEGAN = re.compile(r"(?:[\w,;] (?!The )[A-Z][a-z]+|\b(?:East|West|North|South|New|Old|Great)) \Z")
# Forms have lost the brackets at their ends.
_CLOSING = re.compile(r"[)\]}]*")
_JOINS = re.compile(
    r"[\s.,:;()\[\]$'=-]{0,6}(?:the |an? |(?:which is |i\.e\. )?(?:option |choice |answer ))?\(?",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"[.:\]]{1,2} ?|[:.]? - ?| ")
_LINE_BEGINS = re.compile(r"(?:\A|\n)[\s>#*•(-]*\Z")
_ENDS_THERE = re.compile(r"\s*(?:[.,;:!?)\n]|\Z)")
# Words of verdicts and of every text.
_PLAIN_WORDS = frozenset(
    {"yes", "no", "true", "false", "none", "both", "neither", "all", "maybe", "positive", "negative"}
)
_SAME_LETTERS = str.maketrans("-öäüéèïçñ", " oaueeicn")
# Characters before a name in which words that tell what it names are looked for.
_BEFORE = 24
# Characters of a text that are enough to mean nothing else.
_LONG = 4
CONFLICT = -1


@dataclass(frozen=True, slots=True)
class Name:
    """`label`: `CONFLICT` where a letter stands beside the text of another option.

    `is_marked`: as in "option B", "(B)", and "B. Paris". `is_text`: its text names it, maybe with its letter.
    """

    start: int
    end: int
    label: int
    is_marked: bool
    is_text: bool

    def is_long_text(self, text: str) -> bool:
        return self.is_text and self.end - self.start >= _LONG and not text[self.start].isdigit()


def names_of(text: str, options: ChoiceOptions) -> list[Name]:
    """In order; a letter and its text, side by side, are one."""
    worded = [] if options.are_letters else _worded(text, options)
    named = [*_lettered(text, worded, options)]
    for one in worded:
        closing = _CLOSING.match(text, one.end)
        if _is_meant(text, one):
            named.append(
                Name(
                    one.start, closing.end() if closing else one.end, one.label, is_marked=False, is_text=True
                )
            )
    return _joined(sorted(named, key=lambda name: name.start), text)


def _worded(text: str, options: ChoiceOptions) -> list[Mention]:
    """Also in the plural: "ribosomes" for "ribosome"."""
    forms = [*map(_told_apart, options.forms)]
    plurals = [f"{form}s" if form.isalpha() and len(form) > _LONG else "" for form in forms]
    found = mentions(_folded(text), [*forms, *plurals])
    return [Mention(one.start, one.end, one.label % len(forms)) for one in found]


def is_followed_as_letter(text: str, end: int) -> bool:
    """Whether what follows a letter lets it be an option: not "B vitamins"."""
    return _GOES_ON.match(text, end) is not None


def _folded(text: str) -> str:
    return caseless(text).translate(_SAME_LETTERS)


def _told_apart(form: str) -> str:
    return "" if form in _PLAIN_WORDS or (len(form) < 2 and not form.isdigit()) else _folded(form)


def _lettered(text: str, worded: list[Mention], options: ChoiceOptions) -> Iterator[Name]:
    starts = {one.start for one in worded}
    labels_at = {one.start: one.label for one in worded}
    inside = {at for one in worded for at in range(one.start, one.end)}
    for letter in _LETTER.finditer(text):
        label = options.letters.get(letter["letter"])
        if label is None or letter.start() in inside:
            continue
        before = text[max(0, letter.start() - _BEFORE) : letter.start()]
        is_enclosed = bool(letter["open"] and letter["close"])
        is_marked = is_enclosed or _OF_OPTION.search(before) is not None
        has_text = not starts.isdisjoint((letter.end() + 1, letter.end() + 2))
        is_with_text = labels_at.keys() & {letter.end() + 2} and labels_at[letter.end() + 2] == label
        is_of_a_genus = not has_text and _OF_A_GENUS.match(text, letter.end())
        if _THING.search(before) or (is_of_a_genus and not _LINE_BEGINS.search(before)):
            continue
        if not (is_marked or is_with_text) and (
            not _MAY_LEAD.search(before) or (letter["letter"] == "I" and _PRONOUN.match(text, letter.end()))
        ):
            continue
        goes_on = is_enclosed or is_followed_as_letter(text, letter.end())
        # "A" is an article as well.
        if goes_on or letter["letter"] != "A":
            yield Name(letter.start(), letter.end(), label, is_marked and goes_on, is_text=False)


def _is_meant(text: str, one: Mention) -> bool:
    before = text[max(0, one.start - _BEFORE) : one.start]
    if text[one.start].isalpha():
        return not (_NAME_GOES_ON.match(text, one.end) or _NAME_BEGAN.search(before))
    if is_of_another_number(text, one.start):
        return False
    return not (text[one.start].isdigit() and _NUMBERED_THING.search(before))


def _joined(names: list[Name], text: str) -> list[Name]:
    joined: list[Name] = []
    for name in names:
        last = joined[-1] if joined else None
        if last and _is_of_one(text, last, name):
            joined[-1] = Name(last.start, name.end, name.label, is_marked=True, is_text=True)
        elif last and not last.is_text and name.is_text and _is_beside(text, last, name):
            joined[-1] = Name(last.start, name.end, CONFLICT, is_marked=True, is_text=True)
        else:
            joined.append(name)
    return joined


def _is_of_one(text: str, first: Name, second: Name) -> bool:
    return (
        first.label == second.label
        and first.is_text != second.is_text
        and "\n" not in text[first.end : second.start]
        and _JOINS.fullmatch(text, first.end, second.start) is not None
    )


def _is_beside(text: str, letter: Name, name: Name) -> bool:
    """Whether a text is said to be what the letter before it stands for."""
    if not _BESIDE.fullmatch(text, letter.end, name.start):
        return False
    is_first = _LINE_BEGINS.search(text[max(0, letter.start - _BEFORE) : letter.start]) is not None
    return is_first or _ENDS_THERE.match(text, name.end) is not None
