"""Which 400 says that a server takes another field for the limit of an answer."""

import orjson
import pytest

from services.worker.engines.openai.responses import parse_error

OLDER, NEWER = "max_tokens", "max_completion_tokens"


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", {OLDER, NEWER}),
        ("max_tokens is not taken by this model", {OLDER}),
        ("Unknown parameter: 'max_completion_tokens'.", {NEWER}),
        ("Unrecognized request argument supplied: max_completion_tokens", {NEWER}),
        ("max_completion_tokens: Extra inputs are not permitted", {NEWER}),
        ("Additional properties are not allowed ('max_completion_tokens' was unexpected)", {NEWER}),
        ('json: unknown field "max_completion_tokens"', {NEWER}),
        ("This model doesn't support max_tokens", {OLDER}),
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens.", set()),
        ("max_tokens must be less than or equal to 8192", set()),
        ("Unsupported value: 'max_tokens' does not support 5 with this model", set()),
        ("max_tokens must be a positive integer", set()),
        ("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported", set()),
        ("temperature is not supported", set()),
        ("max_tokens_x is not supported", set()),
    ],
)
def test_a_field_that_is_not_taken_is_told_from_a_value(message: str, refused: set[str]) -> None:
    body = orjson.dumps({"error": {"message": message, "code": None}})
    assert parse_error(body).refused_fields == refused


def test_the_field_may_be_named_beside_the_sentence() -> None:
    fields = {"message": "This field cannot be used.", "code": "unsupported_parameter", "param": OLDER}
    assert parse_error(orjson.dumps({"error": fields})).refused_fields == {OLDER}
