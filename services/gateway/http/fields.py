"""Types of fields that several APIs read."""

from typing import Annotated

from pydantic import AfterValidator

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def _utf8(text: str) -> str:
    """JSON can hold half a character (a lone surrogate), which protobuf cannot."""
    text.encode()  # raises UnicodeEncodeError, a ValueError
    return text


Text = Annotated[str, AfterValidator(_utf8)]
