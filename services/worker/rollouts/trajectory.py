"""The trajectory of a rollout in the Agent Trajectory Interchange Format (ATIF) 1.8."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from proctor.values.plain import Json
from proctor.values.usage import TokenUsage

_VERSION = "ATIF-v1.8"
_UNKNOWN = "unknown"
TOOL = "bash"
_MAX_TEXT_CHARACTERS = 20_000
# Maximum characters of all turns that are not the agent's, with their own fields: a program may show its
# model anything, again and again. The agent's own turns are bounded by the budget of its steps.
_MAX_SHOWN_CHARACTERS = 6_000_000
_STEP_CHARACTERS = 400
_FULL = "What follows of other turns is left out: the trajectory is full."


@dataclass(slots=True)
class Trajectory:
    """Steps in order; texts are cut in their middle. `usage` is that of all steps, `version` the agent's."""

    session_id: str
    agent: str
    model: str
    version: str = ""
    usage: TokenUsage = field(default_factory=TokenUsage)
    steps: list[dict[str, object]] = field(default_factory=list)
    tools: Sequence[Json] = ()
    _shown_length: int = 0
    # The latest step with a call of each id.
    _of_call: dict[str, dict[str, object]] = field(default_factory=dict)

    def open(self, tools: Sequence[Json], kept: int = 0) -> None:
        """Begins a conversation after the first `kept` steps, with the tools that the model may call."""
        del self.steps[kept:]
        lengths = [len(str(step["message"])) for step in self.steps if step["source"] != "agent"]
        self._shown_length = sum(lengths) + _STEP_CHARACTERS * len(lengths)
        left = {id(step) for step in self.steps}
        self._of_call = {name: step for name, step in self._of_call.items() if id(step) in left}
        self.tools = tools

    def add(self, source: str, message: str, at: datetime) -> None:
        """A step of the "system" or the "user"; none once the trajectory is full."""
        if self._has_room(message, at):
            self._add(source, message, at)

    def add_answer(self, message: str, usage: TokenUsage, at: datetime) -> None:
        self.usage = self.usage.plus(usage)
        step = self._add("agent", message, at)
        step["llm_call_count"] = 1
        step["metrics"] = _metrics(usage)

    def add_action(self, command: str, output: str) -> None:
        """A command of the last step, and what came of it."""
        step = self.steps[-1]
        call = f"call_{step['step_id']}"
        self._of_call[call] = step
        step["tool_calls"] = [
            {"tool_call_id": call, "function_name": TOOL, "arguments": {"command": cut(command)}}
        ]
        step["observation"] = {"results": [{"source_call_id": call, "content": cut(output)}]}

    def add_call(self, call_id: str, tool: str, arguments: str) -> None:
        """A call of a tool in the last step. `arguments` should be a JSON object as text."""
        self._of_call[call_id] = self.steps[-1]
        calls = self.steps[-1].setdefault("tool_calls", [])
        assert isinstance(calls, list)
        try:
            values = json.loads(arguments, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            values = {"text": arguments}
        shown = {name: cut(each) if isinstance(each, str) else each for name, each in values.items()}
        calls.append({"tool_call_id": call_id, "function_name": tool, "arguments": shown})

    def add_result(self, call_id: str, output: str, at: datetime) -> None:
        """Adds the result of the latest call with this id; a step of the user where there is none."""
        if not self._has_room(output, at):
            return
        step = self._of_call.get(call_id)
        if step is None:
            self._add("user", output, at)
            return
        observation = step.setdefault("observation", {"results": []})
        assert isinstance(observation, dict)
        observation["results"].append({"source_call_id": call_id, "content": cut(output)})

    @property
    def last_message(self) -> str:
        """The last message of the agent; empty where there is none."""
        messages = [str(step["message"]) for step in self.steps if step["source"] == "agent"]
        return messages[-1] if messages else ""

    @property
    def last_output(self) -> str:
        """What the latest command or tool printed; empty where there is none."""
        for step in reversed(self.steps):
            observation = step.get("observation")
            if isinstance(observation, dict):
                return str(observation["results"][-1]["content"])
        return ""

    def as_json(self) -> Mapping[str, object]:
        return {
            "schema_version": _VERSION,
            "session_id": self.session_id,
            "agent": {
                "name": self.agent,
                "version": self.version or _UNKNOWN,
                "model_name": self.model,
                **({"tool_definitions": list(self.tools)} if self.tools else {}),
            },
            "steps": self.steps,
            "final_metrics": {
                "total_prompt_tokens": self.usage.prompt_tokens,
                "total_completion_tokens": self.usage.completion_tokens,
                "total_cached_tokens": self.usage.cached_tokens,
                "total_steps": len(self.steps),
            },
        }

    def _has_room(self, text: str, at: datetime) -> bool:
        was_full = self._shown_length > _MAX_SHOWN_CHARACTERS
        self._shown_length += min(len(text), _MAX_TEXT_CHARACTERS) + _STEP_CHARACTERS
        is_full = self._shown_length > _MAX_SHOWN_CHARACTERS
        if is_full and not was_full:
            self._add("system", _FULL, at)
        return not is_full

    def _add(self, source: str, message: str, at: datetime) -> dict[str, object]:
        step: dict[str, object] = {
            "step_id": len(self.steps) + 1,
            "timestamp": at.isoformat(),
            "source": source,
            "message": cut(message),
        }
        self.steps.append(step)
        return step


def cut(text: str, max_characters: int = _MAX_TEXT_CHARACTERS) -> str:
    """Head and tail, with the number of characters left out between them."""
    if len(text) <= max_characters:
        return text
    half = max_characters // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def _refuse_constant(name: str) -> None:
    """NaN and infinities, which Python reads and JSON does not have."""
    raise ValueError(name)


def _metrics(usage: TokenUsage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
    }
