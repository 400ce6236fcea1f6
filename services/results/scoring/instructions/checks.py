"""The 25 instructions of IFEval (Zhou et al. 2023), by name: whether an answer follows one.

They are as lenient as those of lm-evaluation-harness. Where its code draws a missing parameter at random, or
a letter that is none of a to z, the sample cannot be scored here, and the letter is what is counted.
"""

import json
import re
from collections.abc import Callable, Mapping

from services.results.scoring.instructions.english import language_of, sentence_count, words_of
from services.results.scoring.instructions.parameters import Parameters

Check = Callable[[str], bool]

_ENGLISH = "en"
_WITHOUT_CASE, _BY_LINE = "(?i)", "(?m)"
_WORD = re.compile(r"\w+")
_PLACEHOLDER = re.compile(r"\[.*?\]")
_BULLETS = (r"^\s*\*[^\*].*$", r"^\s*-.*$")
_HIGHLIGHT, _DOUBLE_HIGHLIGHT = r"\*[^\n\*]*\*", r"\*\*[^\n\*]*\*\*"
_TITLE = r"<<[^\n]+>>"
_DIVIDER = re.compile(r"\s?\*\*\*\s?")
_BETWEEN_RESPONSES = "******"
_FENCES = ("```json", "```Json", "```JSON", "```")
_AFTER_A_WORD = frozenset(".,?!'\"")
_CONSTRAINED = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
# Markers of a postscript that are written in several ways.
_POSTSCRIPTS: Mapping[str, str] = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}


def _keywords(given: Parameters) -> Check:
    patterns = [given.pattern(_WITHOUT_CASE + word) for word in given.texts("keywords")]
    return lambda answer: all(pattern.findall(answer) for pattern in patterns)


def _keyword_frequency(given: Parameters) -> Check:
    is_met = given.bound("frequency", "relation")
    pattern = given.pattern(_WITHOUT_CASE + given.text("keyword").strip())
    return lambda answer: is_met(len(pattern.findall(answer)))


def _forbidden_words(given: Parameters) -> Check:
    words = given.texts("forbidden_words")
    patterns = [given.pattern(rf"{_WITHOUT_CASE}\b{word}\b") for word in words]
    return lambda answer: not any(pattern.findall(answer) for pattern in patterns)


def _letter_frequency(given: Parameters) -> Check:
    is_met, letter = given.bound("let_frequency", "let_relation"), given.character("letter").lower()
    return lambda answer: is_met(answer.lower().count(letter))


def _response_language(given: Parameters) -> Check:
    language = given.text("language")
    return lambda answer: language_of(answer) in (language, None)


def _number_sentences(given: Parameters) -> Check:
    is_met = given.bound("num_sentences", "relation")
    return lambda answer: is_met(sentence_count(answer))


def _number_paragraphs(given: Parameters) -> Check:
    """Those between `***`. An empty one is none at the ends, and a fault elsewhere."""
    wanted = given.number("num_paragraphs")

    def check(answer: str) -> bool:
        first, *others = (part.strip() for part in _DIVIDER.split(answer))
        last = others.pop() if others else ""
        return all(others) and bool(first) + len(others) + bool(last) == wanted

    return check


def _number_words(given: Parameters) -> Check:
    is_met = given.bound("num_words", "relation")
    return lambda answer: is_met(len(_WORD.findall(answer)))


def _first_word_of_paragraph(given: Parameters) -> Check:
    """Paragraphs are those between two line breaks; empty ones do not count, but have a place."""
    wanted, place = given.number("num_paragraphs"), given.number("nth_paragraph")
    word = given.text("first_word").lower()

    def check(answer: str) -> bool:
        parts = [part.strip() for part in answer.split("\n\n")]
        count = sum(map(bool, parts))
        if not 1 <= place <= count or not parts[place - 1]:
            return False
        return count == wanted and _plain_word(parts[place - 1].split()[0]) == word

    return check


def _plain_word(word: str) -> str:
    """Without quotes before it, up to the first mark in it."""
    bare = word.lstrip("'").lstrip('"')
    end = next((place for place, letter in enumerate(bare) if letter in _AFTER_A_WORD), len(bare))
    return bare[:end].lower()


def _number_placeholders(given: Parameters) -> Check:
    wanted = given.number("num_placeholders")
    return lambda answer: len(_PLACEHOLDER.findall(answer)) >= wanted


def _postscript(given: Parameters) -> Check:
    marker = given.text("postscript_marker").strip()
    pattern = given.pattern(_POSTSCRIPTS.get(marker, marker.lower()))
    return lambda answer: bool(pattern.findall(answer.lower()))


