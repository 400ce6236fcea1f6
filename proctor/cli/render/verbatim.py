"""Texts that others chose, shown as they are and without harm to a terminal."""

import json
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# A text may hold control characters; on a terminal they are shown and not obeyed.
_SHOWN_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
# Those beyond ASCII have no sign of their own.
_SHOWN_CONTROLS |= {127: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


class HarmlessConsole(Console):
    """Whatever it shows, a user's name or a server's sentence, is nothing that a terminal would obey."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            is_plain = segment.control or segment.text.isprintable()
            yield segment if is_plain else Segment(harmless(segment.text), segment.style)


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
