"""Reads which choice an answer names in words; an unclear one is unread: a wrong label is worse than none.

Of the answer itself (`final_answer`) only these forms are read, with X a choice, its letter, or both as in
"(B) London", whatever its case, markup and quotes:

1. X is the whole answer, or the whole first or last line.
2. A sentence says so, in one of many languages: "So the answer is X", "Answer: X", "X is correct". Clauses
   may stand before it that neither deny it nor report the words of others. Or a formula is boxed.
3. The answer begins with X and explains it: "X. The ...", "X because ...", "Yes, the ...".

All that is read in this way must be one and the same choice. What follows it may explain it: where that takes
it back, doubts it, passes a verdict on it, or names another choice other than in passing, nothing is read.
A list of the options names none; neither do offers to help. Of an answer that was cut by its length only a
sentence that says so is read, and one that breaks off was cut.

Where none of these holds, a sentence that corrects another one, a question with its answer, and a sentence
that ends with its only choice are read (`settling`), verdicts on the options one by one, and
last what the sentences of the answer speak for, each by its own clauses (`weighing`).

A letter stands for the choice that is that letter or begins with it ("B. Paris"), else for the choice in that
place. Where choices are only letters, what they stand for may follow: "B. 42".
"""

import re
from collections.abc import Sequence

from proctor.values.scoring import are_letters
from services.results.scoring.answer_marks import final_answer
from services.results.scoring.answer_text import bare, unmarked
from services.results.scoring.answer_words import has_one_of
from services.results.scoring.choices.asides import (
    without_courtesies,
    without_lists,
    without_promise,
    without_views,
)
from services.results.scoring.choices.claims import StatedChoice, stated_choices
from services.results.scoring.choices.doubts import is_explanation, is_taken_back, without_affirming_no
from services.results.scoring.choices.explanations import first_sentence, is_undone
from services.results.scoring.choices.options import ChoiceOptions, options_of
from services.results.scoring.choices.replies import judged_statement, numbered_choice, replied_choice
from services.results.scoring.choices.retelling import retold_choice
from services.results.scoring.choices.settling.conclusions import concluded_choice
from services.results.scoring.choices.settling.corrections import corrected_choice
from services.results.scoring.choices.settling.verdicts import judged_choice
from services.results.scoring.choices.statements import HEADING
from services.results.scoring.choices.weighing import weighed_choice
from services.results.scoring.choices.whole_answers import whole_answer