def _number_bullet_lists(given: Parameters) -> Check:
    wanted = given.number("num_bullets")
    patterns = [given.pattern(_BY_LINE + pattern) for pattern in _BULLETS]
    return lambda answer: sum(len(pattern.findall(answer)) for pattern in patterns) == wanted


def _constrained_response(_: Parameters) -> Check:
    return lambda answer: any(text in answer for text in _CONSTRAINED)


def _number_highlighted_sections(given: Parameters) -> Check:
    """What stands between two pairs of stars counts twice, once as what stands between two stars."""
    wanted = given.number("num_highlights")
    once, twice = given.pattern(_HIGHLIGHT), given.pattern(_DOUBLE_HIGHLIGHT)

    def check(answer: str) -> bool:
        # Patterns without groups find texts.
        found = [*map(str, once.findall(answer)), *map(str, twice.findall(answer))]
        return sum(bool(text.strip("*").strip()) for text in found) >= wanted

    return check


def _multiple_sections(given: Parameters) -> Check:
    wanted = given.number("num_sections")
    pattern = given.pattern(rf"\s?{given.text('section_spliter').strip()}\s?\d+\s?")
    return lambda answer: len(pattern.findall(answer)) >= wanted


def _json_format(_: Parameters) -> Check:
    def check(answer: str) -> bool:
        text = answer.strip()
        for fence in _FENCES:
            text = text.removeprefix(fence)
        try:
            json.loads(text.removesuffix("```").strip())
        except (ValueError, RecursionError):
            return False
        return True

    return check


def _title(given: Parameters) -> Check:
    pattern = given.pattern(_TITLE)
    return lambda answer: any(str(title).lstrip("<").rstrip(">").strip() for title in pattern.findall(answer))


def _two_responses(_: Parameters) -> Check:
    def check(answer: str) -> bool:
        first, *others = (part.strip() for part in answer.split(_BETWEEN_RESPONSES))
        last = others.pop() if others else ""
        given = [part for part in (first, *others, last) if part]
        return all(others) and len(given) == 2 and given[0] != given[1]

    return check


def _repeat_prompt(given: Parameters) -> Check:
    prompt = given.text("prompt_to_repeat").strip().lower()
    return lambda answer: answer.strip().lower().startswith(prompt)


def _end_checker(given: Parameters) -> Check:
    phrase = given.text("end_phrase").strip().lower()
    return lambda answer: answer.strip().strip('"').lower().endswith(phrase)


def _capital_word_frequency(given: Parameters) -> Check:
    is_met = given.bound("capital_frequency", "capital_relation")
    return lambda answer: is_met(sum(word.isupper() for word in words_of(answer)))


def _english_capital(_: Parameters) -> Check:
    return lambda answer: answer.isupper() and language_of(answer) in (_ENGLISH, None)


def _english_lowercase(_: Parameters) -> Check:
    return lambda answer: answer.islower() and language_of(answer) in (_ENGLISH, None)


def _no_comma(_: Parameters) -> Check:
    return lambda answer: "," not in answer


def _quotation(_: Parameters) -> Check:
    def check(answer: str) -> bool:
        text = answer.strip()
        return len(text) > 1 and text[0] == text[-1] == '"'

    return check


CHECKS: Mapping[str, Callable[[Parameters], Check]] = {
    "keywords:existence": _keywords,
    "keywords:frequency": _keyword_frequency,
    "keywords:forbidden_words": _forbidden_words,
    "keywords:letter_frequency": _letter_frequency,
    "language:response_language": _response_language,
    "length_constraints:number_sentences": _number_sentences,
    "length_constraints:number_paragraphs": _number_paragraphs,
    "length_constraints:number_words": _number_words,
    "length_constraints:nth_paragraph_first_word": _first_word_of_paragraph,
    "detectable_content:number_placeholders": _number_placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:number_bullet_lists": _number_bullet_lists,
    "detectable_format:constrained_response": _constrained_response,
    "detectable_format:number_highlighted_sections": _number_highlighted_sections,
    "detectable_format:multiple_sections": _multiple_sections,
    "detectable_format:json_format": _json_format,
    "detectable_format:title": _title,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": _repeat_prompt,
    "startend:end_checker": _end_checker,
    "startend:quotation": _quotation,
    "change_case:capital_word_frequency": _capital_word_frequency,
    "change_case:english_capital": _english_capital,
    "change_case:english_lowercase": _english_lowercase,
    "punctuation:no_comma": _no_comma,
}
