"""Texts of users and models, shown as they are and without effect on the terminal."""

import json
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# Control characters in a text are shown as signs, so that the terminal does not obey them. Unicode has no signs
# for those beyond ASCII.
_SHOWN_CONTROLS = (
    {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
    | {127: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)


class HarmlessConsole(Console):
    """Prints names and sentences of others without the control characters in them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            is_plain = segment.control or segment.text.isprintable()
            yield segment if is_plain else Segment(_harmless(segment.text), segment.style)


def write_verbatim(console: Console, text: str) -> None:
    """Bypasses rich, which would fold lines and expand tabs."""
    safe = _harmless(text) if console.is_terminal else text
    console.file.write(f"{safe}\n")


def quoted(text: str) -> str:
    """As a JSON string, so that spaces at its ends are visible."""
    return json.dumps(text, ensure_ascii=False)


def _harmless(text: str) -> str:
    return text.translate(_SHOWN_CONTROLS)
