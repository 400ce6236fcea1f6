"""The wait of one request for its provider, as its caller sees it."""

from dataclasses import dataclass

from services.worker.engines.errors import EngineFailure


@dataclass(slots=True, eq=False)
class RequestWait:
    """`is_sent`: the provider works on its answer now. `failure` is that of its latest try."""

    is_sent: bool = False
    failure: EngineFailure | None = None

    async def until_turn(self) -> None:
        """Returns when the request may be tried: at once, unless a caller delays it."""
