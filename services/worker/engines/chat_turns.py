"""A chat as turns, for servers with forms of their own: texts, calls of tools and the results of calls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import orjson

from proctor.values.sample import ChatMessage
from services.worker.engines.chat_messages import refuse_more_than_text
from services.worker.engines.parsed_json import object_of, text_of
from services.worker.engines.tool_calls import KEPT_FIELDS, ToolCall, calls_in

# Newer OpenAI models use the second name for the same role.
_SYSTEM_ROLES = frozenset({"system", "developer"})
_RESULT = "tool"
_TURN_FIELDS = frozenset({"tool_calls", "tool_call_id", *KEPT_FIELDS})


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a chat. One that `is_result` is the result of `call_id`, a call of `tool`."""

    role: str
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_result(self) -> bool:
        return self.role == _RESULT


def turns_of(messages: Sequence[ChatMessage], provider: str) -> list[Turn]:
    """Raises RequestRefused for a message with more than text, calls and results."""
    turns: list[Turn] = []
    names: dict[str, str] = {}
    for number, message in enumerate(messages, start=1):
        fields = object_of(orjson.loads(message.fields_json)) if message.fields_json else {}
        rest = {name: value for name, value in fields.items() if name not in _TURN_FIELDS}
        if message.role == _RESULT:
            # Some programs name the tool beside the id of its call.
            rest.pop("name", None)
        plain = replace(message, fields_json=orjson.dumps(rest).decode() if rest else "")
        refuse_more_than_text(plain, number, provider)
        calls = tuple(calls_in(fields))
        names |= {call.call_id: call.name for call in calls}
        call_id = text_of(fields.get("tool_call_id"))
        tool = names.get(call_id, text_of(fields.get("name")))
        turns.append(Turn(message.role, message.content, calls, call_id, tool, fields))
    return turns


def split_system(turns: Sequence[Turn]) -> tuple[str, tuple[Turn, ...]]:
    """The system prompt, which some servers take separately, and the other turns."""
    # Such servers take one system prompt, so all system messages of the chat are joined.
    system = "\n\n".join(each.content for each in turns if each.role in _SYSTEM_ROLES)
    return system, tuple(each for each in turns if each.role not in _SYSTEM_ROLES)


def with_results_joined(turns: Sequence[Turn]) -> Iterator[tuple[Turn, ...]]:
    """The results of one answer together, which some servers take as one turn; any other turn alone."""
    for is_result, same in groupby(turns, key=lambda turn: turn.is_result):
        if is_result:
            yield tuple(same)
        else:
            yield from ((turn,) for turn in same)
