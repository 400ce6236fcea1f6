"""The engine `openai`: any server that speaks the OpenAI protocol. It sends once: retries are above it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from proctor.values.outcome import ChoiceScore
from proctor.values.pools import ConstrainedField
from proctor.values.providers import EngineLoad, ModelCapabilities, ModelInfo, ProviderRules, rules_for
from proctor.values.sample import Prompt
from proctor.values.usage import Timing
from services.worker.engines import engine
from services.worker.engines.chat_messages import message_objects
from services.worker.engines.http.client import Dialect, Endpoint, HttpClient
from services.worker.engines.json_values import (
    Json,
    choice_schema,
    count_of,
    objects_of,
    read_choice,
    text_of,
)
from services.worker.engines.openai import responses
from services.worker.engines.openai.responses import STREAM_FIELDS, EchoedPrompt, OpenAIStream
from services.worker.engines.row_params import needs_full_response, refuse_parameters


@dataclass(frozen=True, slots=True)
class OpenAIServer:
    """What is known of a server by its host."""

    rules: ProviderRules
    needs_key: bool = False
    # The field that limits the answer to a chat; for a plain text it is max_tokens everywhere.
    chat_limit: str = "max_tokens"


ANY_SERVER = OpenAIServer(rules_for("openai"))
# OpenAI's reasoning models refuse max_tokens; its other models accept the newer field as well.
OPENAI = OpenAIServer(
    rules_for("openai", "api.openai.com"), needs_key=True, chat_limit="max_completion_tokens"
)
_SERVERS = {
    "api.openai.com": OPENAI,
    "api.x.ai": OpenAIServer(rules_for("openai", "api.x.ai"), needs_key=True),
}


def server_at(base_url: str) -> OpenAIServer:
    return _SERVERS.get(urlsplit(base_url).hostname or "", ANY_SERVER)


def constraint_fields(field: ConstrainedField | None, texts: Sequence[str]) -> Json:
    """The fields that constrain the answer to these texts; none where there are no texts."""
    if not texts:
        return {}
    match field:
        case None:
            raise engine.UnsupportedRequest(
                "The pool does not say how this server constrains an answer: set its constrained_field."
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
    """Unwraps the text where the constraint wrapped it in a JSON object."""
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
        needs_key_of = settings.server.rules.name if settings.server.needs_key else ""
        dialect = Dialect(parse_error=responses.parse_error, needs_key_of=needs_key_of)
        self._http = HttpClient(settings.endpoint, dialect)

    @property
    def loaded_model(self) -> str | None:
        """None: the server loads models by itself."""
        return None

    async def load(self, model: str) -> None:
        """Does nothing: an unknown model is refused by its first request."""

    async def generate(self, model: str, prompt: Prompt, sampling: engine.Sampling) -> engine.Generated:
        body = {"model": self._endpoint.server_model(model), **prompt_fields(prompt)}
        path = "/chat/completions" if prompt.is_chat else "/completions"
        is_streamed = sampling.is_streamed and not needs_full_response(sampling)
        stream = OpenAIStream(is_chat=prompt.is_chat) if is_streamed else None
        limit = self._settings.server.chat_limit if prompt.is_chat else "max_tokens"
        limits = {} if sampling.max_tokens is None else {limit: sampling.max_tokens}
        fields = self._sampling_fields(sampling) | limits | body | (STREAM_FIELDS if stream else {})
        response = await self._http.send(path, fields, stream)
        document, is_chat = response.document, prompt.is_chat
        generated = responses.read_generated(document, is_chat=is_chat, is_row=sampling.is_row)
        field, texts = self._settings.constrained_field, sampling.allowed_texts
        return read_constrained(response.with_timing(generated), field, texts)

    async def score_choices(
        self,
        model: str,
        prompt: Prompt,
        choices: Sequence[str],
        *,
        truncate_left: bool,  # noqa: ARG002 - only the server could cut a prompt in tokens
    ) -> engine.ScoredChoices:
        """One request for all choices."""
        if prompt.is_chat or not self._settings.has_loglikelihood:
            raise engine.UnsupportedRequest(
                "This server scores no given text after a chat prompt; order the task as generation instead."
            )
        context = prompt.as_text
        if not context.strip():
            raise engine.UnsupportedRequest("A choice cannot be scored after an empty prompt over HTTP.")
        texts = [context + choice for choice in choices]
        body = {"model": self._endpoint.server_model(model), **echo_fields(texts)}
        response = await self._http.send("/completions", body)
        scores = read_scores(response.document, len(context.rstrip()), texts)
        usage = replace(responses.read_usage(response.document), completion_tokens=0)
        return engine.ScoredChoices(scores, usage, Timing(total_seconds=response.total_seconds))

    async def list_models(self) -> tuple[ModelInfo, ...]:
        settings = self._settings
        capabilities = ModelCapabilities(
            loglikelihood=settings.has_loglikelihood,
            chat=True,
            completion=True,
            constrained=settings.constrained_field is not None,
            seed=True,
            # A server with log-probabilities of given texts has them for generated ones.
            logprobs=settings.has_loglikelihood,
        )
        document = await self._http.get("/models")
        return tuple(
            ModelInfo(
                f"{self._endpoint.provider}/{name}",
                context_tokens=count_of(each.get("max_model_len")) or None,
                capabilities=capabilities,
            )
            for each in objects_of(document.get("data"))
            if (name := text_of(each.get("id")))
        )

    def current_load(self) -> EngineLoad | None:
        return None

    async def describe(self) -> Mapping[str, str]:
        return self._endpoint.facts("openai")

    async def close(self) -> None:
        await self._http.close()

    def _sampling_fields(self, sampling: engine.Sampling) -> Json:
        """Only parameters that are set: a server may refuse those that it does not know.

        A row's further fields are passed on for the server to support or refuse.
        """
        refuse_parameters(sampling, self._settings.server.rules)
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


def prompt_fields(prompt: Prompt) -> Json:
    return {"messages": message_objects(prompt.messages)} if prompt.is_chat else {"prompt": prompt.as_text}


def echo_fields(texts: Sequence[str]) -> Json:
    """The one generated token is ignored: not every server accepts max_tokens=0."""
    return {"prompt": list(texts), "max_tokens": 1, "temperature": 0.0, "echo": True, "logprobs": 1}


def read_scores(document: Json, begin: int, texts: Sequence[str]) -> tuple[ChoiceScore, ...]:
    """White space at the end of the context is scored with the choice, as in lm-evaluation-harness."""
    choices = responses.read_choices(document)
    answered = sorted(choices, key=lambda choice: count_of(choice.get("index")))
    if len(answered) != len(texts):
        raise engine.ProviderFailed(f"The server scored {len(answered)} of {len(texts)} choices.")
    return tuple(
        responses.read_choice_score(choice, EchoedPrompt(begin, len(text)))
        for choice, text in zip(answered, texts, strict=True)
    )
