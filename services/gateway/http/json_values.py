"""The number of values in JSON, found before it is parsed: a parser makes an object of each."""

import json
from typing import Any

# Parameters of a model and the filters of a task have some ten.
MAX_FIELD_VALUES = 1_000


class JsonValues:
    """Counts while the text comes: `found` is the number of values, or more."""

    def __init__(self) -> None:
        self.found = 0
        self._is_in_text = self._is_escaped = False

    def add(self, chunk: bytes) -> None:
        """Separators and brackets outside of texts.

        Raises ValueError for what is not UTF-8: a parser takes UTF-16 too, where half of a letter looks like
        the end of a text.
        """
        if b"\0" in chunk:
            raise ValueError("JSON is UTF-8 without NUL characters")
        if self._is_escaped and chunk:
            chunk, self._is_escaped = chunk[1:], False
        whole = chunk.replace(rb"\\", b"")
        self._is_escaped = self._is_escaped or whole.endswith(b"\\")
        for i, part in enumerate(whole.replace(rb"\"", b"").split(b'"')):
            if i:
                self._is_in_text = not self._is_in_text
            if not self._is_in_text:
                self.found += part.count(b",") + part.count(b"[") + part.count(b"{")


def read_json(text: str, max_values: int = MAX_FIELD_VALUES) -> Any:
    """The JSON in a field of a form.

    Raises ValueError with a sentence for other text, too many values, and lists within too many lists.
    """
    values = JsonValues()
    values.add(text.encode(errors="replace"))
    if values.found > max_values:
        raise ValueError(f"it has more than {max_values} values")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it has lists within too many lists") from error
