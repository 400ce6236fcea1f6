"""The forms in which a server may repeat the key that it was asked with: taken out of what is told of it."""

from __future__ import annotations

import json
from urllib.parse import quote

_TAKEN_OUT = "***"


class KeyTraces:
    def __init__(self, key: str | None) -> None:
        self._key = key
        in_json = json.dumps(key or "")[1:-1]
        forms = {key or "", in_json, in_json.replace("/", "\\/"), quote(key or "", safe="")}
        # The longest first: one form may be a part of another.
        self._forms = [form.encode() for form in sorted(forms, key=len, reverse=True) if form]

    def out_of(self, body: bytes) -> bytes:
        """Before it is read, so that no cut leaves half of the key."""
        for form in self._forms:
            body = body.replace(form, _TAKEN_OUT.encode())
        return body

    def out_of_text(self, text: str) -> str:
        """Once it is read, for what was written in escapes of other kinds."""
        return text.replace(self._key, _TAKEN_OUT) if self._key else text
