"""Models that vLLM cannot load, models that share an engine, and its load; judged here is what was seen."""

from typing import Any

import pytest


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("architecture", "Model architectures ['NoSuchLM'] are not supported for now."),
        ("cut_off", "are damaged or cut off"),
        ("too_big", "larger than the available KV cache memory"),
        ("parallel", "must be divisible by tensor parallel size (3)"),
        ("argument", "name no_such, which vLLM"),
        ("parser", "has no reasoning parser no_such, which the pools file names for vllm/parser. It has: "),
    ],
)
def test_model_that_cannot_be_loaded_is_reported_by_its_cause(
    unloadable: dict[str, Any], case: str, says: str
) -> None:
    refusal = unloadable["refusals"][case]
    assert refusal["type"] == "ModelCannotLoad"
    assert says in refusal["says"]
    assert f"vllm/{case}" in refusal["says"]
    assert "\n" not in refusal["says"]
    assert "root cause" not in refusal["says"]


@pytest.mark.thorough
def test_engine_that_did_not_start_leaves_no_process(unloadable: dict[str, Any]) -> None:
    assert unloadable["left"] == 0


def test_adapters_and_their_base_answer_from_one_engine_each_in_its_way(seen: dict[str, Any]) -> None:
    adapters = seen["adapters"]
    assert adapters["same_engine"]
    assert {len(texts) for texts in adapters["said"].values()} == {1}
    assert len({tuple(logprobs) for logprobs in adapters["logprobs"].values()}) == 3


def test_damaged_adapter_is_refused_alone(seen: dict[str, Any]) -> None:
    bad = seen["adapters"]["bad"]
    assert {refusal["type"] for refusal in bad.values()} == {"ModelCannotLoad"}
    assert bad["damaged"]["says"].endswith("Error while deserializing header: header too large")
    assert "does not exist" in bad["absent"]["says"]


def test_state_of_each_adapter_is_part_of_the_revision(seen: dict[str, Any]) -> None:
    facts = seen["adapters"]["facts"]
    assert len(facts["model_revision"].split("+")) == 3
    assert "vllm/one" in facts["adapters"]


def test_engine_reports_its_load(seen: dict[str, Any]) -> None:
    load = seen["adapters"]["load"]
    assert set(load["idle"].values()) == {0}
    assert load["most_busy"] == 8
    done = load["done"]
    assert (done["running_requests"], done["waiting_requests"]) == (0, 0)
    assert done["generated_tokens"] == load["tokens"] == 8 * 64
    assert done["prefix_cache_hits"] > done["prefix_cache_queries"] / 2
    assert seen["adapters"]["told_after_close"] is None
