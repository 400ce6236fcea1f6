"""The input of the playground: faults at their fields, the row that is stored, and the way back from it."""

import json

import pytest
from starlette.datastructures import FormData

from services.gateway.http.errors import FormFaults
from services.gateway.pages.playground.form import PlaygroundForm, prompt_of


def form(**given: str) -> PlaygroundForm:
    return PlaygroundForm.of(FormData(given))


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        ({}, {"prompt", "models"}),
        ({"prompt": " \r\n ", "models": "a/b"}, {"prompt"}),
        ({"prompt": "p", "models": "one"}, {"models"}),
        ({"prompt": "p", "models": "a/1 a/2,a/3\na/4, a/5"}, {"models"}),
        ({"prompt": "p", "models": ", ,"}, {"models"}),
    ],
)
def test_faults_are_at_their_fields(given: dict[str, str], faults: set[str]) -> None:
    with pytest.raises(FormFaults) as refused:
        form(**given).check()
    assert set(refused.value.faults) == faults


@pytest.mark.parametrize("system", ["", "Be brief.\nAlways."])
def test_the_fields_are_read_back_from_the_row(system: str) -> None:
    asked = form(prompt='Two & "two"?\r\nAnd é', system=system, models="a/1, a/2 a/1")
    asked.check()
    assert asked.models == ["a/1", "a/2"]
    row = json.loads(asked.row())
    assert row.keys() == ({"messages"} if system else {"prompt"})
    assert dict(prompt_of(row)) == {"system": system, "prompt": 'Two & "two"?\nAnd é'}
    assert json.loads(asked.row(target="")) == {**row, "target": ""}


def test_an_order_has_all_models_and_the_given_parameters() -> None:
    order = form(prompt="p", models="a/1,b/2", temperature="0.5", max_tokens="", seed="3").order("ds_1")
    orders = order.to_orders()
    assert [(each.model, each.dataset_id, each.params.temperature) for each in orders] == [
        ("a/1", "ds_1", 0.5),
        ("b/2", "ds_1", 0.5),
    ]
    assert (orders[0].params.HasField("max_tokens"), orders[0].params.seed) == (False, 3)


@pytest.mark.parametrize(
    "row",
    [{}, {"messages": [{"role": "user", "content": [1]}]}, {"messages": [1, 2, 3]}, {"prompt": ["a"]}],
)
def test_a_row_of_another_form_fills_in_nothing(row: dict[str, object]) -> None:
    assert prompt_of(row) == {}
