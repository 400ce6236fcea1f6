"""Parameters of rows, and refusals: templates, features with a fee, addresses to fetch."""

from collections.abc import Callable

import pytest

from proctor.values.plain import MAX_LEVELS
from proctor.values.row_fields import (
    MAX_FIELD_BYTES,
    content_part_problem,
    row_field_problem,
)

FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {}}}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0),
        ("max_tokens", 4),
        ("seed", -5),
        ("stop", "."),
        ("stop", ["a", "b"]),
        ("n", 2),
        ("logprobs", True),
        ("logprobs", 5),
        ("logit_bias", {"5": -100}),
        ("response_format", {"type": "json_object"}),
        ("structured_outputs", {"regex": "[0-9]+", "disable_any_whitespace": True}),
        ("structured_outputs", {"json": {"type": "object"}, "choice": None}),
        ("structured_outputs", {"choice": ["a", "b"]}),
        ("tools", [FUNCTION]),
        ("tools", []),
        ("tool_choice", "auto"),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}),
        ("chat_template_kwargs", {"enable_thinking": False, "effort": "low", "level": 2, "note": None}),
        ("service_tier", "flex"),
        ("store", False),
        ("modalities", ["text"]),
        ("no_such", None),
        ("chat_template", None),
    ],
)
def test_value_of_the_protocol_is_taken(name: str, value: object) -> None:
    assert row_field_problem(name, value) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("no_such", 1),
        ("chat_template", "{{ messages }}"),
        ("documents", []),
        ("chat_template_kwargs", {"chat_template": "{% for a in range(99999) %}{% endfor %}"}),
        ("chat_template_kwargs", {"tools": None}),
        ("chat_template_kwargs", {"tokenize": False}),
        ("chat_template_kwargs", {"return_tensors": "pt"}),
        ("chat_template_kwargs", {"deep": {"a": 1}}),
        ("chat_template_kwargs", {"long": "x" * 513}),
        ("chat_template_kwargs", {"a b": 1}),
        ("chat_template_kwargs", {str(number): 1 for number in range(33)}),
        ("chat_template_kwargs", "x"),
        ("n", 100),
        ("n", True),
        ("best_of", 5),
        ("service_tier", "priority"),
        ("store", True),
        ("web_search_options", {}),
        ("audio", {"voice": "x"}),
        ("modalities", ["text", "audio"]),
        ("tools", [{"type": "web_search"}]),
        ("tools", [{**FUNCTION, "more": "x" * MAX_FIELD_BYTES}]),
        ("tool_choice", {"type": "web_search"}),
        ("num_ctx", 1_000_000_000),
        ("keep_alive", -1),
        ("top_logprobs", 1000),
        ("stop", [1]),
        ("stop", ["x"] * 5000),
        ("temperature", "hot"),
        ("temperature", float("inf")),
        ("user", "x" * 513),
        ("echo", True),
        ("guided_regex", "x" * 5000),
        ("structured_outputs", {"regex": "x" * 5000}),
        ("structured_outputs", {"grammar": "x" * 5000}),
        ("structured_outputs", {"json": "x" * (MAX_FIELD_BYTES + 1)}),
        ("structured_outputs", {"no_such": 1}),
        ("structured_outputs", [1]),
    ],
)
def test_value_that_chooses_a_template_or_costs_more_is_refused_by_name(name: str, value: object) -> None:
    problem = row_field_problem(name, value)
    assert problem.startswith(f"{name} ")
    assert problem.endswith(".")
    assert len(problem) < 300


def nested(levels: int, around: Callable[[object], object]) -> object:
    value: object = []
    for _ in range(levels - 1):
        value = around(value)
    return value


@pytest.mark.parametrize("around", [lambda held: [held], lambda held: {"a": 1, "b": held}])
def test_structure_of_any_depth_is_refused_and_not_followed(around: Callable[[object], object]) -> None:
    for levels in (MAX_LEVELS + 1, 5000, 200_000):
        assert row_field_problem("response_format", nested(levels, around)), levels
    assert row_field_problem("response_format", nested(MAX_LEVELS, around)) == ""


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "x"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "image_url", "image_url": "data:image/png;base64,AA=="},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ],
)
def test_part_that_stands_in_its_line_is_taken(part: object) -> None:
    assert content_part_problem(part) == ""


@pytest.mark.parametrize(
    "part",
    [
        "x",
        {"text": "x"},
        {"type": ["text"]},
        {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        {"type": "image_url", "image_url": {}},
        {"type": "image_url"},
        {"type": "video_url", "video_url": {"url": "data:x"}},
        {"type": "file", "file": {"file_id": "file-of-the-operator"}},
    ],
)
def test_part_that_makes_a_server_fetch_is_refused(part: object) -> None:
    assert content_part_problem(part)
