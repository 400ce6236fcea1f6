"""Ports of engines that ask a server by HTTP."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from proctor.values.making.quickly_made import quickly_made
from proctor.values.outcome import Answer
from proctor.values.plain import Json
from proctor.values.providers.models import ModelCapabilities, ModelInfo
from proctor.values.sample import Prompt
from proctor.values.usage import TokenUsage
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import RequestRefused
from services.worker.engines.http.event_stream import EventReader, StreamedText, StreamEvent
from services.worker.engines.http.query_client import QueryClient
from services.worker.engines.http.server import ServerDialect


class AnswerStream(Protocol):
    """Assembles the document that the same server sends unstreamed, so that one parser serves both."""

    @property
    def reader(self) -> EventReader: ...

    @property
    def text(self) -> StreamedText: ...

    @property
    def is_whole(self) -> bool:
        """Whether the protocol's end marker has arrived: without it the answer was cut off."""

    @property
    def ends_with_body(self) -> bool:
        """Whether more of the answer may follow that marker, until the end of the body."""

    def add(self, event: StreamEvent) -> None:
        """Raises AnswerError for an error event, ProviderFailed for an event that cannot be read."""

    def document(self) -> Json: ...


# Reads the document of a response.
ReadAnswer = Callable[[Json], tuple[Answer, TokenUsage]]


@quickly_made
@dataclass(frozen=True, slots=True)
class Request:
    """A request, and how its answer is read; `stream` assembles the document of a streamed one."""

    path: str
    body: Json
    read: ReadAnswer
    stream: AnswerStream | None = None
    # Whether a refusal teaches the API another form of this request, which is worth sending at once.
    learn: Callable[[RequestRefused], bool] | None = None
    # Stop sequences that the provider does not take: the answer is cut there.
    cut_at: Sequence[str] = ()


class ProviderApi(Protocol):
    """The part of an engine that differs between providers. Names of models are the server's own."""

    @property
    def dialect(self) -> ServerDialect: ...

    @property
    def capabilities(self) -> ModelCapabilities: ...

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts that a run stores besides the server."""

    def generation(self, model: str, prompt: Prompt, sampling: Sampling, /) -> Request: ...

    def scoring(self, model: str, prompt: Prompt, choices: Sequence[str], ending: str, /) -> Request: ...

    async def list_models(self, http: QueryClient, /) -> Iterable[ModelInfo]: ...
