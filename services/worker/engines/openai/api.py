"""The API of the engine `openai`: any server that speaks the OpenAI protocol."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.plain import Json
from proctor.values.providers.base_urls import host_of
from proctor.values.providers.models import ModelCapabilities, ModelInfo
from proctor.values.providers.pool import ConstrainedField, MaxTokensField
from proctor.values.providers.rules import ProviderRules, rules_for
from proctor.values.sample import Prompt
from proctor.values.usage import TokenUsage
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import ProviderFailed, RequestRefused, UnsupportedRequest
from services.worker.engines.http.error_responses import SCORING_ADVICE
from services.worker.engines.http.ports import Request
from services.worker.engines.http.query_client import QueryClient
from services.worker.engines.http.server import ServerDialect
from services.worker.engines.http.usage import openai_usage
from services.worker.engines.openai import responses
from services.worker.engines.openai.generation_form import GenerationForm, GenerationForms
from services.worker.engines.openai.refused_limits import RefusedLimits
from services.worker.engines.parsed_json import (
    choice_schema,
    count_of,
    moment_of,
    objects_of,
    read_choice,
    text_of,
)
from services.worker.engines.row_params import needs_full_response, refuse_parameters

_PARAMETERS = {name: name for name in ("temperature", "top_p", "top_k", "seed", "stop", "repetition_penalty")}


@dataclass(frozen=True, slots=True)
class OpenAIServer:
    """Facts about a server that follow from its host."""

    rules: ProviderRules
    # Limits the answer to a chat; for a plain text it is max_tokens everywhere.
    chat_limit: MaxTokensField = MaxTokensField.MAX_TOKENS


ANY_SERVER = OpenAIServer(rules_for("openai"))
# OpenAI's reasoning models refuse max_tokens; its other models accept the newer field as well.
OPENAI = OpenAIServer(rules_for("openai", "api.openai.com"), chat_limit=MaxTokensField.MAX_COMPLETION_TOKENS)
_SERVERS = {
    "api.openai.com": OPENAI,
    "api.x.ai": OpenAIServer(rules_for("openai", "api.x.ai")),
}
# OpenAI's models at its regional hosts and at Azure.
_OPENAI_HOSTS = (".api.openai.com", ".openai.azure.com", ".services.ai.azure.com")


def server_at(base_url: str) -> OpenAIServer:
    host = host_of(base_url)
    if host.endswith(_OPENAI_HOSTS):
        return replace(ANY_SERVER, chat_limit=OPENAI.chat_limit)
    return _SERVERS.get(host, ANY_SERVER)


@dataclass(frozen=True, slots=True)
class OpenAIApi:
    has_loglikelihood: bool = True
    constrained_field: ConstrainedField | None = None
    server: OpenAIServer = ANY_SERVER
    # The pool's choice; without one the server's host decides.
    max_tokens_field: MaxTokensField | None = None
    _refused_limits: RefusedLimits = field(default_factory=RefusedLimits)
    _forms: GenerationForms = field(default_factory=GenerationForms)
    facts: ClassVar[Mapping[str, str]] = {"engine": "openai"}

    @property
    def dialect(self) -> ServerDialect:
        rules = self.server.rules
        return ServerDialect(
            parse_error=responses.parse_error, needs_key_of=rules if rules.keys_page else None
        )

    @property
    def capabilities(self) -> ModelCapabilities:
        return ModelCapabilities(
            loglikelihood=self.has_loglikelihood,
            chat=True,
            completion=True,
            constrained=self.constrained_field is not None,
            seed=True,
            # A server with log-probabilities of given texts has them for generated ones.
            logprobs=self.has_loglikelihood,
        )

    def generation(self, model: str, prompt: Prompt, sampling: Sampling) -> Request:
        is_chat = prompt.is_chat
        form = self._forms.find(model, sampling, is_chat=is_chat)
        if form is None:
            form = self._form(model, sampling, is_chat=is_chat)
            self._forms.keep(model, form)
        return form.request(prompt)

    def _form(self, model: str, sampling: Sampling, *, is_chat: bool) -> GenerationForm:
        limit = self._limit_field(model, sampling) if is_chat else MaxTokensField.MAX_TOKENS
        limits = {} if sampling.max_tokens is None else {limit.value: sampling.max_tokens}
        is_kept = sampling.is_row or needs_full_response(sampling)

        def read(document: Json) -> tuple[Answer, TokenUsage]:
            answer, usage = responses.read_answer(document, is_chat=is_chat, is_kept=is_kept)
            return read_constrained(answer, self.constrained_field, sampling.allowed_texts), usage

        def learn(refusal: RequestRefused) -> bool:
            if not (limits and is_chat and self._refused_limits.learn(model, limit, refusal)):
                return False
            self._forms.forget()
            return True

        return GenerationForm(
            sampling=sampling,
            is_chat=is_chat,
            fields=self._sampling_fields(sampling) | limits | {"model": model},
            is_streamed=sampling.is_streamed and not needs_full_response(sampling),
            read=read,
            learn=learn,
        )

    def _limit_field(self, model: str, sampling: Sampling) -> MaxTokensField:
        """As the row writes it, else the pool's or the host's; the other one after the server's refusal."""
        written = sampling.max_tokens_name
        wanted = MaxTokensField(written) if written else self.max_tokens_field or self.server.chat_limit
        return self._refused_limits.field_for(model, wanted)

    def _sampling_fields(self, sampling: Sampling) -> Json:
        """Only parameters that are set: a server may refuse those that it does not know.

        A row's further fields are passed on for the server to support or refuse.
        """
        refuse_parameters(sampling, self.server.rules)
        constraint = constraint_fields(self.constrained_field, sampling.allowed_texts)
        return {**sampling.extra, **sampling.row_extra, **sampling.named(_PARAMETERS), **constraint}

    def scoring(self, model: str, prompt: Prompt, choices: Sequence[str], ending: str = "") -> Request:
        """The server echoes prompt and choice; the one generated token is ignored."""
        if prompt.is_chat or not self.has_loglikelihood:
            raise UnsupportedRequest(
                f"This server scores no given text after a chat prompt ({SCORING_ADVICE})."
            )
        texts = [prompt.as_text + choice for choice in choices]
        contexts = [text.removesuffix(ending) if ending else prompt.as_text for text in texts]
        # Servers differ in whether they put a token before an empty prompt, which scores depend on.
        if not all(context.strip() for context in contexts):
            raise UnsupportedRequest("A choice cannot be scored after an empty prompt over HTTP.")
        # White space at the end of a context is scored with the choice, as in lm-evaluation-harness.
        scored = [
            range(len(context.rstrip()), len(text)) for context, text in zip(contexts, texts, strict=True)
        ]

        def read(document: Json) -> tuple[Answer, TokenUsage]:
            usage = replace(openai_usage(document), completion_tokens=0)
            return Answer(choices=read_scores(document, scored)), usage

        # Not every server accepts max_tokens=0.
        body = {"model": model, "prompt": texts, "max_tokens": 1, "temperature": 0.0}
        return Request("/completions", body | {"echo": True, "logprobs": 1}, read)

    async def list_models(self, http: QueryClient) -> Iterable[ModelInfo]:
        listed = objects_of((await http.get("/models")).get("data"))
        return [
            ModelInfo(
                name,
                context_tokens=count_of(each.get("max_model_len")) or None,
                created_at=moment_of(each.get("created")),
            )
            for each in listed
            if (name := text_of(each.get("id")))
        ]


