"""The parameters of a row are read once and win over those of its run."""

import json
from typing import Any

import pytest

from services.worker.engines.engine import Sampling
from services.worker.engines.errors import RequestRefused
from services.worker.engines.row_params import (
    RowParams,
    apply_row_params,
    needs_full_response,
    pop_json_schema,
    read_row_params,
    refuse_unsupported,
    row_fields,
    template_fields,
)

RUN = Sampling(
    max_tokens=100, temperature=0.7, top_p=0.9, seed=5, stop=("\n",), extra={"min_p": 0.1}, is_row=True
)


def over_run(rollout: int = 0, **params: Any) -> Sampling:
    return apply_row_params(read_row_params(json.dumps(params)), RUN, rollout)


def test_row_wins_field_by_field() -> None:
    laid = over_run(temperature=0, stop=["a", "b"], repetition_penalty=1.5, top_k=3)
    assert (laid.temperature, laid.stop, laid.repetition_penalty, laid.top_k) == (0, ("a", "b"), 1.5, 3)
    assert (laid.max_tokens, laid.top_p, laid.seed, laid.extra) == (100, 0.9, 5, {"min_p": 0.1})
    assert over_run(stop="END").stop == ("END",)


def test_what_is_not_known_to_every_engine_is_kept_as_it_is() -> None:
    given: dict[str, Any] = {"n": 2, "logit_bias": {"5": 1.5}, "response_format": {"type": "json_object"}}
    assert over_run(max_tokens=1, **given).row_extra == given


@pytest.mark.parametrize(
    ("params", "named"),
    [
        (
            {"chat_template_kwargs": {"chat_template": "{% for a in range(99999) %}{% endfor %}"}},
            "chat_template",
        ),
        ({"chat_template_kwargs": {"tools": [1]}}, "tools"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"n": 100}, "n must be a whole number from 1 to 8"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"num_ctx": 10**9}, "num_ctx"),
        ({"keep_alive": -1}, "keep_alive"),
    ],
)
def test_what_no_upload_lets_through_is_refused_here_too(params: dict[str, Any], named: str) -> None:
    refusal = read_row_params(json.dumps(params)).refusal
    assert refusal.startswith("The line is refused: ")
    assert named in refusal


def test_newer_name_of_the_limit_wins() -> None:
    assert over_run(max_tokens=3, max_completion_tokens=4).max_tokens == 4
    assert over_run(max_completion_tokens=4).max_tokens == 4
    assert not over_run(max_completion_tokens=4).row_extra
    names = [over_run(**{name: 4}).max_tokens_name for name in ("max_tokens", "max_completion_tokens")]
    assert names == ["", "max_completion_tokens"]


def test_each_rollout_counts_on_from_the_seed_of_the_row() -> None:
    assert over_run(2, seed=40).seed == 42
    assert over_run(2, top_k=1).seed == 5


def test_null_is_as_if_it_were_not_there() -> None:
    assert over_run(temperature=None, user=None, max_tokens=None) == over_run()


def test_whole_numbers_may_be_written_with_a_point() -> None:
    laid = over_run(max_tokens=4.0, seed=1.0)
    assert (laid.max_tokens, laid.seed) == (4, 1)
    assert isinstance(laid.max_tokens, int)


def test_same_text_is_read_once() -> None:
    text = json.dumps({"temperature": 0.123})
    assert read_row_params(text) is read_row_params(str(text.encode(), "utf-8"))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"temperature": "hot"}, "The line's temperature is not a number."),
        ({"temperature": True}, "The line's temperature is not a number."),
        ({"top_p": [1]}, "The line's top_p is not a number."),
        ({"max_tokens": 1.5}, "The line's max_tokens is not a whole number."),
        ({"max_completion_tokens": 0}, "The line's max_completion_tokens is below 1."),
        ({"seed": "1"}, "The line's seed is not a number."),
        ({"seed": 2**63}, "The line's seed needs more than 64 bits."),
        ({"stop": 1}, "The line's stop is neither a text nor a list of texts."),
        ({"stop": ["a", 1]}, "The line's stop is neither a text nor a list of texts."),
        ([1], "The line's parameters are not a JSON object."),
    ],
)
def test_value_of_a_wrong_kind_is_named(params: object, said: str) -> None:
    assert read_row_params(json.dumps(params)).refusal == said


def test_invalid_json_is_reported() -> None:
    assert read_row_params("{").refusal == "The line's parameters are not valid JSON."


def test_parameters_are_kept_for_the_next_row_where_they_are_short() -> None:
    def read(size: int) -> RowParams:
        return read_row_params(json.dumps({"response_format": {"schema": "x" * size}}))

    assert read(10) is read(10)
    # A worker would hold thousands of them, each as large as a line may be.
    assert read(1_000_000) is not read(1_000_000)
    assert read(1_000_000) == read(1_000_000)


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
    assert pop_json_schema(asked) == schema
    assert not asked
    assert pop_json_schema({"response_format": {"type": "json_object"}}) == {}
    assert pop_json_schema({}) is None
    assert pop_json_schema({"response_format": {"type": "text"}}) is None


@pytest.mark.parametrize("form", ["json", {"type": "grammar"}, {"type": "json_schema"}, 1])
def test_form_that_is_none_is_refused(form: object) -> None:
    with pytest.raises(RequestRefused, match="response_format"):
        pop_json_schema({"response_format": form})


def test_rest_is_refused_by_name() -> None:
    refuse_unsupported({}, "Ollama")
    with pytest.raises(RequestRefused, match="Ollama takes no tools here; leave it out"):
        refuse_unsupported({"tools": [1], "user_location": 1}, "Ollama")


def test_fields_of_a_template_are_an_object() -> None:
    assert template_fields(asking(chat_template_kwargs={"a": 1})) == {"a": 1}
    assert template_fields(asking()) == {}
    with pytest.raises(RequestRefused, match="chat_template_kwargs is not a JSON object"):
        template_fields(asking(chat_template_kwargs="x"))
