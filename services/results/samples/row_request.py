"""What a sample asks, in the form of the OpenAI protocol."""

from collections.abc import Sequence

import orjson

from proctor.values.plain import Json
from proctor.values.sample import ChatMessage, Prompt
from services.results.samples.sample import StoredSample


def row_request(sample: StoredSample) -> str:
    """What is asked and the row's own parameters, as JSON object text; "" for a plain prompt without any.

    Exports have the same by the function `row_request` of the schema.
    """
    if not sample.prompt.is_chat and not sample.params_json:
        return ""
    params = orjson.loads(sample.params_json or "{}")
    return orjson.dumps({**asked(sample.prompt), **params}).decode()


def asked(prompt: Prompt) -> Json:
    """`prompt` or `messages`."""
    return {"prompt": prompt.text} if prompt.text is not None else {"messages": turns(prompt)}


def turns(prompt: Prompt) -> Sequence[Json]:
    """A plain prompt is one turn of the user."""
    if prompt.text is not None:
        return [{"role": "user", "content": prompt.text}]
    return [_turn(message) for message in prompt.messages]


def _turn(message: ChatMessage) -> Json:
    turn: Json = {"role": message.role, "content": message.content}
    return turn | orjson.loads(message.fields_json) if message.fields_json else turn
