"""How an OpenAI-compatible server is told that only given texts may be said, and how it then says one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from services.worker import engine
from services.worker.json_answers import Json
from services.worker.json_choice import choice_schema, read_choice
from services.worker.pool import ConstrainedField


def constraint_fields(field: ConstrainedField | None, texts: Sequence[str]) -> Json:
    """What of a request holds the answer to these texts; nothing where there are none."""
    if not texts:
        return {}
    match field:
        case None:
            raise engine.UnsupportedRequest(
                "Nobody said how this server constrains an answer: set the pool's constrained_field."
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
    """The text itself, out of the object that it stands in where it does."""
    if not texts or field is not ConstrainedField.RESPONSE_FORMAT:
        return generated
    return replace(generated, text=read_choice(generated.text))
