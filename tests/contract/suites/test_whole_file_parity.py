"""Whole files after five examples: the reference makes its figures now, in an environment of its own."""

from functools import cache

import pytest

from tests.reference.evaluated_tasks import Examination, Examined, examine, suites
from tests.reference.golden_comparison import assert_same_figures, assert_same_questions, assert_same_scores
from tests.reference.golden_reference import GoldenTask, folder_of, golden_rows, golden_tasks, hash_answer
from tests.reference.lm_eval_venv import run_in_lm_eval

# It takes an environment of its own, which takes minutes to install; `make test` has the golden files.
pytestmark = pytest.mark.thorough

SHOTS = 5
ALL_ROWS = 100_000
# By suite: each of the three rules by which examples are drawn.
TASKS = {"sst2": "glue", "rte": "glue", "pubmedqa": "medical", "mmlu_anatomy": "mmlu"}


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> dict[str, GoldenTask]:
    reference, data = folder_of("PROCTOR_REFERENCE_DIR"), folder_of("PROCTOR_DATA_DIR")
    made = tmp_path_factory.mktemp("golden") / "golden.json"
    options = [f"--shots={SHOTS}", f"--rows={ALL_ROWS}", f"--tasks={','.join(TASKS)}"]
    run_in_lm_eval([reference / "lm_eval" / "make_golden.py", data, made, *options])
    return golden_tasks(made)


@cache
def examined(name: str) -> Examined:
    suite = suites().suite(TASKS[name])
    return examine(
        Examination(
            suite=suite,
            tasks=[suite.task(name)],
            rows_of=lambda reference: golden_rows(reference, ALL_ROWS),
            answer_of=hash_answer,
            num_fewshot=SHOTS,
        )
    )


@pytest.mark.parametrize("name", TASKS)
def test_a_whole_file_after_five_examples_is_asked_scored_and_summed_up_as_the_reference_does(
    name: str, golden: dict[str, GoldenTask]
) -> None:
    ours = examined(name)
    assert len(ours.samples[name]) > 100
    assert_same_questions(ours.samples[name], golden[name])
    assert_same_scores(ours.outcomes[name], golden[name])
    assert_same_figures(ours.summary.tasks[0].figures, golden[name])
