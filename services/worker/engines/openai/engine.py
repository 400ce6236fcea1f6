"""The engine `openai`: any server that speaks the OpenAI protocol. It sends once: retries are above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from services.worker.engines import engine
from services.worker.engines.chat_messages import message_objects
from services.worker.engines.http.client import Dialect, Endpoint, HttpExchange
from services.worker.engines.json_values import (
    Json,
    choice_schema,
    count_of,
    objects_of,
    read_choice,
    text_of,
)
from services.worker.engines.openai import responses as openai_answers
from services.worker.engines.openai import responses as openai_failures
from services.worker.engines.openai.responses import STREAM_FIELDS, EchoedPrompt, OpenAIStream
from services.worker.engines.unsupported import asks_for_more_than_text, refuse_parameters
from services.worker.pools.pool import ConstrainedField

# Many servers behind the protocol take more than the two that are known here document.
_STRICT = ("top_k", "repetition_penalty", "context_tokens")


@dataclass(frozen=True, slots=True)
class OpenAIServer:
    """`name` as people write it; `unknown` are the parameters of a run that it does not take."""

    name: str
    unknown: tuple[str, ...] = ("context_tokens",)
    needs_key: bool = False
    # The field that limits the answer to a chat; to a plain text it is max_tokens everywhere.
    chat_limit: str = "max_tokens"


ANY_SERVER = OpenAIServer("A server behind the OpenAI protocol")
# OpenAI's reasoning models refuse max_tokens, and its other models take the newer field as well.
OPENAI = OpenAIServer("OpenAI", _STRICT, needs_key=True, chat_limit="max_completion_tokens")
_SERVERS = {"api.openai.com": OPENAI, "api.x.ai": OpenAIServer("xAI", _STRICT, needs_key=True)}


def server_at(base_url: str) -> OpenAIServer:
    return _SERVERS.get(urlsplit(base_url).hostname or "", ANY_SERVER)


def constraint_fields(field: ConstrainedField | None, texts: Sequence[str]) -> Json:
    """What of a request holds the answer to these texts; nothing where there are none."""
    if not texts:
        return {}
    match field:
        case None:
            raise engine.UnsupportedRequest(
                "Nobody said how this server constrains an answer: set the pool's constrained_field."
            )
        case ConstrainedField.STRUCTURED_OUTPUTS:
            return {field.value: {"choice": list(texts)}}
        case ConstrainedField.GUIDED_CHOICE:
            return {field.value: list(texts)}
        case ConstrainedField.RESPONSE_FORMAT:
            return {field.value: _json_schema(texts)}


def _json_schema(texts: Sequence[str]) -> Json:
    schema = choice_schema(texts)
    return {"type": "json_schema", "json_schema": {"name": "choice", "strict": True, "schema": schema}}


def read_constrained(
    generated: engine.Generated, field: ConstrainedField | None, texts: Sequence[str]
) -> engine.Generated:
    """The text itself, out of the object that it stands in where it does."""
    if not texts or field is not ConstrainedField.RESPONSE_FORMAT:
        return generated
    return replace(generated, text=read_choice(generated.text))


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    endpoint: Endpoint
    has_loglikelihood: bool = True
    constrained_field: ConstrainedField | None = None
    server: OpenAIServer = ANY_SERVER


class OpenAIEngine:
    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings
        self._endpoint = settings.endpoint
        needs_key_of = settings.server.name if settings.server.needs_key else ""
        dialect = Dialect(read_error=openai_failures.read_error, needs_key_of=needs_key_of)
        self._http = HttpExchange(settings.endpoint, dialect)

    @property
    def loaded_model(self) -> str | None:
        """The server loads what it is asked for, so none is loaded more than another."""
        return None

    async def load(self, model: str) -> None:
        """Nothing to do: an unknown model is refused when it is asked."""

    async def generate(
        self, model: str, prompt: engine.Prompt, sampling: engine.Sampling
    ) -> engine.Generated:
        body = {"model": self._endpoint.server_model(model), **prompt_fields(prompt)}
        path = "/chat/completions" if prompt.is_chat else "/completions"
        is_streamed = sampling.is_streamed and not asks_for_more_than_text(sampling)
        stream = OpenAIStream(is_chat=prompt.is_chat) if is_streamed else None
        limit = self._settings.server.chat_limit if prompt.is_chat else "max_tokens"
        limits = {} if sampling.max_tokens is None else {limit: sampling.max_tokens}
        fields = self._sampling_fields(sampling) | limits | body | (STREAM_FIELDS if stream else {})
        answer = await self._http.ask(path, fields, stream)
        document, is_chat = answer.document, prompt.is_chat
        generated = openai_answers.read_generated(document, is_chat=is_chat, is_row=sampling.is_row)
        field, texts = self._settings.constrained_field, sampling.allowed_texts
        return read_constrained(answer.timed(generated), field, texts)

    async def score_choices(
        self,
        model: str,
        prompt: engine.Prompt,
        choices: Sequence[str],
        *,
        truncate_left: bool,  # noqa: ARG002 - a prompt is cut in tokens, which only the server knows
    ) -> engine.ScoredChoices:
        """One request for all choices."""
        if prompt.is_chat or not self._settings.has_loglikelihood:
            raise engine.UnsupportedRequest(
                "This server scores no given text after a chat prompt; order the task as generation instead."
            )
        if not prompt.text.strip():
            raise engine.UnsupportedRequest("A choice cannot be scored after an empty prompt over HTTP.")
        texts = [prompt.text + choice for choice in choices]
        body = {"model": self._endpoint.server_model(model), **echo_fields(texts)}
        answer = await self._http.ask("/completions", body)
        scores = read_scores(answer.document, len(prompt.text.rstrip()), texts)
        usage = replace(openai_answers.read_usage(answer.document), completion_tokens=0)
        return engine.ScoredChoices(scores, usage, engine.Timing(total_seconds=answer.total_seconds))

    async def list_models(self) -> tuple[engine.ModelInfo, ...]:
        settings = self._settings
        capabilities = engine.EngineCapabilities(
            loglikelihood=settings.has_loglikelihood,
            chat=True,
            completion=True,
            constrained=settings.constrained_field is not None,
            seed=True,
            # A server that tells those of a given text tells those of its own.
            logprobs=settings.has_loglikelihood,
        )
        document = await self._http.get("/models")
        return tuple(
            engine.ModelInfo(
                f"{self._endpoint.provider}/{name}", capabilities, count_of(each.get("max_model_len")) or None
            )
            for each in objects_of(document.get("data"))
            if (name := text_of(each.get("id")))
        )

    def load_now(self) -> engine.EngineLoad | None:
        return None

    async def describe(self) -> Mapping[str, str]:
        return self._endpoint.facts("openai")

    async def close(self) -> None:
        await self._http.close()

    def _sampling_fields(self, sampling: engine.Sampling) -> Json:
        """Only what was set is sent: a server may refuse what it does not know. Ours win over extras.

        What a row asks for is the server's to know or to refuse.
        """
        refuse_parameters(sampling, self._settings.server.unknown, self._settings.server.name)
        optional = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            "repetition_penalty": sampling.repetition_penalty,
        }
        chosen = {name: value for name, value in optional.items() if value is not None}
        constraint = constraint_fields(self._settings.constrained_field, sampling.allowed_texts)
        return {**sampling.extra, **sampling.row_extra, **chosen, **constraint}


def prompt_fields(prompt: engine.Prompt) -> Json:
    return {"messages": message_objects(prompt.messages)} if prompt.is_chat else {"prompt": prompt.text}


def echo_fields(texts: Sequence[str]) -> Json:
    """The one generated token is dropped again: not every server takes max_tokens=0."""
    return {"prompt": list(texts), "max_tokens": 1, "temperature": 0.0, "echo": True, "logprobs": 1}


def read_scores(document: Json, begin: int, texts: Sequence[str]) -> tuple[engine.ChoiceScore, ...]:
    """White space at the end of the context is scored with the choice, as in lm-evaluation-harness."""
    choices = openai_answers.read_choices(document)
    answered = sorted(choices, key=lambda choice: count_of(choice.get("index")))
    if len(answered) != len(texts):
        raise engine.ProviderFailed(f"The server scored {len(answered)} of {len(texts)} choices.")
    return tuple(
        openai_answers.read_choice_score(choice, EchoedPrompt(begin, len(text)))
        for choice, text in zip(answered, texts, strict=True)
    )
