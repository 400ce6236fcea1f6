"""Numbers that a sentence only guesses or supposes, or that are not reached."""

import re

from services.results.scoring.answer_words import has_one_of

_GUESSES = re.compile(
    r"\b(?:maybe|perhaps|possibly) (?:about |around |it's |it is )?\S?\d"
    r"|(?:\A\W*|\b(?:it|that|this|but|or) )(?:could|might|may) (?:also )?be (?:about |around )?\S?\d"
    r"|\b(?:give or take|plus or minus) \S?\d"
    r"|\b(?:i doubt|i (?:don't|do not) think|anything but"
    r"|nobody|no one|would have (?:said|guessed|thought))\b[^.,;:=]*\d"
    r"|\d\S* (?:[a-z]+ )?(?:is|are|was|were|would be|seems?) (?:way |far |much )?too [a-z]+\b"
    r"|\A\W*(?:suppose|imagine|if (?:it|that|this) (?:were|was))\b"
    r"(?![^\n]*(?:=|\b(?:then|so|thus|hence|therefore)\b))"
    r"|\A\W*(?:for (?:example|instance)|e\.g\.|such as|(?:assume|suppose)(?: that)?"
    r"(?: (?:it is|it's|there (?:are|is)|we have))?),? \S?\d[\d.,]*(?: [a-z]+)?\W*\Z"
    r"|\A\W*(?:assume|suppose)(?: that)? [a-z] ?(?:=|is|be) ?\S?\d[\d.,]*\W*\Z"
    r"|\A\W*let [a-z] ?(?:=|be) ?\S?\d[\d.,]*\W*\Z",
    re.IGNORECASE,
)
_WORDS_OF_GUESSES = (
    *("maybe", "perhaps", "possibly", " be ", "doubt", "anything", "nobody", "no one", "have ", "too "),
    *("ssume", "uppose", "imagine", "if ", "let ", " take ", " minus ", "t think", "e.g.", "such as"),
    *("for example", "for instance"),
)


def is_guessed(folded: str, sentence: str) -> bool:
    """`folded`: the sentence without case."""
    return has_one_of(folded, _WORDS_OF_GUESSES) and _GUESSES.search(sentence) is not None
