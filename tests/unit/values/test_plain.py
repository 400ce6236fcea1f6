"""Values go through JSON and come back the same."""

import json

import pytest

from proctor.values.generation import GenerationParams
from proctor.values.plain import from_plain, to_plain
from proctor.values.run import RunCounts
from proctor.values.sample import Sample
from proctor.values.scoring import TaskGroup, TaskScoring
from proctor.values.usage import ModelPrice
from tests.fakes.full_values import full_value


@pytest.mark.parametrize("value_type", [ModelPrice, RunCounts, GenerationParams, TaskScoring, TaskGroup])
def test_a_value_comes_back_from_json_as_it_was(value_type: type[object]) -> None:
    value = full_value(value_type)
    assert from_plain(value_type, json.loads(json.dumps(to_plain(value)))) == value


def test_inner_values_come_back_as_their_types() -> None:
    sample = full_value(Sample)
    assert from_plain(Sample, to_plain(sample)) == sample


def test_a_whole_number_becomes_the_fraction_that_the_type_says() -> None:
    price = from_plain(ModelPrice, json.loads('{"input_per_million": 3, "output_per_million": 15}'))
    assert isinstance(price.input_per_million, float)
    assert price.cached_input_per_million is None


def test_what_an_older_version_stored_besides_is_left_out() -> None:
    assert from_plain(RunCounts, {"epoch": 2, "gone": 1}) == RunCounts(epoch=2)
