"""What a row asks for beside what every engine knows."""

from typing import Any

import pytest

from services.worker.engines.engine import RequestRefused, Sampling
from services.worker.engines.unsupported import (
    JsonFormat,
    needs_full_response,
    pop_json_format,
    refuse_unsupported,
    row_fields,
    template_fields,
)


def asking(**fields: Any) -> Sampling:
    return Sampling(max_tokens=8, row_extra=fields, is_row=True)


def test_what_is_of_no_account_or_asks_for_nothing_is_left_out() -> None:
    nothing = {"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "flex"}
    assert not row_fields(asking(**nothing))
    neutral = {"n": 1, "logprobs": False, "presence_penalty": 0, "frequency_penalty": 0.0, "tools": []}
    refuse_unsupported({**neutral, "logit_bias": {}, "modalities": ["text"], "tool_choice": "auto"}, "Ollama")


def test_zero_of_a_row_wins_over_the_run_and_the_model() -> None:
    assert row_fields(asking(presence_penalty=0)) == {"presence_penalty": 0}


@pytest.mark.parametrize("field", [{"n": 2}, {"n": True}, {"logprobs": 0}, {"logprobs": True}, {"x": 0}])
def test_what_asks_for_something_is_refused(field: dict[str, Any]) -> None:
    with pytest.raises(RequestRefused):
        refuse_unsupported(row_fields(asking(**field)), "Ollama")


@pytest.mark.parametrize("field", [{"n": 2}, {"logprobs": True}, {"tools": [{}]}, {"modalities": ["audio"]}])
def test_more_than_a_text_is_known(field: dict[str, Any]) -> None:
    assert needs_full_response(asking(**field))


def test_text_is_no_more_than_a_text() -> None:
    assert not needs_full_response(asking())
    assert not needs_full_response(asking(n=1, response_format={"type": "json_object"}, user="u"))


def test_form_of_an_answer_in_json_is_taken_out_of_what_is_asked() -> None:
    schema = {"type": "object"}
    asked: dict[str, object] = {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    assert pop_json_format(asked) == JsonFormat(schema)
    assert not asked
    assert pop_json_format({"response_format": {"type": "json_object"}}) == JsonFormat()
    assert pop_json_format({}) is None
    assert pop_json_format({"response_format": {"type": "text"}}) is None


@pytest.mark.parametrize("form", ["json", {"type": "grammar"}, {"type": "json_schema"}, 1])
def test_form_that_is_none_is_refused(form: object) -> None:
    with pytest.raises(RequestRefused, match="response_format"):
        pop_json_format({"response_format": form})


def test_rest_is_refused_by_name() -> None:
    refuse_unsupported({}, "Ollama")
    with pytest.raises(RequestRefused, match="Ollama takes no tools here; leave it out"):
        refuse_unsupported({"tools": [1], "user_location": 1}, "Ollama")


def test_fields_of_a_template_are_an_object() -> None:
    assert template_fields(asking(chat_template_kwargs={"a": 1})) == {"a": 1}
    assert template_fields(asking()) == {}
    with pytest.raises(RequestRefused, match="chat_template_kwargs is no JSON object"):
        template_fields(asking(chat_template_kwargs="x"))
