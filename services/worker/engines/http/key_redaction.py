"""Redacts the API key from response bodies, in every form in which a server may repeat it."""

import html
import re
from collections.abc import Sequence

_REDACTED = b"***"
# Shorter ones are placeholders ("EMPTY", "none"), which answers contain as words.
_MIN_SECRET = 8
# Characters that JSON may escape by a backslash.
_QUOTED = frozenset('/"\\')
# Keys of only these characters are escaped by \\u alone.
_PLAIN = re.compile(r"[\w.~-]*", re.ASCII)


class KeyRedactor:
    """Redact bodies before they are parsed or cut: half of a key would not be found."""

    def __init__(self, *secrets: str) -> None:
        whole = sorted({each for each in secrets if len(each) >= _MIN_SECRET}, key=len, reverse=True)
        self._forms = re.compile(b"|".join(b"".join(map(_forms_of, secret)) for secret in whole))
        # Most bodies are only searched for these; each begins with a literal, which makes the search fast.
        signs = [*map(re.escape, whole), *_escapes_in("".join(whole))] if whole else []
        self._has_sign = tuple(re.compile(sign.encode()).search for sign in signs)

    def redact(self, body: bytes) -> bytes:
        for has_sign in self._has_sign:
            if has_sign(body):
                return self._forms.sub(_REDACTED, body)
        return body


def _escapes_in(characters: str) -> Sequence[str]:
    """Patterns of the escapes of JSON, URLs and HTML that may encode some character of the key."""
    if _PLAIN.fullmatch(characters):
        return (r"\\u00[2-7]",)
    quoted = re.escape("".join({*characters} & _QUOTED))
    return (rf"\\[u{quoted}]", "%[0-9a-fA-F]", "&")


def _forms_of(character: str) -> bytes:
    """A pattern; its repetitions are bounded, so that no body takes long."""
    number = ord(character)
    in_url = "".join(f"%(?:25){{0,4}}{_hexadecimal(f'{byte:02x}')}" for byte in character.encode())
    forms = [
        re.escape(character),
        # JSON, also nested in a JSON string.
        rf"\\{{1,8}}u{_hexadecimal(f'{number:04x}')}",
        in_url,
        rf"&#0{{0,4}}(?:{number}|[xX]0{{0,4}}{_hexadecimal(f'{number:x}')});",
    ]
    if character in _QUOTED:
        forms.append(rf"\\{{1,8}}{re.escape(character)}")
    if (named := html.escape(character)) != character:
        forms.append(named)
    return f"(?:{'|'.join(forms)})".encode()


def _hexadecimal(digits: str) -> str:
    return "".join(f"[{each}{each.upper()}]" if each.isalpha() else each for each in digits)
