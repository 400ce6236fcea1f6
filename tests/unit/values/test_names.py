"""Names that are taken apart: models by provider, suites by version."""

import pytest

from proctor.values.names.model_name import name_of, provider_of, split_model
from proctor.values.names.suite_name import base_name, split_name, versioned_name


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("openai/gpt", "openai", "gpt"),
        ("vllm/org/model", "vllm", "org/model"),
        ("gpt", "gpt", "gpt"),
        ("openai/", "openai", "openai/"),
    ],
)
def test_model_has_the_provider_before_the_first_slash(model: str, provider: str, name: str) -> None:
    assert (provider_of(model), name_of(model)) == (provider, name)


def test_model_without_a_name_differs_from_one_with_it() -> None:
    assert split_model("openai/") == split_model("openai") == ("openai", "")


@pytest.mark.parametrize(
    ("name", "base", "version"),
    [("own", "own", None), ("own@3", "own", 3), ("own@x", "own", -1), ("own@", "own", -1)],
)
def test_suite_has_the_version_after_the_mark(name: str, base: str, version: int | None) -> None:
    assert (base_name(name), split_name(name)) == (base, (base, version))


def test_version_of_too_many_digits_is_invalid() -> None:
    assert split_name(versioned_name("own", 10**8)) == ("own", -1)
    assert split_name(versioned_name("own", 10**8 - 1)) == ("own", 10**8 - 1)
