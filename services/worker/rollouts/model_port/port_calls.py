"""The calls of an agent's program: one at a time, each a step of its budgets and trajectory."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from proctor.values.outcome import FailureClass
from proctor.values.plain import Json
from proctor.values.sample import ChatMessage
from services.common.clock import Clock
from services.worker.engines.engine import EngineResponse
from services.worker.engines.parsed_json import object_of, objects_of, text_of
from services.worker.engines.tool_calls import ToolCall, answered_turn, called_tools, calls_in
from services.worker.rollouts.budget import Budget
from services.worker.rollouts.errors import ContextFull, ModelFailed
from services.worker.rollouts.model_port.model_call import CONTEXT_FULL, CallRefused, ModelAnswer, ModelCall
from services.worker.rollouts.ports import AskModel
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.rollouts.trajectory import Trajectory

_LENGTH = "length"
_LENGTHS = ("max_tokens", "max_completion_tokens")
_SYSTEM_ROLES = ("system", "developer")


@dataclass(slots=True)
class PortCalls:
    """`over` is set once the program may ask no more: by a budget (`end`), or by a failure (`error`)."""

    ask: AskModel
    budget: Budget
    trajectory: Trajectory
    checkpoint: Callable[[Trajectory], Awaitable[None]]
    clock: Clock
    over: asyncio.Event = field(default_factory=asyncio.Event)
    end: AgentEnd | None = None
    error: Exception | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _shown: int = 0
    _has_answer: bool = False
    # The turns of answers that called tools, by their calls: servers may give an id again in a later answer.
    _answered: dict[bytes, Json] = field(default_factory=dict)
    _began_at: float = 0.0
    _asking_since: float | None = None
    # Time in which the program waited for its calls; it belongs to the answers.
    _waited_seconds: float = 0.0
    _noted_seconds: float = 0.0

    def begin(self) -> None:
        self._began_at = self.clock.monotonic()

    @property
    def seconds_left(self) -> float:
        return self.budget.seconds_left - (self._own_seconds() - self._noted_seconds)

    def note_time(self) -> None:
        """Adds the program's own time since the last note to the budget."""
        own = self._own_seconds()
        self.budget.add_seconds(own - self._noted_seconds)
        self._noted_seconds = own

    async def answer(self, call: ModelCall) -> ModelAnswer:
        """Raises CallRefused."""
        async with self._turn:
            if self.over.is_set():
                raise CallRefused(403, "The rollout is over.", "insufficient_quota")
            self.note_time()
            self._asking_since = self.clock.monotonic()
            try:
                return await self._answer(call)
            except (CallRefused, asyncio.CancelledError):
                raise
            except Exception as error:
                # The machinery failed, which the program cannot mend: the rollout ends with it.
                self.error = error
                self.over.set()
                raise CallRefused(503, "The rollout is over: its model failed.") from error
            finally:
                self._waited_seconds += self.clock.monotonic() - self._asking_since
                self._asking_since = None

    async def _answer(self, call: ModelCall) -> ModelAnswer:
        if end := await self.budget.begin_agent_step():
            self.end = end
            self.over.set()
            raise CallRefused(403, f"The rollout is over: {end.value}.", "insufficient_quota")
        self._show(call)
        try:
            response = await self.ask(tuple(map(self._with_kept, call.messages)), self._bounded(call.params))
        except ContextFull as error:
            sentence = "The conversation is longer than the model's context."
            raise CallRefused(400, sentence, CONTEXT_FULL) from error
        except ModelFailed as failed:
            # The first call is the program's own; later ones may be chosen by the model, which must not end
            # its rollout without a score by asking what no provider answers.
            if failed.failure.failure_class is not FailureClass.REFUSED or not self._has_answer:
                raise
            await self.budget.add_answer(failed.usage, 0.0)
            raise CallRefused(400, failed.failure.message) from failed
        self._has_answer = True
        await self.budget.add_answer(response.usage, response.timing.total_seconds)
        self.trajectory.add_answer(response.answer.text, response.usage, self.clock.now())
        answer = _answer_of(response)
        if answer.tool_calls:
            fields = object_of(orjson.loads(answered_turn(response.answer).fields_json))
            self._answered[_calls_key(answer.tool_calls)] = fields
        for tool in answer.tool_calls:
            self.trajectory.add_call(tool.call_id, tool.name, tool.arguments)
        await self.checkpoint(self.trajectory)
        return answer

    def _bounded(self, params: Mapping[str, object]) -> Mapping[str, object]:
        """No answer may be longer than what is left of the tokens, whatever the program asks for."""
        left = self.budget.tokens_left
        longer = {name for name in _LENGTHS if isinstance(asked := params.get(name), int) and asked > left}
        return {name: left if name in longer else value for name, value in params.items()}

    def _show(self, call: ModelCall) -> None:
        """The new turns of a history that has grown.

        A history that has not grown is another conversation, whose turns are all new.
        """
        if len(call.messages) < self._shown:
            self._shown = 0
        for message in call.messages[self._shown :]:
            if message.role == "tool":
                call_id = text_of(object_of(orjson.loads(message.fields_json or "{}")).get("tool_call_id"))
                self.trajectory.add_result(call_id, message.content, self.clock.now())
            elif message.role != "assistant":
                source = "system" if message.role in _SYSTEM_ROLES else "user"
                self.trajectory.add(source, message.content, self.clock.now())
        self._shown = len(call.messages)

    def _with_kept(self, message: ChatMessage) -> ChatMessage:
        """A turn of the model with what its provider needs back, and the program's protocol may drop.

        The calls stay as the program shows them.
        """
        fields = object_of(orjson.loads(message.fields_json or "{}"))
        calls = calls_in(fields)
        known = self._answered.get(_calls_key(calls)) if calls else None
        if known is None:
            return message
        both = zip(objects_of(fields["tool_calls"]), calls_in(known), strict=True)
        tool_calls = [{**shown, **call.extra} for shown, call in both]
        return replace(
            message, fields_json=orjson.dumps({**fields, **known, "tool_calls": tool_calls}).decode()
        )

    def _own_seconds(self) -> float:
        now = self.clock.monotonic()
        waits = 0.0 if self._asking_since is None else now - self._asking_since
        return now - self._began_at - self._waited_seconds - waits


def _calls_key(calls: Sequence[ToolCall]) -> bytes:
    """Equal for equal calls, whatever the space in their arguments."""
    shown = [[each.call_id, each.name, each.arguments_object] for each in calls]
    return orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)


def _answer_of(response: EngineResponse) -> ModelAnswer:
    answer = response.answer
    return ModelAnswer(answer.text, called_tools(answer), response.usage, answer.finish_reason == _LENGTH)
