"""Words of a Dockerfile: quotes are removed and variables replaced, as in Docker's own shell words."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z_]\w*|\d")
# The modifiers that replace a variable which is not set, or is set; with a colon an empty one is not set.
_OPERATORS = ("-", "+", "?")


class BadWord(Exception):
    """A word that Docker refuses, or that is not read here; the message is the problem."""


@dataclass(frozen=True, slots=True)
class Variables:
    """Those that are set at an instruction."""

    values: Mapping[str, str]
    escape: str = "\\"

    def replaced(self, word: str) -> str:
        """Raises BadWord."""
        return _Word(word, self).read()

    def replaced_in_text(self, text: str) -> str:
        """A heredoc: quotes are text in it. Raises BadWord."""
        return _Word(text, self, has_quotes=False).read()

    def pairs(self, rest: str) -> Iterator[tuple[str, str | None]]:
        """Names and values of `ENV A=1 B="2 3"`, the old `ENV A 1`, and `ARG A`. Raises BadWord."""
        words = list(split_words(rest, self.escape))
        if len(words) > 1 and "=" not in words[0]:
            yield words[0], self.replaced(rest[len(words[0]) :].strip())
            return
        for word in words:
            name, equals, value = word.partition("=")
            yield self.replaced(name), self.replaced(value) if equals else None


def split_words(text: str, escape: str) -> Iterator[str]:
    """Splits at white space outside of quotes; quotes and escapes stay."""
    word, quote, at = "", "", 0
    while at < len(text):
        character = text[at]
        if character == escape and quote != "'" and at + 1 < len(text):
            word += text[at : at + 2]
            at += 2
            continue
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character.isspace():
            if word:
                yield word
            word = ""
            at += 1
            continue
        word += character
        at += 1
    if word:
        yield word


class _Word:
    """Reads one word from left to right."""

    def __init__(self, text: str, variables: Variables, *, has_quotes: bool = True) -> None:
        self._text, self._variables, self._has_quotes = text, variables, has_quotes
        self._at = 0

    def read(self, end: str = "") -> str:
        """Up to `end`, or to the end of the text."""
        parts: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == end:
                return "".join(parts)
            if character == "'" and self._has_quotes:
                parts.append(self._single_quoted())
            elif character == '"' and self._has_quotes:
                parts.append(self._double_quoted())
            elif character == self._variables.escape:
                parts.append(self._escaped(only="" if self._has_quotes else f"${character}"))
            elif character == "$":
                parts.append(self._variable())
            else:
                parts.append(character)
                self._at += 1
        if end:
            raise BadWord(f"{self._text[:60]!r} has no {end!r} at its end.")
        return "".join(parts)

    def _single_quoted(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise BadWord("its quotes are not closed.")
        quoted = self._text[self._at + 1 : end]
        self._at = end + 1
        return quoted

    def _double_quoted(self) -> str:
        parts: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return "".join(parts)
            if character == self._variables.escape:
                parts.append(self._escaped(only=f'"${character}'))
            elif character == "$":
                parts.append(self._variable())
            else:
                parts.append(character)
                self._at += 1
        raise BadWord("its quotes are not closed.")

    def _escaped(self, only: str) -> str:
        """The character after the escape, which stays before others than `only`."""
        escape, following = self._text[self._at], self._text[self._at + 1 : self._at + 2]
        self._at += 2
        return following if not only or following in only else f"{escape}{following}"

    def _variable(self) -> str:
        self._at += 1
        if self._text.startswith("{", self._at):
            self._at += 1
            return self._braced()
        found = _NAME.match(self._text, self._at)
        if found is None:
            return "$"
        self._at = found.end()
        return self._variables.values.get(found[0], "")

    def _braced(self) -> str:
        found = _NAME.match(self._text, self._at)
        if found is None:
            raise BadWord(f"{self._text[:60]!r} names no variable.")
        name, value = found[0], self._variables.values.get(found[0])
        self._at = found.end()
        is_colon = self._text.startswith(":", self._at)
        self._at += is_colon
        operator = self._text[self._at : self._at + 1]
        if operator == "}" and not is_colon:
            self._at += 1
            return value or ""
        if operator not in _OPERATORS or not operator:
            raise BadWord(f"the form of ${{{name}…}} in {self._text[:60]!r} is not read.")
        self._at += 1
        word = self.read(end="}")
        self._at += 1
        is_set = bool(value) if is_colon else value is not None
        if operator == "+":
            return word if is_set else ""
        if not is_set and operator == "?":
            raise BadWord(f"{name} is not set: {word}.")
        return (value or "") if is_set else word