def constraint_fields(field: ConstrainedField | None, texts: Sequence[str]) -> Json:
    """The fields that constrain the answer to these texts; none without texts."""
    if not texts:
        return {}
    match field:
        case None:
            raise UnsupportedRequest(
                "The pool does not say how this server constrains an answer: set its constrained_field."
            )
        case ConstrainedField.STRUCTURED_OUTPUTS:
            return {field.value: {"choice": list(texts)}}
        case ConstrainedField.GUIDED_CHOICE:
            return {field.value: list(texts)}
        case ConstrainedField.RESPONSE_FORMAT:
            schema = {"name": "choice", "strict": True, "schema": choice_schema(texts)}
            return {field.value: {"type": "json_schema", "json_schema": schema}}


def read_constrained(answer: Answer, field: ConstrainedField | None, texts: Sequence[str]) -> Answer:
    """Unwraps the text where the constraint wrapped it in a JSON object."""
    if not texts or field is not ConstrainedField.RESPONSE_FORMAT:
        return answer
    return replace(answer, text=read_choice(answer.text))


def read_scores(document: Json, scored: Sequence[range]) -> tuple[ChoiceScore, ...]:
    """`scored`: of each choice the characters of the echoed text that are scored."""
    choices = responses.read_choices(document)
    # The protocol does not promise the order of choices.
    answered = sorted(choices, key=lambda choice: count_of(choice.get("index")))
    if len(answered) != len(scored):
        raise ProviderFailed(f"The server scored {len(answered)} of {len(scored)} choices.")
    return tuple(
        responses.read_choice_score(choice, part) for choice, part in zip(answered, scored, strict=True)
    )
