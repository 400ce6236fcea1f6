"""Which options the sentences of an answer speak for, where no form of a claim is known.

A name of an option is evidence only by the clause that it stands in: it is denied there, supposed, one of
several, or asserted, and asserted with more weight where the clause says that it concludes or judges.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum

from services.results.scoring.choices import clause_words
from services.results.scoring.choices.doubts import voices_doubt
from services.results.scoring.choices.naming import CONFLICT, Name, is_followed_as_letter, names_of
from services.results.scoring.choices.options import ChoiceOptions

_SENTENCE_ENDS = re.compile(
    r"\s*\n\s*|(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bvs)(?<!\bSt)(?<!e\.g)(?<!i\.e)[.!](?=\s)\s*"
    r"|[?](?=\s|\Z)\s*|[。！？]\s*"
)
_ENDS = " \n\t.!:)]}$*'\""
# Words before a text that ends its clause as an answer does: "It is moved by runoff".
_LEADS = re.compile(
    r"(?:\b(?:is|are|was|were|be|by|through|to|as|called|that|with|of|in|from|approximately|about|the|an?"
    r"|equals|gives|choose|select|pick|option|choice|answer|[a-z]'s)|[=≈:→,-]|\A)\W*\Z",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"\([^()]*\)")
_ARTICLE = re.compile(r"\W*(?:the |an? )?", re.IGNORECASE)
_VERB = re.compile(r"(?: \([^()]*\))? (?:is|are|was|were|has|have|can|[a-z]{2,}(?:s|ed))\b")
_TURNS = re.compile(r"\b(?:but|however)\b|\bthough\W*\Z", re.IGNORECASE)
_BEFORE_ANSWER = re.compile(
    r"[*_#>(\s]*(?:(?:the )?(?:correct )?(?:option|choice|answer)\s)?\W{0,3}", re.IGNORECASE
)
_BEHIND_ANSWER = re.compile(r"\s*(?:\Z|\n|[.!,;](?!\d)|(?:because|since|as|for)\b)")
_ON_A_LINE = re.compile(r"[.)*_\]\s]*\n")
_BEFORE_ITEM = re.compile(r"[\s>#*-]*(?:option |choice |statement )?", re.IGNORECASE)
_BEHIND_ITEM = re.compile(r":|\) | - |- ")


class Weight(IntEnum):
    """How much a sentence speaks for an option."""

    MENTIONED = 0
    NAMED = 1
    CONCLUDED = 2
    CLAIMED = 3


@dataclass(frozen=True, slots=True)
class Sentence:
    """`labels`: the options that it speaks for. `lettered`: those that it names by their letter alone.

    `is_open`: it concludes, and not which one. `is_told`: the text of an option stands where answers stand,
    `is_at_the_end`: nothing follows it. `end`: where the sentence ends in the answer.
    """

    text: str
    end: int
    labels: frozenset[int] = frozenset()
    denied: frozenset[int] = frozenset()
    lettered: frozenset[int] = frozenset()
    weight: Weight = Weight.MENTIONED
    is_open: bool = False
    is_told: bool = False
    is_at_the_end: bool = False


@dataclass(slots=True)
class _Found:
    labels: set[int] = field(default_factory=set)
    denied: set[int] = field(default_factory=set)
    lettered: set[int] = field(default_factory=set)
    weight: Weight = Weight.MENTIONED
    is_open: bool = False
    is_told: bool = False
    is_at_the_end: bool = False

    def add(self, labels: set[int], weight: Weight) -> None:
        if weight > self.weight:
            self.labels, self.weight = labels, weight
        elif weight == self.weight:
            self.labels |= labels


def sentences(text: str, options: ChoiceOptions, *, is_whole: bool = True) -> Iterator[Sentence]:
    """`is_whole`: the answer begins with this text."""
    names = names_of(text, options)
    start = first = 0
    for found in (*_SENTENCE_ENDS.finditer(text), None):
        end = found.end() if found else len(text)
        after = first
        while after < len(names) and names[after].start < end:
            after += 1
        if found and after > first and end <= names[after - 1].end:
            # The letter of an option and its text: "B. Paris".
            continue
        inside = [
            replace(name, start=name.start - start, end=name.end - start) for name in names[first:after]
        ]
        first = after
        sentence = text[start:end]
        if sentence.strip(_ENDS):
            is_asked = found is not None and "?" in found[0]
            yield (
                Sentence(sentence, end)
                if is_asked or not inside
                else _weighed(sentence, end, inside, is_first=is_whole and start == 0)
            )
        start = end


def _weighed(sentence: str, end: int, names: list[Name], *, is_first: bool) -> Sentence:
    found = _evidence(sentence, names, is_first=is_first)
    first, last = names[0], names[-1]
    begins = is_first and found.labels == {first.label} and _begins(sentence, first)
    if _TURNS.search(sentence, last.end):
        found.is_open |= found.weight is Weight.CLAIMED
        found.labels.clear()
    elif begins and found.weight < Weight.CLAIMED:
        is_plain = first.is_marked or not first.is_text
        found.weight = Weight.CLAIMED if is_plain else max(found.weight, Weight.CONCLUDED)
    is_denied = bool(found.denied) and not found.labels and clause_words.concludes(sentence)
    return Sentence(
        sentence,
        end,
        frozenset(found.labels),
        frozenset(found.denied),
        frozenset(found.lettered),
        found.weight,
        found.is_open or is_denied or CONFLICT in found.labels,
        found.is_told,
        found.is_at_the_end,
    )


def _evidence(sentence: str, names: list[Name], *, is_first: bool) -> _Found:
    found = _Found()
    blank = _without(sentence, names)
    is_supposed = clause_words.supposes_all(blank)
    for start, stop in clause_words.clauses(blank):
        inside = [name for name in names if start <= name.start < stop and not _is_item(blank, name)]
        if not inside:
            continue
        clause = clause_words.without_brackets(blank[start:stop])
        labels = {name.label for name in inside}
        if clause_words.is_denial(clause):
            found.denied |= labels
        elif is_supposed or clause_words.is_supposition(clause, clause[: inside[0].start - start]):
            found.is_open |= clause_words.judges(clause)
        elif found.labels and clause_words.concedes(clause) and clause_words.is_guess(blank[:start]):
            # "B is likely correct, though C has merit."
            found.is_open = True
            found.labels.clear()
        elif clause_words.judges(clause) or not clause_words.concedes(clause):
            found.add(labels, _weight(sentence, clause, inside))
            found.lettered |= {name.label for name in inside if not name.is_text}
            found.is_told |= any(_is_told(sentence, name, stop, is_first=is_first) for name in inside)
            found.is_at_the_end = not blank[inside[-1].end :].strip(_ENDS)
    return found


def _without(sentence: str, names: list[Name]) -> str:
    """The sentence with X for what names an option, as long as before."""
    parts, at = [], 0
    for name in names:
        parts += [sentence[at : name.start], "X" * (name.end - name.start)]
        at = name.end
    return "".join([*parts, sentence[at:]])


def _weight(sentence: str, clause: str, names: list[Name]) -> Weight:
    if any(_is_plain(sentence, name) for name in names):
        if clause_words.judges(clause) or clause_words.judges_abroad(clause):
            return Weight.CLAIMED
        if clause_words.leads_to_option(clause):
            return Weight.CONCLUDED
    return Weight.NAMED if any(name.is_marked for name in names) else Weight.MENTIONED


def _is_plain(sentence: str, name: Name) -> bool:
    """Whether a name can mean nothing but its option."""
    if name.is_marked or name.is_long_text(sentence):
        return True
    if not name.is_text:
        return is_followed_as_letter(sentence, name.end)
    return not sentence[name.end :].strip(_ENDS) and _LEADS.search(sentence[: name.start]) is not None


def _is_told(sentence: str, name: Name, stop: int, *, is_first: bool) -> bool:
    if not name.is_text:
        return False
    before, behind = sentence[: name.start], sentence[name.end : stop]
    if (
        not _BRACKETED.sub("", behind).strip(_ENDS + "(,")
        and _LEADS.search(before)
        and len(before.split()) > 1
    ):
        return True
    is_alone = is_first and ";" not in sentence and name.is_long_text(sentence)
    return bool(is_alone and _ARTICLE.fullmatch(before) and _VERB.match(behind))


def _begins(sentence: str, name: Name) -> bool:
    """Whether an answer begins with an option: on a line of its own, with its text, or with a reason."""
    if not _BEFORE_ANSWER.fullmatch(sentence, 0, name.start) or sentence[name.start].isdigit():
        return False
    if not name.is_text:
        return _ON_A_LINE.match(sentence, name.end) is not None
    has_reason = _BEHIND_ANSWER.match(sentence, name.end) is not None
    return name.is_marked or (has_reason and not voices_doubt(sentence[name.end :]))


def _is_item(blank: str, name: Name) -> bool:
    """As "Option C: while ..." begins an analysis of it."""
    is_marked = _BEHIND_ITEM.match(blank, name.end) is not None
    has_more = bool(blank[name.end :].strip(_ENDS + "-"))
    return is_marked and has_more and _BEFORE_ITEM.fullmatch(blank, 0, name.start) is not None
