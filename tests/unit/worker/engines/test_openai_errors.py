"""Error codes of OpenAI-compatible servers that say more than the status."""

import orjson
import pytest

from services.worker.engines.http.error_responses import ErrorMeaning
from services.worker.engines.openai.responses import parse_error


@pytest.mark.parametrize(
    ("fields", "meaning"),
    [
        ({"message": "no money", "code": "insufficient_quota"}, ErrorMeaning.NO_CREDIT),
        ({"message": "no money", "type": "insufficient_quota"}, ErrorMeaning.NO_CREDIT),
        ({"message": "3000 are too many", "code": "context_length_exceeded"}, ErrorMeaning.TOO_LONG),
        ({"message": "5000 are too many", "type": "exceed_context_size_error"}, ErrorMeaning.TOO_LONG),
        ({"message": "This model's maximum context length is 2048 tokens."}, ErrorMeaning.TOO_LONG),
        ({"message": "flagged", "code": "content_filter"}, ErrorMeaning.FILTERED),
        ({"message": "bad temperature", "code": None}, None),
        ({"message": "bad", "code": 400}, None),
    ],
)
def test_code_or_message_decides_the_meaning(fields: dict[str, object], meaning: ErrorMeaning | None) -> None:
    said = parse_error(orjson.dumps({"error": fields}))
    assert (said.message, said.meaning) == (fields["message"], meaning)


def test_body_without_a_code_is_its_text() -> None:
    assert parse_error(b"<html>oops</html>").message == "<html>oops</html>"
