"""The forms in which a server may repeat the key that it was asked with: taken out of all that it says."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

_TAKEN_OUT = b"***"
# Shorter ones stand in for a key where none is needed ("EMPTY", "none"), and answers hold such words.
_SHORTEST_SECRET = 8
# What JSON may write with a backslash before it.
_QUOTED = frozenset('/"\\')
# A key of these letters only is escaped by nobody but with a \\u.
_PLAIN = re.compile(r"[\w.~-]*", re.ASCII)


class KeyTraces:
    """A body is cleaned as it comes, before it is read or cut: half of a key would be found by nobody."""

    def __init__(self, *secrets: str) -> None:
        whole = sorted({each for each in secrets if len(each) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._forms = re.compile(b"|".join(b"".join(map(_forms_of, secret)) for secret in whole))
        # To look for these is all that most answers cost; each begins as itself, so that it is quick.
        signs = [*map(re.escape, whole), *_escapes_in("".join(whole))] if whole else []
        self._has_sign = tuple(re.compile(sign.encode()).search for sign in signs)

    def out_of(self, body: bytes) -> bytes:
        for has_sign in self._has_sign:
            if has_sign(body):
                return self._forms.sub(_TAKEN_OUT, body)
        return body


def _escapes_in(letters: str) -> Sequence[str]:
    """Patterns of what some letter may be written by, in JSON, in an address and on a page of HTML."""
    if _PLAIN.fullmatch(letters):
        return (r"\\u00[2-7]",)
    quoted = re.escape("".join({*letters} & _QUOTED))
    return (rf"\\[u{quoted}]", "%[0-9a-fA-F]", "&")


def _forms_of(letter: str) -> bytes:
    """A pattern; what repeats in it is bounded, so that no body takes long."""
    number = ord(letter)
    in_address = "".join(f"%(?:25){{0,4}}{_hexadecimal(f'{byte:02x}')}" for byte in letter.encode())
    forms = [
        re.escape(letter),
        # Of JSON, also where it stands in a text of JSON.
        rf"\\{{1,8}}u{_hexadecimal(f'{number:04x}')}",
        in_address,
        rf"&#0{{0,4}}(?:{number}|[xX]0{{0,4}}{_hexadecimal(f'{number:x}')});",
    ]
    if letter in _QUOTED:
        forms.append(rf"\\{{1,8}}{re.escape(letter)}")
    if (named := html.escape(letter)) != letter:
        forms.append(named)
    return f"(?:{'|'.join(forms)})".encode()


def _hexadecimal(digits: str) -> str:
    return "".join(f"[{each}{each.upper()}]" if each.isalpha() else each for each in digits)
