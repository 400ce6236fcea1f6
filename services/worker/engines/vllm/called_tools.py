"""Reads the calls of tools in the text that a model wrote, by the parser that its pool names."""

from dataclasses import dataclass, replace
from typing import Any

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.tool_parsers import ToolParserManager

from proctor.values.outcome import Answer
from proctor.values.providers.pool import PoolModel
from proctor.values.usage import TokenUsage
from services.worker.engines.errors import ModelRefused, RequestRefused
from services.worker.engines.tool_calls import ToolCall, ToolRequest, with_calls


@dataclass(frozen=True, slots=True)
class CalledTools:
    """The parser of a model. `request` is as it would have come to vLLM's own server."""

    parser: Any
    request: Any

    def read(self, answer: Answer, usage: TokenUsage, model: str) -> Answer:
        """The answer with the calls in its text; a text that holds none stays as it is."""
        found = self.parser.extract_tool_calls(answer.text, self.request)
        if not found.tools_called:
            return answer
        calls = [ToolCall(each.id, each.function.name, each.function.arguments) for each in found.tool_calls]
        # The next turn of a conversation shows the model what it thought before the call.
        kept = {"reasoning_content": answer.reasoning} if answer.reasoning else None
        return with_calls(replace(answer, text=found.content or ""), usage, calls, model, kept)


def called_tools_of(model: PoolModel, tokenizer: object, asked: ToolRequest) -> CalledTools:
    """Raises RequestRefused where the pool names no parser, ModelRefused where vLLM has no such parser."""
    if not model.tool_parser:
        raise RequestRefused(
            f"The model {model.name} takes no tools: its tool_parser is not set in the pools file."
        )
    if asked.choice == "required":
        raise RequestRefused("The vLLM engine takes no tool_choice but auto and none.")
    try:
        parser = ToolParserManager.get_tool_parser(model.tool_parser)
    except (KeyError, ValueError, ImportError) as error:
        raise ModelRefused(f"vLLM has no tool parser {model.tool_parser}, which the pool names.") from error
    request = ChatCompletionRequest(messages=[], tools=[tool.as_json() for tool in asked.tools])
    return CalledTools(parser(tokenizer, request.tools), request)
