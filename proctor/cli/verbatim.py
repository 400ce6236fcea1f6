"""Texts of data sets and models, shown as they are and without harm to a terminal."""

import json

from rich.console import Console

# A text may hold control characters; on a terminal they are shown and not obeyed.
_SHOWN_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}


def write_verbatim(console: Console, text: str) -> None:
    """Past rich, which would fold lines and expand tabs."""
    safe = harmless(text) if console.is_terminal else text
    console.file.write(f"{safe}\n")


def harmless(text: str) -> str:
    """A name that someone else chose, without what a terminal would obey."""
    return text.translate(_SHOWN_CONTROLS)


def quoted(text: str) -> str:
    """So that blanks at its ends are seen."""
    return json.dumps(text, ensure_ascii=False)
