"""A golden answer as a line of training or test data."""

from enum import Enum
from typing import Any

import orjson

from proctor.values.sample import ChatMessage, Prompt
from services.results.answers.tool_calls import tool_calls
from services.results.outcomes.outcome import ScoredOutcome
from services.results.samples.sample import Sample

Json = dict[str, Any]


class GoldenForm(Enum):
    """What the lines are for."""

    TRAINING = "training"
    TEST = "test"


def golden_line(form: GoldenForm, row_id: str, sample: Sample, scored: ScoredOutcome) -> bytes:
    """With its end. Parameters are left out: they are no part of what was asked."""
    if form is GoldenForm.TRAINING:
        line: Json = {"messages": [*_turns(sample.prompt), _answer_turn(scored)]}
    else:
        line = {"id": row_id, **_asked(sample.prompt), "target": _text(scored)}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _asked(prompt: Prompt) -> Json:
    return {"prompt": prompt.text} if prompt.text is not None else {"messages": _turns(prompt)}


def _turns(prompt: Prompt) -> list[Json]:
    if prompt.text is not None:
        return [{"role": "user", "content": prompt.text}]
    return [_turn(message) for message in prompt.messages]


def _turn(message: ChatMessage) -> Json:
    turn: Json = {"role": message.role, "content": message.content}
    return turn | orjson.loads(message.fields_json) if message.fields_json else turn


def _answer_turn(scored: ScoredOutcome) -> Json:
    """With the tools that it calls."""
    said = scored.outcome.answer
    turn: Json = {"role": "assistant", "content": _text(scored)}
    calls = tool_calls(said.body_json) if said else []
    return turn | {"tool_calls": calls} if calls else turn


def _text(scored: ScoredOutcome) -> str:
    """As the model said it; of choices, the one that it was taken as."""
    said = scored.outcome.answer
    return (said.text if said else "") or scored.prediction
