"""Takes the reasoning out of the texts that a model writes in a chat, by vLLM's parser for that model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.outputs import CompletionOutput
from vllm.reasoning import ReasoningParserManager

from proctor.values.providers.pool import PoolModel
from services.worker.engines.errors import EngineFailure, ModelCannotLoad
from services.worker.engines.vllm.outputs import WrittenText

# The word of a pools file for no parser, where a model would have one by default.
_NO_PARSER = "none"
# vLLM's name for the harmony channels of gpt-oss, which it reads by other means. Proctor reads them as text.
_CHANNELS = "openai_gptoss"
# Marks that are special tokens, which are no part of a text. Those of all other models Proctor reads in it.
_BY_SPECIAL_TOKEN = {"[THINK]": "mistral", "<|START_THINKING|>": "cohere_command3", "<|channel>": "gemma4"}


@dataclass(frozen=True, slots=True)
class WrittenReasoning:
    """`parser` makes a parser for each answer; None where the marks stay in the text, to be read there.

    `name` is vLLM's. `keeps_special_tokens`: whether the texts must have them, as the marks are among them.
    """

    name: str
    parser: Callable[..., Any] | None
    request: ChatCompletionRequest
    keeps_special_tokens: bool

    def read(self, output: CompletionOutput, template: Mapping[str, object]) -> WrittenText:
        """`template`: the row's fields for the chat template, such as whether the model is to think.

        Raises EngineFailure where the parser fails on the text.
        """
        if self.parser is None:
            return WrittenText(output.text)
        try:
            parser = self.parser(chat_template_kwargs=dict(template))
            reasoning, content = parser.extract_reasoning(output.text, self.request)
            tokens = parser.count_reasoning_tokens(output.token_ids)
        except Exception as error:  # an edge, as below: its answer alone fails
            problem = f"{type(error).__name__}: {error}"
            raise EngineFailure(
                f"vLLM's reasoning parser {self.name} failed on the answer ({problem})."
            ) from error
        return WrittenText(content or "", reasoning or "", tokens)


def check_reasoning_parsers(models: Sequence[PoolModel]) -> None:
    """Raises ModelCannotLoad where vLLM has no parser of the name that the pools file gives for a model."""
    known = ReasoningParserManager.list_registered()
    for model in models:
        if model.reasoning_parser not in ("", _NO_PARSER, *known):
            raise ModelCannotLoad(
                f"vLLM has no reasoning parser {model.reasoning_parser}, which the pools file names for "
                f"{model.name}. It has: {', '.join(known)}; {_NO_PARSER} turns it off."
            )


def written_reasoning(model: PoolModel, tokenizer: Any, known: str) -> WrittenReasoning | None:
    """`known`: the parser that vLLM itself knows for the model, "" for none.

    Raises ModelCannotLoad where the model's tokens lack what the parser needs.
    """
    name = model.reasoning_parser or known or _by_special_token(tokenizer)
    request = ChatCompletionRequest(messages=[])
    if name in ("", _NO_PARSER):
        return None
    if name == _CHANNELS:
        return WrittenReasoning(name, None, request, keeps_special_tokens=True)
    made = ReasoningParserManager.get_reasoning_parser(name)
    try:
        adjusted = made(tokenizer).adjust_request(request)
    except Exception as error:  # an edge: parsers are foreign code, and each has errors of its own
        raise ModelCannotLoad(
            f"vLLM's reasoning parser {name} cannot read the model {model.name}: {error}"
        ) from error
    return WrittenReasoning(
        name,
        lambda **settings: made(tokenizer, **settings),
        adjusted,
        keeps_special_tokens=not adjusted.skip_special_tokens,
    )


def _by_special_token(tokenizer: Any) -> str:
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    special = {*tokenizer.all_special_tokens, *(str(token) for token in added if token.special)}
    return next((parser for token, parser in _BY_SPECIAL_TOKEN.items() if token in special), "")
