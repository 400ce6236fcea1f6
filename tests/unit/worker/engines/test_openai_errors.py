"""What the error codes of OpenAI-compatible servers say beyond the status."""

from __future__ import annotations

import orjson
import pytest

from services.worker.engines.http.errors import Meaning
from services.worker.engines.openai.responses import read_error


@pytest.mark.parametrize(
    ("fields", "meaning"),
    [
        ({"message": "no money", "code": "insufficient_quota"}, Meaning.NO_CREDIT),
        ({"message": "no money", "type": "insufficient_quota"}, Meaning.NO_CREDIT),
        ({"message": "3000 are too many", "code": "context_length_exceeded"}, Meaning.TOO_LONG),
        ({"message": "This model's maximum context length is 2048 tokens."}, Meaning.TOO_LONG),
        ({"message": "flagged", "code": "content_filter"}, Meaning.FILTERED),
        ({"message": "bad temperature", "code": None}, None),
        ({"message": "bad", "code": 400}, None),
    ],
)
def test_code_or_words_tell_what_is_meant(fields: dict[str, object], meaning: Meaning | None) -> None:
    said = read_error(orjson.dumps({"error": fields}))
    assert (said.message, said.meaning) == (fields["message"], meaning)


def test_body_without_a_code_is_its_text() -> None:
    assert read_error(b"<html>oops</html>").message == "<html>oops</html>"
