"""Names of secrets, and names that only look like them."""

import pytest

from services.common.secret_names import secret_word, secret_word_in


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "apikey",
        "apiKey",
        "API-KEY",
        "x-goog-api-key",
        "OPENAI_API_KEY",
        "openai_key",
        "Ocp-Apim-Subscription-Key",
        "Authorization",
        "Proxy-Authorization",
        "authorization: Bearer planted",
        "auth",
        "token",
        "X-Auth-Token",
        "hf_token",
        "access_token",
        "client_secret",
        "password",
        "extra_headers",
        "extraHeaders",
        "headers",
        "Cookie",
        "key",
    ],
)
def test_name_of_a_secret_is_known_in_any_form(name: str) -> None:
    word = secret_word(name)
    assert word is not None
    assert "planted" not in word


@pytest.mark.parametrize(
    "name",
    [
        *("max_tokens", "maxOutputTokens", "stop_token_ids", "skip_special_tokens", "truncate_prompt_tokens"),
        *(
            "eos_token",
            "logit_bias",
            "prompt_cache_key",
            "author",
            "user",
            "keep_alive",
            "cache_salt",
            "min_p",
        ),
    ],
)
def test_parameter_of_a_provider_is_none(name: str) -> None:
    assert secret_word(name) is None


@pytest.mark.parametrize(
    "params",
    [
        {"extra_body": {"a": [{"Api-Key": "x"}]}},
        {"options": ({"headers": {"X": "y"}},)},
        {"schema": {"properties": {"api_key": "x"}}},
        {"schema": {"properties": {"a": {"api_key": "x"}}}},
    ],
)
def test_secret_is_found_at_any_depth(params: object) -> None:
    assert secret_word_in(params) in ("apikey", "headers")


def test_schema_of_an_answer_may_name_its_fields_as_it_likes() -> None:
    fields = {"key": {"type": "string"}, "password": {"type": "string"}, "token": True}
    schema = {"type": "object", "properties": fields, "required": ["key", "password"]}
    assert (
        secret_word_in({"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}})
        is None
    )
