"""The input of the playground: faults at their fields, the row that is stored, and the way back from it."""

import json
from uuid import UUID, uuid4

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
    [
        *({}, {"messages": [1, 2, 3]}, {"prompt": ["a"]}),
        {"messages": [{"role": "user", "content": [1]}]},
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
    ],
)
def test_a_row_of_another_form_fills_in_nothing(row: dict[str, object]) -> None:
    assert prompt_of(row) == {}


def test_a_form_that_is_sent_twice_has_one_request_id_and_a_changed_one_another() -> None:
    rendered = str(uuid4())
    first = form(prompt="p", models="a/b", request_id=rendered)
    again, other_form = (form(prompt="p", models="a/b", request_id=each) for each in (rendered, str(uuid4())))
    assert first.id_of("p") == again.id_of("p") == str(UUID(first.id_of("p")))
    assert len({first.id_of("p"), first.id_of("q"), other_form.id_of("p")}) == 3
    assert form(request_id="none").id_of("p") != form(request_id="none").id_of("p")


def test_the_name_of_a_prompt_leaves_out_what_no_name_may_hold() -> None:
    assert form(prompt="a\x07 \u202e\tb\x00").name == "Playground: a b"
