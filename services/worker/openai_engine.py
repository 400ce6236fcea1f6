"""The engine `openai`: any server that speaks the OpenAI protocol. It asks once: retrying is done above."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import aiohttp
import orjson
from yarl import URL

from services.worker import engine, openai_answers, openai_failures
from services.worker.openai_answers import EchoedPrompt, Json


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """`provider` is the first part of a model's name in runs and is not sent to the server."""

    base_url: str
    provider: str = "openai"
    api_key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 600.0
    connect_timeout_seconds: float = 10.0
    connections: int = 256
    has_loglikelihood: bool = True
    # A plain prompt goes to /completions; a chat-only server gets it as one message of the user.
    has_completions: bool = True
    # Newer models of OpenAI itself want "max_completion_tokens".
    max_tokens_field: str = "max_tokens"


class OpenAIEngine:
    """A pool of connections; made inside a running event loop and closed by `close`."""

    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings
        self._base_url = settings.base_url.rstrip("/")
        headers = {"Content-Type": "application/json"}
        if settings.api_key:
            headers["Authorization"] = f"Bearer {settings.api_key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=settings.connections, keepalive_timeout=60),
            timeout=aiohttp.ClientTimeout(
                total=settings.timeout_seconds, sock_connect=settings.connect_timeout_seconds
            ),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    @property
    def loaded_model(self) -> str | None:
        """The server loads what it is asked for, so none is loaded more than another."""
        return None

    async def load(self, model: str) -> None:
        """Nothing to do: an unknown model is refused when it is asked."""

    async def generate(
        self, model: str, prompt: engine.Prompt, sampling: engine.Sampling
    ) -> engine.Generated:
        started = time.monotonic()
        is_chat = prompt.is_chat or not self._settings.has_completions
        body = {"model": self._server_model(model), **prompt_fields(prompt, is_chat=is_chat)}
        path = "/chat/completions" if is_chat else "/completions"
        document = await self._post(path, self._sampling_fields(sampling) | body)
        seconds = time.monotonic() - started
        return openai_answers.read_generated(document, is_chat=is_chat, total_seconds=seconds)

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
        started = time.monotonic()
        texts = [prompt.text + choice for choice in choices]
        document = await self._post(
            "/completions", {"model": self._server_model(model), **echo_fields(texts)}
        )
        scores = read_scores(document, len(prompt.text.rstrip()), texts)
        timing = engine.Timing(total_seconds=time.monotonic() - started)
        usage = replace(openai_answers.read_usage(document), completion_tokens=0)
        return engine.ScoredChoices(scores, usage, timing)

    async def list_models(self) -> tuple[engine.ModelInfo, ...]:
        settings = self._settings
        capabilities = engine.EngineCapabilities(
            loglikelihood=settings.has_loglikelihood, chat=True, completion=settings.has_completions
        )
        document = await self._exchange("GET", "/models", None)
        models = [each for each in document.get("data") or () if isinstance(each, dict) and each.get("id")]
        return tuple(
            engine.ModelInfo(f"{settings.provider}/{each['id']}", capabilities, each.get("max_model_len"))
            for each in models
        )

    async def describe(self) -> Mapping[str, str]:
        return {
            "engine": "openai",
            "engine_version": f"aiohttp {aiohttp.__version__}",
            "provider": self._settings.provider,
            "base_url": str(URL(self._base_url).with_user(None)),
        }

    async def close(self) -> None:
        await self._session.close()

    def _server_model(self, model: str) -> str:
        return model.removeprefix(f"{self._settings.provider}/")

    def _sampling_fields(self, sampling: engine.Sampling) -> Json:
        """Only what was set is sent: a server may refuse what it does not know. Ours win over extras."""
        optional = {
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            "repetition_penalty": sampling.repetition_penalty,
        }
        chosen = {name: value for name, value in optional.items() if value is not None}
        limits = {self._settings.max_tokens_field: sampling.max_tokens, "temperature": sampling.temperature}
        return dict(sampling.extra) | limits | chosen

    async def _post(self, path: str, body: Json) -> Json:
        return await self._exchange("POST", path, orjson.dumps(body))

    async def _exchange(self, method: str, path: str, payload: bytes | None) -> Json:
        """One request; cancelling it closes the connection, by which a server knows that nobody waits."""
        try:
            async with self._session.request(method, self._base_url + path, data=payload) as response:
                body = await response.read()
        except TimeoutError as error:
            raise engine.RequestTimedOut(f"The server at {self._host} did not answer in time.") from error
        except aiohttp.ClientPayloadError as error:
            raise engine.ProviderFailed(f"The answer of the server at {self._host} was cut off.") from error
        except aiohttp.InvalidURL as error:
            raise engine.RequestRefused("The provider's base URL is not valid; check the pool.") from error
        except (aiohttp.ClientError, OSError) as error:
            reason = f"The server at {self._host} cannot be reached or closed the connection"
            raise engine.ProviderFailed(f"{reason} ({type(error).__name__}).") from error
        if response.status >= 400:
            said = self._without_key(body)
            raise openai_failures.failure_from_status(
                response.status, response.headers, said, now=time.time()
            )
        return openai_answers.read_document(body)

    @property
    def _host(self) -> str:
        url = URL(self._base_url)
        return f"{url.host}:{url.port}"

    def _without_key(self, body: bytes) -> bytes:
        """Servers like to repeat the key that they refuse."""
        key = self._settings.api_key
        return body.replace(key.encode(), b"***") if key else body


def prompt_fields(prompt: engine.Prompt, *, is_chat: bool) -> Json:
    if not is_chat:
        return {"prompt": prompt.text}
    messages = prompt.messages or (engine.ChatMessage("user", prompt.text),)
    return {"messages": [{"role": each.role, "content": each.content} for each in messages]}


def echo_fields(texts: Sequence[str]) -> Json:
    """The one generated token is dropped again: not every server takes max_tokens=0."""
    return {"prompt": list(texts), "max_tokens": 1, "temperature": 0.0, "echo": True, "logprobs": 1}


def read_scores(document: Json, begin: int, texts: Sequence[str]) -> tuple[engine.ChoiceScore, ...]:
    """White space at the end of the context is scored with the choice, as in lm-evaluation-harness."""
    choices = openai_answers.read_choices(document)
    answered = sorted(choices, key=lambda choice: openai_answers.read_count(choice.get("index")))
    if len(answered) != len(texts):
        raise engine.ProviderFailed(f"The server scored {len(answered)} of {len(texts)} choices.")
    return tuple(
        openai_answers.read_choice_score(choice, EchoedPrompt(begin, len(text)))
        for choice, text in zip(answered, texts, strict=True)
    )
