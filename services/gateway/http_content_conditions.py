"""Which part of some content a request wants, and on what condition."""

from typing import Annotated

from fastapi import Header


class ContentConditions:
    """A dependency of paths whose answer may be gone on with. `range` is as it came; "" for all."""

    def __init__(
        self,
        byte_range: Annotated[
            str, Header(alias="Range", description='One of bytes, such as "bytes=9-"')
        ] = "",
        if_range: Annotated[str, Header(description="The range only if this is its ETag")] = "",
        if_none_match: Annotated[str, Header(description="ETags of what the client has")] = "",
    ) -> None:
        self.range = byte_range
        self._if_range = if_range
        self._if_none_match = if_none_match

    def range_of(self, tag: str) -> str:
        """The range that is wanted of the content with this ETag."""
        return self.range if self._if_range in ("", tag) else ""

    def has(self, tag: str) -> bool:
        """Whether the client has the content with this ETag."""
        return tag in [each.strip().removeprefix("W/") for each in self._if_none_match.split(",")]