# A model that has lost itself repeats the same for ever.
_MAX_ANSWER_CHARACTERS = 20_000
# Characters of an answer in which other forms than claims are looked for.
_MAX_CONCLUSION = 2_000
# Marks and words that may stand around a choice that is the whole answer.
_AROUND_CHOICE = 40
_SPACES = re.compile(r"[ \t]+")
# A statement on the next line is one of its own: "The right one is:\n\nThe answer is B."
_ON_THE_NEXT_LINE = re.compile(
    r":[ \t]*\n\s*(?!(?:(?:the|my) )?(?:final |correct |best |right )?(?:answer|option|choice) is\b)",
    re.IGNORECASE,
)
# A formula ends its sentence.
_AFTER_FORMULA = re.compile(r"(?<=[\d)}])\s?\$\$ (?=[A-Z])")
# Words of a sentence that a formula sets: "\text{The answer is } (\text{B})".
_SET_WORDS = re.compile(r"\{((?:the )?(?:final |correct )?answer is) ?\}\s?", re.IGNORECASE)
_SET_ANSWER = re.compile(
    r"\$*\{((?:the )?(?:final |correct )?answer is:? \(?(?-i:[A-J])\)?\.?)\}\$*", re.IGNORECASE
)
_QUOTED_TEXT = re.compile(
    r"((?:(?:是|为|選|选|答案)(?:选项|選項)?|\b(?:answer|option|choice) is)\s?:?\s?[A-J])"
    r"\s?[\"“「](?=\w[^\"”」\n]*[\"”」][.。]?\s*(?:\n|\Z))",
    re.IGNORECASE,
)
# "No es A, sino B": what it is not goes.
_REPLACED_ABROAD = re.compile(
    r"(?:\b(?:no|non|não) (?P<verb>es|è|é)|\bnicht|\bniet|\bce n'est pas|不是|并非|並非)"
    r" ?(?:la |el |die |a )?\(?[A-J]\)?[,，、]? ?"
    r"(?:sino|bensí|bensì|ma|mas|mais|sondern|maar|而是)(?: es| è| é| c'est)? (?=\(?[A-J]\b|la |el )"
    r"|不是 ?[A-J][,，、]? ?而是"
    r"|\b(?:no (?=es )|não (?=é )|non (?=è ))(?:es|é|è) (?:la |a )?\(?[A-J]\)?[,;] "
    r"(?=(?:es|é|è) (?:la |a )?\(?[A-J]\b)"
    r"|\bне \(?[A-J]\)?, а (?=\(?[A-J]\b)|(?<!\w)\(?[A-J]\)? değil,? (?=\(?[A-J]\b)"
    r"|不是 ?[A-J](?:选?项|選項)?[,，、;；]? ?(?=是 ?[A-J])|(?<!\w)[A-J] ?では?なく、?,? ?(?=[A-J])"
    r"|(?<!\w)[A-J](?:가|이)? ?아니라,? ?(?=[A-J])",
    re.IGNORECASE,
)
_WORDS_OF_REPLACING = (" sino ", " ma ", " mas ", " mais ", "sondern ", " maar ", " no es ")
_ALL_WORDS_OF_REPLACING = (
    *_WORDS_OF_REPLACING,
    *(" bens", "ão é ", "on è ", "не ", "değil", "不是", "并非", "並非", "なく", "아니라"),
)
_NOT_ANOTHER = re.compile(r"(?<=[A-J])(?:[,，] ?而?|而)(?:不是|非) ?[A-J](?=[。.]?\s*\Z)")
_GOING_ON = (" is\n", " are\n", " be\n", " choose\n", " select\n", " pick\n", " reject\n", " exclude\n")
_SENTENCE_GOES_ON = re.compile(
    r"\b(is|are|be|choose|select|pick|reject|exclude)[ \t]*\n\s*"
    r"(?!(?:Therefore|Thus|So|Hence|The (?:final |correct |best )?answer|Answer)\b)"
)
# Lines between paragraphs, and a table of one row whose last column is the answer.
_RULE = re.compile(r"^[ \t]*-{3,}[ \t]*(?:\n|\Z)", re.MULTILINE)
_ONE_ROW = re.compile(
    r"^\|(?:[^|\n]*\|)*? ?(?P<head>(?:final |correct )?(?:answer|choice|option)) ?\| ?\n\|[ |:-]+\| ?\n"
    r"\|(?:[^|\n]*\|)*? ?(?P<cell>[^|\n]+?) ?\|\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)
# As in "Q: … A: …", or the first option.
_MARK_OF_ANSWER = re.compile(r"A ?:\s*(?=\S)")
_ASKED_AGAIN = re.compile(r"Q(?:uestion)?:[^\n]*\n+(?=A(?:nswer)?:)", re.IGNORECASE)
_ANSWER_LINE = re.compile(r"^(?:the |my )?answer: \(?(?P<name>[a-j])\)?[.]?$", re.IGNORECASE | re.MULTILINE)
_QUOTES = ('"', "“", "「")
_LAST_WORD = 12
# The last words of a text that goes on, as of "The correct answer is:".
_GOES_ON = re.compile(
    r"(?:[ \n](?:which|the|an|of|and|is|in|to|that|for|with|by|or|was|are|because|on|at|from|but"
    r"|its)|\w[*_ ]*:[*_]*|,)\Z"
)
_SHORT_REPLY = re.compile(r"\W*yes,? (?:it|this|that|he|she) (?:is|was|does|did|has|can)", re.IGNORECASE)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_IN_DIGITS = ("1st", "2nd", "3rd", "4th", "5th")
# Of several, "my second choice" is what somebody would choose next.
_PLACE = re.compile(
    rf"(?<!my )(?<!your )\b(?:the )?(?:(?P<word>{'|'.join((*_ORDINALS, *_IN_DIGITS))})|(?P<last>last|final))"
    r" (?:(?:answer )?(?:option|choice|alternative)(?! ?[:=→]| (?:is|would be|will be):? ?\(?(?-i:[A-J])\b)"
    r"|one(?=[.,!]|\Z| is (?:right|correct|the (?:right|correct|answer))\b))\b"
    r"|\b(?:option|choice|alternative|answer choice) (?:#|no\. ?|number )?(?P<digit>[1-9])(?![\w.%])",
    re.IGNORECASE,
)
# What most answers are that say so: nothing else has to be looked for in them.
_NOTHING_BUT_A_CLAIM = re.compile(
    r"(?:the |my )?(?:final |correct )?answer(?: is:? |: ?)(?:option )?(?:\*\*)?\(?(?P<letter>[A-J])\)?"
    r"(?:\*\*)?\.?",
    re.IGNORECASE,
)
_LETTER_NAMED = re.compile(r"\b(?:[A-HJ-Z]|I(?! [a-z]))\b(?!')")


def named_choice(
    text: str, choices: Sequence[str], texts: Sequence[str] = (), *, is_cut: bool = False
) -> int | None:
    """`texts`: what choices that are only letters stand for, where it is known."""
    answer = final_answer(text)
    forms = {text.strip(), answer}
    exact = [label for label, choice in enumerate(choices) if choice.strip() in forms]
    if not exact and answer in texts:
        # Also where they differ in case alone: "AaBb" and "AABB".
        exact = [label for label, choice in enumerate(texts) if choice == answer]
    # Two choices that are the same text leave it open which one is meant.
    if exact or not answer:
        return exact[0] if len(exact) == 1 else None
    options = options_of(tuple(choices), tuple(texts))
    if options is not None and "yes" in options.forms:
        answer = without_promise(answer)
    is_cut = is_cut or (options is not None and _breaks_off(answer, options))
    if options is None or len(answer) > _MAX_ANSWER_CHARACTERS:
        return None
    if "\n" not in answer and not is_cut and len(answer) < options.longest + _AROUND_CHOICE:
        label = _of_few_words(answer, options, are_lettered=are_letters(choices))
        if label is not None:
            return label
    prepared = _prepared(answer, options)
    label = _read(prepared, options, is_cut=is_cut)
    if label is not None or is_cut:
        return label
    if _answers_apart(prepared):
        return corrected_choice(prepared, options, lambda part: _read(part, options, is_cut=False))
    return _read_otherwise(answer, prepared, options)


def _of_few_words(answer: str, options: ChoiceOptions, *, are_lettered: bool) -> int | None:
    """Most answers are no more than this."""
    label = options.being(answer)
    if label is not None and not _MARK_OF_ANSWER.match(answer):
        return label
    claim = _NOTHING_BUT_A_CLAIM.fullmatch(answer)
    if claim and are_lettered and claim["letter"] in options.letters:
        return options.letters[claim["letter"]]
    return whole_answer(answer, options)


def _read_otherwise(answer: str, prepared: str, options: ChoiceOptions) -> int | None:
    """Where nothing is plainly claimed."""
    label = None
    if len(prepared) < _MAX_CONCLUSION:
        label = concluded_choice(prepared, options, lambda part: _read(part, options, is_cut=False))
    if label is None:
        label = judged_statement(prepared, options)
    if label is None:
        label = judged_choice(answer, prepared, options)
    if label is None:
        label = weighed_choice(prepared, options)
    for read in (replied_choice, numbered_choice, retold_choice):
        label = read(prepared, options) if label is None else label
    return label


def _answers_apart(prepared: str) -> bool:
    """Whether two lines, each in the form of an answer, differ: neither is more than the other."""
    return len({found["name"].casefold() for found in _ANSWER_LINE.finditer(prepared)}) > 1


def _breaks_off(answer: str, options: ChoiceOptions) -> bool:
    """Whether the answer itself tells that it was cut."""
    if _GOES_ON.search(answer, max(0, len(answer) - _LAST_WORD)) is None or _SHORT_REPLY.fullmatch(answer):
        return False
    return not bare(answer).endswith(tuple(filter(None, options.forms)))


def _prepared(answer: str, options: ChoiceOptions) -> str:
    quoted = _QUOTED_TEXT.sub(r"\1. ", answer) if has_one_of(answer, _QUOTES) else answer
    lines = _SPACES.sub(" ", unmarked(quoted)).strip()
    lines = lines.replace(" \n", "\n")
    if "{" in lines:
        lines = _SET_ANSWER.sub(r"\1", _SET_WORDS.sub(r"\1 ", lines))
    lines = _AFTER_FORMULA.sub(". ", lines) if "$$" in lines else lines
    if has_one_of(lines, _WORDS_OF_REPLACING if lines.isascii() else _ALL_WORDS_OF_REPLACING):
        lines = _REPLACED_ABROAD.sub(_without_replaced, lines)
    if not lines.isascii():
        lines = _NOT_ANOTHER.sub("", lines)
    asked = _ASKED_AGAIN.match(lines)
    lines = lines[asked.end() :] if asked else lines
    lines = without_views(lines)
    lines = _PLACE.sub(lambda found: _option_in_place(found, options), lines)
    if "\n" in lines:
        lines = _RULE.sub("", lines) if "---" in lines else lines
        if "|" in lines:
            lines = _ONE_ROW.sub(r"\g<head>: \g<cell>", lines)
        lines = without_lists(lines, options.letters)
        if has_one_of(lines, _GOING_ON):
            lines = _SENTENCE_GOES_ON.sub(r"\1 ", lines)
        lines = _ON_THE_NEXT_LINE.sub(": ", HEADING.sub(r"\1: ", lines)).strip()
    mark = _MARK_OF_ANSWER.match(lines)
    if mark and asked:
        return lines[mark.end() :]
    return _behind_mark(lines, mark.end(), options) if mark and "A" in options.letters else lines


def _without_replaced(found: re.Match[str]) -> str:
    """The verb stays where its subject stands before it."""
    return f"{found['verb']} " if found["verb"] and found.string[: found.start()].strip() else ""


def _option_in_place(found: re.Match[str], options: ChoiceOptions) -> str:
    """ "Option B" for "the second option", where there is one and no text may be meant."""
    count = len(options.forms)
    word = (found["word"] or "").lower()
    words = _IN_DIGITS if word in _IN_DIGITS else _ORDINALS
    place = count - 1 if found["last"] else words.index(word) if word else None
    if place is None:
        place = int(found["digit"]) - 1
        if options.are_letters or any(map(str.isdigit, "".join(options.forms))):
            return found[0]
    letters = [letter for letter, label in options.letters.items() if label == place]
    return f"option {letters[0]}" if letters else found[0]


def _behind_mark(lines: str, start: int, options: ChoiceOptions) -> str:
    """What follows "A:", where it names a choice by its letter; nothing where the A may be its letter too."""
    if any(named.label is not None and not named.is_letter for named in options.named_at(lines, 0)):
        return lines
    behind = lines[start:]
    is_letter = any(named.is_letter for named in options.named_at(behind, 0))
    return behind if is_letter and options.being(behind) is not None else ""


def _read(answer: str, options: ChoiceOptions, *, is_cut: bool) -> int | None:
    claims = stated_choices(answer, options)
    if is_cut:
        # The last words may be the beginning of others.
        claims = [claim for claim in claims if claim.is_said and claim.end < len(answer)]
    labels = {claim.label for claim in claims}
    if len(labels) != 1:
        return None
    (label,) = labels
    if label is None:
        return None
    rest = without_affirming_no(without_courtesies(answer[claims[-1].end :], _LETTER_NAMED))
    return label if _holds(claims, label, rest, options) else None


def _holds(claims: list[StatedChoice], label: int, rest: str, options: ChoiceOptions) -> bool:
    is_said = any(claim.is_stated and claim.is_said for claim in claims)
    first = first_sentence(rest) if is_said else rest
    if is_taken_back(first, label, options) or is_undone(rest[len(first) :], label, options):
        return False
    is_letter = all(claim.is_letter for claim in claims)
    is_stated = any(claim.is_stated for claim in claims)
    return is_stated or is_explanation(rest, label, options, is_letter=is_letter)
