"""Text that came in over HTTP."""

from typing import Annotated

from pydantic import AfterValidator


def _utf8(text: str) -> str:
    """JSON can write half a character (a lone surrogate), which nothing behind this door can carry."""
    text.encode()  # raises UnicodeEncodeError, a ValueError
    return text


Text = Annotated[str, AfterValidator(_utf8)]
