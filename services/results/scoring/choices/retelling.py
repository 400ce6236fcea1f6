"""A choice that an answer retells: the words of its text in another form, as "to fight infections"."""

import re
from collections.abc import Sequence

from services.results.scoring.answer_words import DENIAL_ABROAD, is_own
from services.results.scoring.choices.doubts import voices_doubt
from services.results.scoring.choices.options import ChoiceOptions

# Longer answers retell more than a choice.
_MAX_CHARACTERS = 300
_MAX_OTHER_WORDS = 6
# A letter that ends a name belongs to its number, as in "GPT-4o".
_WORD = re.compile(r"\d+(?:[.,]\d+)*[^\W\d_](?!\w)|\d+(?:[.,]\d+)*|[^\W\d_]+(?:'t)?")
_SENTENCE_ENDS = re.compile(r"[.!?;](?=\s)|\n")
_FEW = 2
# "Rather than carrying oxygen, it fights infections", and "the answer is that it fights infections".
_NOT_THIS = re.compile(
    r"\W*(?:(?:rather than|instead of|unlike|not) [^,]{1,80}, (?:but )?"
    r"|(?:it|they|he|she|this) (?:\w+ not|\w+n't) [^;,.]{1,80}[;,] (?:but |rather |instead )?(?=(?:it"
    r"|they|he|she|this)\b)"
    r"|(?:(?:so|thus|therefore),? )?(?:the )?(?:(?:correct|right|best) )?(?:answer|option|choice) (?:is"
    r"|would be)(?: that)?:? "
    r"|(?:according to|as stated in) the (?:text|passage|article|document), "
    r"|the (?:text|passage|article|document|author) (?:says|states|mentions|indicates) that )",
    re.IGNORECASE,
)
_REPLACED = re.compile(r"\bnot (?!only|just|merely)[^.,;]{1,60}?,? but (?:rather )?", re.IGNORECASE)
_SUPPOSES = re.compile(r"\b(?:if|unless|when|provided|whether)\b", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
# "A" is an article there.
_OF_A_NOUN = re.compile(r" (?!(?:is|are|was|were|has|would|seems|and|or|says|because|since|as)\b)[a-z]+")
# They say nothing by themselves.
_PLAIN = frozenset(
    {
        "a",
        "an",
        "the",
        "it",
        "s",
        "its",
        "they",
        "them",
        "their",
        "he",
        "she",
        "his",
        "her",
        "we",
        "our",
        "you",
        "your",
    }
    | {
        "this",
        "that",
        "these",
        "those",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "being",
        "am",
        "has",
        "have",
    }
    | {"had", "do", "does", "did", "will", "would", "can", "could", "to", "of", "and", "by", "so", "as"}
)
_PRONOUN = re.compile(r"\W*(?:it|they|he|she|we)\b", re.IGNORECASE)
_DENIES = frozenset({"not", "no", "never", "none", "neither", "nor", "without", "cannot", "only", "except"})
_ENDINGS = ("ing", "ies", "ied", "es", "ed", "s")
_LAST_LETTERS = ("e", "y")
_SHORTEST = 3
_VOWELS = "aeiou"


def retold_choice(answer: str, options: ChoiceOptions) -> int | None:
    """The only choice whose words the one sentence of an answer has, in their order, and none of another."""
    if options.are_letters or len(answer) > _MAX_CHARACTERS:
        return None
    not_this = _NOT_THIS.match(answer)
    answer = answer[not_this.end() if not_this else 0 :].strip()
    answer = _REPLACED.sub("", answer)
    if _SUPPOSES.search(answer):
        return None
    if _SENTENCE_ENDS.search(answer) or "?" in answer:
        return None
    told = _stems(answer)
    texts = [_stems(form) for form in options.forms]
    if not told or not all(texts):
        return None
    common = set.intersection(*map(set, texts))
    starts = _PRONOUN.match(answer) is not None
    labels = [
        label
        for label, text in enumerate(texts)
        if _retells(told, text, common)
        or (starts and len(text) > _FEW and _retells(told, _without_subject(text), common))
    ]
    if len(labels) != 1:
        return None
    [label] = labels
    others = set[str]().union(*map(set, texts)) - {*texts[label]}
    named = {
        name.label
        for name in options.names_in(answer)
        if not (answer[name.start : name.end] == "A" and _OF_A_NOUN.match(answer, name.end))
    }
    # "I or II" is not "I and II".
    if " or " in answer and " or " not in options.forms[label]:
        return None
    is_of_one = others.isdisjoint(told) and named <= {label}
    return label if is_of_one and _is_asserted(answer, texts[label]) else None


def _without_subject(text: Sequence[str]) -> Sequence[str]:
    """For which a pronoun may stand."""
    return text if _weighty(text[:1], has_numbers=True) else text[1:]


def _retells(told: Sequence[str], text: Sequence[str], common: set[str]) -> bool:
    own = [stem for stem in text if stem not in common]
    has_numbers = any(map(_DIGIT.search, text))
    if (
        _weighty(told, has_numbers=has_numbers) != _weighty(text, has_numbers=True)
        or len(told) > len(text) + _MAX_OTHER_WORDS
    ):
        return False
    words = [stem for stem in own if not _DIGIT.search(stem)]
    if len(words) < _FEW:
        # One word may be a part of anything.
        if words and len(text) >= _FEW and told[: len(text)] == text:
            return True
        return bool(words) and [stem for stem in told if stem not in common] == own
    return _has_in_order(told, own)


def _weighty(stems: Sequence[str], *, has_numbers: bool) -> list[str]:
    """Words that deny, and numbers where the choice has some: both texts have the same."""
    return [
        stem
        for stem in stems
        if stem in _DENIES or stem.endswith("n't") or (has_numbers and _DIGIT.search(stem))
    ]


def _has_in_order(told: Sequence[str], wanted: Sequence[str]) -> bool:
    rest = iter(told)
    return all(stem in rest for stem in wanted)


def _is_asserted(answer: str, text: Sequence[str]) -> bool:
    first = next((found.start() for found in _WORD.finditer(answer) if _stem(found[0]) in text), 0)
    return is_own(answer[:first], leads_in=False) and not (
        voices_doubt(answer) or DENIAL_ABROAD.search(answer)
    )


def _stems(text: str) -> list[str]:
    words = (found[0].casefold() for found in _WORD.finditer(text))
    return [_stem(word) for word in words if word not in _PLAIN]


def _stem(word: str) -> str:
    word = word.casefold()
    if word in _DENIES or word[0].isdigit():
        return word
    for endings in (_ENDINGS, _LAST_LETTERS):
        ending = next(
            (one for one in endings if word.endswith(one) and len(word) - len(one) >= _SHORTEST), ""
        )
        word = word.removesuffix(ending) if not word.endswith("ss") else word
    is_doubled = len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in _VOWELS
    return word[:-1] if is_doubled else word
