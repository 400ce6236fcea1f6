"""The choices of a sample as an answer in words may name them: by their text, by a letter, or by both."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from string import ascii_uppercase

from proctor.values.scoring import are_letters
from services.results.scoring.answer_text import SPACED, Mention, bare, caseless, is_whole_word, mentions

_OWN_LETTER = re.compile(r"[(\[]?([A-Za-z])[)\].:]\s+(?=\S)")
_OPENING = re.compile(r"[ \t(\[{$'「『]{0,3}")
_CLOSING = re.compile(r"(?:[.!]?[)\]}$'」』]){0,3}")
_KIND = re.compile(
    r"(?:the )?(?:(?:answer )?(?:option|choice)|answer|letter|opción|opção|(?:l')?opzione|optie|letra|lettre"
    r"|buchstabe|alternativa|antwort|antwoord|réponse|risposta|respuesta|resposta|вариант|ответ|选项"
    r"|選項|選択肢|الخيار|विकल्प)[ \t]*",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"(?:an?|the)[ \t]+(?=\w)", re.IGNORECASE)
_LATIN_PLURALS = (("on", "a"), ("um", "a"), ("us", "i"), ("is", "es"), ("y", "ies"))
_SPECIES = re.compile(
    r"[A-Z]\. (?:coli|aureus|elegans|subtilis|cerevisiae|pylori|falciparum|difficile|pneumoniae)\b"
)
_INITIAL = re.compile(r"([A-Z])\. ?([^\W\d_]{2,})")
_PLACE = re.compile(r"\d{1,2}\Z")
_LETTER = re.compile(rf"([A-Za-z])(?!{SPACED})")
_BETWEEN = re.compile(r"(?:[ \t()\[\]{}$'.:,\\]|-(?=[ \t-])){1,12}|-(?=\w)")
_BEFORE_PLACE = re.compile(r"(?:\(|(?:option|choice|answer|number|no\.) )\Z", re.IGNORECASE)
_LETTER_BEHIND = re.compile(
    r"[ \t]*\((?:(?:option|choice|answer|letter) )?(?P<letter>[A-Za-z])\)"
    r"|,? (?:(?:which|that) (?:is|corresponds to|matches) |corresponding to )?(?:the )?(?:answer )?"
    r"(?:option|choice) \(?(?P<option>[A-Z])(?:\)|(?![\w']))",
    re.IGNORECASE,
)
_LETTER_ANYWHERE = re.compile(rf"(?<!{SPACED})[(\[]?([A-Z])(?!(?:{SPACED}|'))[)\]]?")
_VARIABLE = re.compile(r"\A[\s$]*[a-z] ?= ?(?=\S)")
_THING = re.compile(
    r"(?<!\w)(?:hepatitis|vitamins?|influenza|type|group|immunoglobulin|factor|protein|cytochrome) \Z",
    re.IGNORECASE,
)
_LONGEST_THING = len("?immunoglobulin ")
_PRONOUN = re.compile(r"I[ '][a-z]")
# Characters of a text beside a letter that are too few to name it amid an explanation.
_SHORT = 3
# No dash: it stands at the begin of a word.
_SIGN_BEFORE = re.compile(r"(?:(?:\A|[\s($:*=])[-\u2010\u2011\u2212±√.]|(?:\A|[\s($:*])[<>≤≥])[$€£(]?\Z")
_SIGN_CHARACTERS = 3
_REST = re.compile(r"[\s.,;:!)\]}$]*\Z")


@dataclass(frozen=True, slots=True)
class Named:
    """`label`: None where a letter and the text beside it differ. `end`: where the name ends.

    `is_letter`: only a letter names it.
    """

    label: int | None
    end: int
    is_letter: bool = False


@dataclass(frozen=True)
class ChoiceOptions:
    """`forms`: the choices as they are compared, by label; `letters`: the label that a letter stands for.

    `are_lettered`: the choices are letters, and their forms the texts that these stand for.
    """

    forms: Sequence[str]
    letters: Mapping[str, int]
    are_lettered: bool = False

    @cached_property
    def are_letters(self) -> bool:
        """Only the prompt says what the letters stand for."""
        return not any(self._words)

    @cached_property
    def longest(self) -> int:
        """The length of the longest text of a choice."""
        return max(map(len, self.forms))

    @cached_property
    def _plural(self) -> Mapping[str, int]:
        """Choices by their text in the other number: "ribosomes" for "ribosome"."""
        plurals = {f"{form}s": label for label, form in enumerate(self.forms) if len(form) > _SHORT}
        latin = {
            form.removesuffix(end) + ends: label
            for label, form in enumerate(self.forms)
            for end, ends in _LATIN_PLURALS
            if form.endswith(end)
        }
        singulars = {form[:-1]: label for label, form in enumerate(self.forms) if form.endswith("s")}
        return {form: label for form, label in (plurals | latin | singulars).items() if len(form) > _SHORT}

    @cached_property
    def _words(self) -> Sequence[str]:
        """A choice of one letter is named as a letter: "a" has too many other meanings."""
        return ["" if len(form) == 1 and form.isalpha() and form.isascii() else form for form in self.forms]

    def being(self, text: str) -> int | None:
        """The choice that a whole text names."""
        wanted = bare(_VARIABLE.sub("", text) if "=" in text else text)
        if wanted and wanted in self.forms:
            label = self.forms.index(wanted)
            opening = text.find("(") + 1
            is_place = opening and self._may_be_a_place(text, opening, Named(label, opening + len(wanted)))
            return None if is_place else label
        whole = (named for named in self.named_at(text, 0) if _REST.match(text, named.end))
        return next((named.label for named in whole), self._plural.get(wanted))

    def named_at(self, text: str, start: int) -> Iterator[Named]:
        """Choices that a text may name from there on, the longest name first: "B) London", "option B"."""
        kind = _KIND.match(text, start)
        for begin in (kind.end(), start) if kind else (start,):
            opening = _OPENING.match(text, begin)
            for named in self._named(text, opening.end() if opening else begin):
                closing = _CLOSING.match(text, named.end)
                yield Named(named.label, closing.end(), named.is_letter) if closing else named

    def names_in(self, text: str) -> list[Mention]:
        """All names of choices in a text, in order."""
        letters = (
            Mention(found.start(), found.end(), self.letters[found[1]])
            for found in _LETTER_ANYWHERE.finditer(text)
            if found[1] in self.letters and not _is_of_a_thing(text, found)
        )
        return sorted(
            (*mentions(caseless(text), self._words), *letters), key=lambda one: (one.start, -one.end)
        )

    def counts_amid(self, mention: Mention, text: str) -> bool:
        """Whether a name in an explanation may be meant as a choice: short texts have too many other uses."""
        name = text[mention.start : mention.end].strip("()[]")
        is_letter = len(name) == 1
        return is_letter or not self.are_lettered or (len(name) > _SHORT and not name[:1].isdigit())

    def _named(self, text: str, start: int) -> Iterator[Named]:
        letter = _LETTER.match(text, start) if not self._is_initial(text, start) else None
        lettered = self.letters.get(letter[1].upper()) if letter else None
        if letter and lettered is not None:
            between = _BETWEEN.match(text, letter.end())
            for worded in self._beside_letter(text, between.end()) if between else ():
                # "A dog" is an article and its noun.
                is_letter = between and worded.end == between.end() + 1
                is_article = letter[1] in "Aa" and between and between[0].isspace() and not is_letter
                agrees = lettered == worded.label or is_article
                yield Named(worded.label if agrees else None, worded.end)
        for worded in () if self.are_letters else self._worded_with_article(text, start):
            behind = _LETTER_BEHIND.match(text, worded.end)
            if behind:
                letter_behind = behind["letter"] or behind["option"]
                agrees = self.letters.get(letter_behind.upper()) == worded.label
                yield Named(worded.label if agrees else None, behind.end())
            yield Named(None, worded.end) if self._may_be_a_place(text, start, worded) else worded
        if letter and lettered is not None:
            yield Named(lettered, letter.end(), is_letter=True)

    def _is_initial(self, text: str, start: int) -> bool:
        """Of a species, or of the name that is the text of an option: "B. Franklin" for Benjamin Franklin."""
        initial = _INITIAL.match(text, start)
        if initial is None:
            return False
        if _SPECIES.match(text, start):
            return True
        letter, name = initial[1].lower(), initial[2].casefold()
        # Of another option, it is at least no clear letter: "B. Mason" where B is John Adams.
        is_all = not text[initial.end() :].strip(" .\n")
        named = [
            label for label, form in enumerate(self.forms) if _is_name(form, "" if is_all else letter, name)
        ]
        own = self.letters.get(initial[1])
        return bool(named) and own not in named and not (own is not None and name in self.forms[own])

    def _worded_with_article(self, text: str, start: int) -> Iterator[Named]:
        article = _ARTICLE.match(text, start)
        yield from self._worded(text, start)
        yield from self._worded(text, article.end()) if article else ()

    def _beside_letter(self, text: str, start: int) -> list[Named]:
        """The text beside a letter; one of a single letter only at the end of its sentence."""
        single = caseless(text[start : start + 1])
        if single.isalpha() and _REST.match(text, start + 1) and single in self.forms:
            return [Named(self.forms.index(single), start + 1)]
        return self._worded(text, start)

    def _may_be_a_place(self, text: str, start: int, worded: Named) -> bool:
        """Whether "(2)" or "option 2" may mean the second choice, while another one reads "2"."""
        place = _PLACE.match(text[start : worded.end])
        if not place or not 1 <= int(place[0]) <= len(self.forms) or int(place[0]) - 1 == worded.label:
            return False
        return _BEFORE_PLACE.search(text[max(0, start - 8) : start]) is not None

    def _worded(self, text: str, start: int) -> list[Named]:
        """The choices with whose text a text goes on, the longest first."""
        if self.are_letters:
            return []
        # Longer than any form, so that `is_whole_word` sees what follows it; the rest is not folded.
        reach = start + 2 * self.longest
        if is_of_another_number(text, start):
            return []
        part = caseless(text[start:reach])
        found = [
            Named(label, start + len(form))
            for label, form in enumerate(self._words)
            if form and part.startswith(form) and is_whole_word(part, 0, len(form))
        ]
        return sorted(found, key=lambda named: -named.end)


def is_of_another_number(text: str, start: int) -> bool:
    """Whether a sign before digits makes another number of them: "-12" is not "12"."""
    return text[start : start + 2].strip("$€£")[:1].isdigit() and bool(
        _SIGN_BEFORE.search(text[max(0, start - _SIGN_CHARACTERS) : start])
    )


def _is_name(form: str, letter: str, name: str) -> bool:
    return form.startswith(letter) and form.endswith(f" {name}")


def _is_of_a_thing(text: str, letter: re.Match[str]) -> bool:
    """As in "I think" and "vitamin C"."""
    is_pronoun = letter[1] == "I" and _PRONOUN.match(text, letter.start())
    return bool(is_pronoun or _THING.search(text[max(0, letter.start() - _LONGEST_THING) : letter.start()]))


# Most tasks give all their answers the same choices.
@lru_cache(maxsize=64)
def options_of(choices: tuple[str, ...], texts: tuple[str, ...] = ()) -> ChoiceOptions | None:
    """None where only the exact text distinguishes the choices.

    `texts`: what choices that are letters stand for.
    """
    if texts and are_letters(choices):
        return _lettered([choice.strip() for choice in choices], texts)
    stripped = [choice.strip() for choice in choices]
    own = [_OWN_LETTER.match(text) for text in stripped]
    letters = {found[1].upper(): label for label, found in enumerate(own) if found}
    if len(letters) == len(stripped):
        forms = [bare(text[found.end() :]) for text, found in zip(stripped, own, strict=True) if found]
    else:
        forms = [bare(text) for text in stripped]
        single = {
            form.upper(): label for label, form in enumerate(forms) if len(form) == 1 and form.isalpha()
        }
        # Not strict: beyond 26 choices the others have no letter.
        letters = single or dict(zip(ascii_uppercase, range(len(forms)), strict=False))
    are_distinct = all(forms) and len({form.rstrip("?") for form in forms}) == len(forms)
    return ChoiceOptions(forms, letters) if are_distinct else None


def _lettered(letters: Sequence[str], texts: Sequence[str]) -> ChoiceOptions | None:
    """Letters with their texts. A text that two letters have, or that is a letter itself, names none."""
    labels = {letter: label for label, letter in enumerate(letters)}
    if len(labels) < len(letters):
        return None
    forms = [bare(text) for text in texts]
    plain = [form.rstrip("?") for form in forms]
    distinct = [
        form if plain.count(same) == 1 and form.upper() not in labels else ""
        for form, same in zip(forms, plain, strict=True)
    ]
    return ChoiceOptions(distinct, labels, are_lettered=True)
