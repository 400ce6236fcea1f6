"""How long a connection's peer has taken none of the bytes that are ready for it."""


class UnsentBytes:
    """The bytes of one connection that its peer has not taken yet. Times are in seconds of one clock."""

    def __init__(self) -> None:
        self._size = 0
        self._since: float | None = None

    def begin(self, size: int, now: float) -> None:
        """`size` bytes could not be sent at once."""
        self._size, self._since = size, now

    def end(self) -> None:
        """All were sent."""
        self._since = None

    def stalled_seconds(self, size: int, now: float) -> float:
        """The time in which the peer took nothing; `size` bytes are left now. 0 where nothing was left.

        Any progress counts: a slow peer may take hours for a large download.
        """
        if self._since is None:
            return 0.0
        if size < self._size:
            self.begin(size, now)
        return now - self._since
