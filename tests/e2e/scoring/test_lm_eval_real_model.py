"""A real model, examined by Proctor in its own vLLM engine and by lm-evaluation-harness over a server."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import pytest_asyncio
from rich.console import Console

from tests.real_model.compared_tasks import COMPARED_TASKS, LIMIT
from tests.real_model.parity import MAX_MODEL_LEN, TaskParity, compare_on_real_model, is_other, side_by_side
from tests.reference.lm_eval_venv import run_in_lm_eval

# `make test` compares with what lm-evaluation-harness makes of the same rows, without a model.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        "PROCTOR_DATA_DIR" not in os.environ,
        reason="PROCTOR_DATA_DIR is not set: no real rows to compare over",
    ),
]

NAMES = [task.name for task in COMPARED_TASKS]
WEIGHED = [name for name in NAMES if name not in {"gsm8k", "addition"}]
GENERATED = ["gsm8k", "addition"]
# Requests are batched otherwise on each side, so bfloat16 may round otherwise.
LOGPROB_NOISE = 0.05
CLEAR_MARGIN = 0.1
EQUAL_TEXTS = 0.95

Parities = Mapping[str, TaskParity]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def parities() -> Parities:
    return await compare_on_real_model()


async def test_figures_stand_side_by_side(parities: Parities, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        Console(width=120).print("", side_by_side(parities))
    for task, parity in parities.items():
        assert parity.proctor.figures.keys() == parity.lm_eval.figures.keys(), task
        for metric, theirs in parity.lm_eval.figures.items():
            may_differ = len(parity.unequal) / len(parity.pairs)
            assert parity.proctor.figures[metric] == pytest.approx(theirs, abs=may_differ + 1e-9), task


@pytest.mark.parametrize("task", NAMES)
async def test_both_put_the_same_prompts_and_continuations(parities: Parities, task: str) -> None:
    asked = [
        [(said.doc_id, said.prompt_hash, said.choices) for said in side.said]
        for side in (parities[task].proctor, parities[task].lm_eval)
    ]
    assert asked[0] == asked[1]


@pytest.mark.parametrize("task", ["sst2", "rte", "boolq", "gsm8k"])
async def test_real_rows_are_as_many_as_ordered(parities: Parities, task: str) -> None:
    assert len(parities[task].pairs) == LIMIT


async def test_prompts_over_the_context_length_were_cut_and_compared_as_well(parities: Parities) -> None:
    """Weighed are two continuations, each in a request of its own: the longest that the engine takes."""
    tokens = [said.prompt_tokens for said in parities["boolq"].proctor.said]
    assert max(tokens) == 2 * (MAX_MODEL_LEN - 1)
    assert tokens.count(max(tokens)) > LIMIT / 10


@pytest.mark.parametrize("task", WEIGHED)
async def test_log_probabilities_are_the_same_up_to_rounding(parities: Parities, task: str) -> None:
    differences = parities[task].logprob_differences
    assert len(differences) == sum(len(said.choices) for said in parities[task].lm_eval.said) > 0
    assert max(differences) <= LOGPROB_NOISE


@pytest.mark.parametrize("task", WEIGHED)
async def test_choices_are_the_same_wherever_the_margin_is_clear(parities: Parities, task: str) -> None:
    clear = [(ours, theirs) for ours, theirs in parities[task].pairs if theirs.margin > CLEAR_MARGIN]
    assert len(clear) > len(parities[task].pairs) / 2
    assert [ours.choice for ours, _ in clear] == [theirs.choice for _, theirs in clear]


@pytest.mark.parametrize("task", ["sentiment", "odd_one"])
async def test_a_model_that_knows_something_chooses_now_this_and_now_that(
    parities: Parities, task: str
) -> None:
    """Else choosing the same would say little."""
    choices = [said.choice for said in parities[task].lm_eval.said]
    assert len(set(choices)) == len(parities[task].lm_eval.said[0].choices)


@pytest.mark.parametrize("task", GENERATED)
async def test_generated_texts_are_the_same(parities: Parities, task: str) -> None:
    """Greedily; a token that is hardly likelier than another one may be another one."""
    equal = [ours.text == theirs.text for ours, theirs in parities[task].pairs]
    assert fmean(equal) >= EQUAL_TEXTS
    assert len({said.text for said in parities[task].lm_eval.said}) > LIMIT / 10


@pytest.mark.parametrize("task", NAMES)
async def test_the_same_answer_has_the_same_scores(parities: Parities, task: str) -> None:
    same = [(ours, theirs) for ours, theirs in parities[task].pairs if not is_other(ours, theirs)]
    assert [ours.scores for ours, _ in same] == [theirs.scores for _, theirs in same]


@pytest.mark.parametrize("task", NAMES)
async def test_exported_samples_are_those_that_lm_evaluation_harness_writes(
    parities: Parities, task: str
) -> None:
    """Of the same answers: key by key, hashes among them."""
    ours, theirs = (lines_of(side.sample_file) for side in (parities[task].proctor, parities[task].lm_eval))
    assert ours.keys() == theirs.keys()
    other = {said.doc_id for said, _ in parities[task].unequal}
    for sample_key in theirs:
        assert ours[sample_key].keys() == theirs[sample_key].keys()
        if sample_key[0] not in other:
            assert comparable(ours[sample_key]) == comparable(theirs[sample_key])


Line = dict[str, Any]


def lines_of(file: bytes) -> dict[tuple[int, str], Line]:
    """By document and filter."""
    lines = [json.loads(line) for line in file.splitlines()]
    return {(line["doc_id"], line["filter"]): line for line in lines}


def comparable(line: Line) -> Line:
    """Without log-probabilities, which may differ by rounding."""
    is_weighed = isinstance(line["filtered_resps"][0], list)
    return {key: value for key, value in line.items() if not (is_weighed and key.endswith("resps"))}


async def test_exported_samples_load_as_its_own_do(parities: Parities, tmp_path: Path) -> None:
    files = {"ours": parities["sst2"].proctor.sample_file, "theirs": parities["sst2"].lm_eval.sample_file}
    for name, file in files.items():
        (tmp_path / f"{name}.jsonl").write_bytes(file)
    loaded = {name: json.loads(run_in_lm_eval(["-c", LOAD, tmp_path / f"{name}.jsonl"])) for name in files}
    assert loaded["ours"] == loaded["theirs"]
    assert loaded["ours"]["rows"] == LIMIT


LOAD = """
import json, sys
from datasets import load_dataset
rows = load_dataset("json", data_files=sys.argv[1], split="train")
print(json.dumps({"rows": len(rows), "features": {name: str(rows.features[name]) for name in rows.features}}))
"""
