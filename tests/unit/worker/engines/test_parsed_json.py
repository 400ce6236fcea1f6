"""JSON of servers that may say anything."""

from datetime import UTC, datetime

import pytest

from services.worker.engines.errors import ProviderFailed
from services.worker.engines.parsed_json import (
    MAX_TOKENS,
    choice_schema,
    count_of,
    moment_of,
    objects_of,
    read_choice,
    read_document,
    tokens_of,
    word_of,
)


@pytest.mark.parametrize(
    "body", [b"", b'{"choices": [', b"[]", b"[3]", b'[{"text": "x"}]', b'[{"id": "m", "message": "x"}]']
)
def test_body_that_is_no_document_may_be_asked_for_again(body: bytes) -> None:
    with pytest.raises(ProviderFailed):
        read_document(body)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (r"half \ud83d", "half \ufffd"),
        (r"\udc00 half", "\ufffd half"),
        (r"whole \ud83d\ude00, half \ud83d", "whole 😀, half \ufffd"),
        (r"written \\ud83d, half \ud83d", "written \\ud83d, half \ufffd"),
    ],
)
def test_half_a_character_is_replaced(text: str, read: str) -> None:
    assert read_document(f'{{"text": "{text}"}}'.encode()) == {"text": read}


@pytest.mark.parametrize(
    "body", [rb'{"text": "\ud83d"', b'{"text": "\xf0\x9f"', b'{"count": 1e999}', b'{"count": nan}']
)
def test_a_document_with_half_a_character_may_be_wrong_otherwise(body: bytes) -> None:
    with pytest.raises(ProviderFailed):
        read_document(body)


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (b'{"text": "half \xf0\x9f"}', {"text": "half \ufffd"}),
        (b'\xef\xbb\xbf{"text": "marked"}', {"text": "marked"}),
        (b'{"text": "two\nlines"}', {"text": "two\nlines"}),
        (
            b'{"logprob": -Infinity, "speed": NaN, "text": "NaN"}',
            {"logprob": None, "speed": None, "text": "NaN"},
        ),
        (b'[{"error": {"code": 429}}]', {"error": {"code": 429}}),
        (b'[{"message": "Not authenticated"}]', {"message": "Not authenticated"}),
    ],
)
def test_what_servers_write_beside_json_is_read(body: bytes, read: object) -> None:
    assert read_document(body) == read


@pytest.mark.parametrize(
    ("value", "count"),
    [(7, 7), (12.0, 12), (12.5, 0), ("12", 0), (-1, 0), (True, 0), (2**63, 0), (float("inf"), 0), ([], 0)],
)
def test_odd_counts_are_not_counted(value: object, count: int) -> None:
    assert count_of(value) == count


@pytest.mark.parametrize(
    "value",
    [1_770_163_200, 1_770_163_200.0, "2026-02-04T00:00:00Z", "2026-02-03T16:00:00.000000001-08:00"],
)
def test_times_are_read_in_the_forms_that_providers_use(value: object) -> None:
    assert moment_of(value) == datetime(2026, 2, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    "value", [0, -1, True, 2**62, "", "now", "2026-02-04T00:00:00", "0001-01-01T00:00:00+23:00", None, []]
)
def test_odd_times_are_unknown(value: object) -> None:
    assert moment_of(value) is None


@pytest.mark.parametrize(
    ("value", "tokens"),
    [(MAX_TOKENS, MAX_TOKENS), (MAX_TOKENS + 1, 0), (2**63 - 1, 0), (1e18, 0), (-1, 0), (True, 0)],
)
def test_more_tokens_than_any_answer_has_are_not_counted(value: object, tokens: int) -> None:
    assert tokens_of(value) == tokens


def test_a_word_of_the_protocol_is_cut() -> None:
    assert word_of("stop") == "stop"
    assert word_of("x" * 10_000_000) == "x" * 64
    assert word_of(["stop"]) == ""


def test_of_a_list_only_objects_are_read() -> None:
    assert objects_of([{"a": 1}, None, 3]) == [{"a": 1}]
    assert objects_of({"a": 1}) == []


def test_choice_is_read_out_of_what_its_schema_asks_for() -> None:
    [field] = choice_schema(["yes", "no"])["required"]
    assert read_choice(f'{{"{field}": "no"}}') == "no"


@pytest.mark.parametrize("said", ["yes", '"yes"', '{"other": "yes"}', '{"answer": 1}', ""])
def test_answer_in_another_form_than_was_asked_for_is_a_failure_of_the_server(said: str) -> None:
    with pytest.raises(ProviderFailed, match="JSON format"):
        read_choice(said)
