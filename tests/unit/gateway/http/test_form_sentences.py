"""Sentences beside fields are for people, whatever the words of the library."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from services.gateway.http.form_sentences import form_sentence


class Form(BaseModel):
    events: Annotated[list[str], Field(min_length=1, max_length=2)] = ["run_ended"]
    limit: Annotated[int, Field(ge=1)] = 1
    name: str


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "a", "events": []}, "Choose at least 1."),
        ({"name": "a", "events": ["a", "b", "c"]}, "Choose at most 2."),
        ({"name": "a", "limit": 0}, "At least 1."),
        ({}, "Fill it in."),
    ],
)
def test_a_fault_of_a_form_is_one_plain_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Form.model_validate(given)
    assert [form_sentence(dict(fault)) for fault in refused.value.errors()] == [said]
