"""Names that people give to keys and passwords: no request may have one, and no error repeats its value."""

import re
from collections.abc import Iterator, Mapping

# Matched against the letters and digits of a name, in lower case. A cache key is not a secret.
_SECRET = re.compile(
    r"api(key|token)|access(key|token)|(auth|refresh|security|session|hf|github)token|authori[sz]ation|oauth"
    r"|bearer|secret|password|passwd|passphrase|credential|cookie|jwt|(extra|default|http|custom)headers"
    r"|^(x?auth|x?token|pwd|headers)$|(?<!cache)key$"
)
# Keys of a JSON schema under which the names of an answer's fields follow, each with its schema.
_FIELDS_OF_ANSWERS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)


def secret_word(name: str) -> str | None:
    """The part of a name that shows that it names a secret; never the whole of it, which may hold one."""
    found = _SECRET.search("".join(character for character in name if character.isalnum()).casefold())
    return found[0] if found else None


def secret_word_in(value: object) -> str | None:
    """`secret_word` of the first such name at any depth."""
    return next((word for name in _names_in(value) if (word := secret_word(name))), None)


def _names_in(value: object, *, of_answers: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not (of_answers and isinstance(item, Mapping | bool)):
                yield str(name)
            yield from _names_in(item, of_answers=name in _FIELDS_OF_ANSWERS)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _names_in(item)
