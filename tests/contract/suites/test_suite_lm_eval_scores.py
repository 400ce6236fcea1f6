"""Tasks without a golden file: lm-evaluation-harness is run now, over the same rows and the same answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from proctor.values.outcome import Answer
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.rows.row_source import Provenance, RowSet, RowsReference
from tests.reference.evaluated_tasks import Examination, Examined, examine, suites
from tests.reference.golden_comparison import MONTE_CARLO, assert_same_error
from tests.reference.golden_reference import (
    GoldenTask,
    continuations_of,
    folder_of,
    hash_answer,
)
from tests.reference.instruction_rows import write_punkt
from tests.reference.leaderboard_cases import LEADERBOARD_CASES
from tests.reference.lm_eval_cases import CASES, Case, Row
from tests.reference.lm_eval_venv import run_in_lm_eval

# It takes an environment of its own, which takes minutes to install; `make test` has the golden files.
pytestmark = pytest.mark.thorough

SCRIPT = Path(__file__).parents[2] / "reference" / "lm_eval_scores.py"

ALL_CASES = (*CASES, *LEADERBOARD_CASES)
each_case = pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.task)


@dataclass(frozen=True)
class CaseRows:
    """The rows of a case, or for another split than the evaluated one the examples."""

    case: Case
    evaluated: RowsReference

    def open(self, reference: RowsReference) -> RowSet:
        rows = self.case.rows() if reference == self.evaluated else self.case.pool()
        return RowSet(rows, Provenance("test", "", ""))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, GoldenTask]:
    folder_of("PROCTOR_DATA_DIR")
    folder = tmp_path_factory.mktemp("rows")
    jobs = {case.task: job_of(case, folder) for case in ALL_CASES}
    write_punkt(folder / "nltk")
    printed = run_in_lm_eval([SCRIPT], {"NLTK_DATA": str(folder / "nltk")}, input_text=json.dumps(jobs))
    # Code of some tasks prints too.
    tasks: dict[str, GoldenTask] = json.loads(printed.splitlines()[-1])
    return tasks


def job_of(case: Case, folder: Path) -> dict[str, object]:
    return {
        "yaml": case.yaml,
        "rows": written(folder / f"{case.task}.rows.jsonl", case.rows()),
        "pool": written(folder / f"{case.task}.pool.jsonl", case.pool()),
        "shots": case.shots,
        "answers": case.answers(),
    }


def written(file: Path, rows: Sequence[Row]) -> str:
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return str(file)


def examined(case: Case) -> Examined:
    suite = suites().suite(case.suite)
    answers = case.answers()

    def answer_of(sample: RenderedSample) -> Answer:
        return hash_answer(sample) if sample.choices else Answer(answers[sample.doc_id])

    task = suite.task(case.task)
    return examine(
        Examination(suite, [task], lambda evaluated: CaseRows(case, evaluated), answer_of, case.shots)
    )


@each_case
def test_prompts_and_continuations_equal_those_of_the_reference(
    case: Case, reference: dict[str, GoldenTask]
) -> None:
    samples, docs = examined(case).samples[case.task], reference[case.task]["docs"]
    assert [asked_here(sample) for sample in samples] == [asked_there(doc) for doc in docs]


def asked_here(sample: RenderedSample) -> list[object]:
    """Pairs of context and continuation; of a generation the context alone."""
    return [list(pair) for pair in continuations_of(sample)] or [sample.prompt.as_text]


def asked_there(doc: dict[str, object]) -> list[object]:
    """The same, without the options of a generation. A whole text follows nothing."""
    assert isinstance(doc["arguments"], list)
    pairs = [one if len(one) == 2 else ["", *one] for one in doc["arguments"]]
    return [context if isinstance(other, dict) else [context, other] for context, other in pairs]


@each_case
def test_scores_of_each_sample_equal_those_of_the_reference(
    case: Case, reference: dict[str, GoldenTask]
) -> None:
    ours, theirs = examined(case).outcomes[case.task], reference[case.task]["docs"]
    assert len(ours) == len(theirs)
    for outcome, doc in zip(ours, theirs, strict=True):
        assert outcome.scores
        for metric, value in outcome.scores.items():
            expected = doc[case.names.get(metric, metric)]
            expected = as_counts(expected) if isinstance(value, list) else as_number(expected)
            assert value == pytest.approx(expected, abs=1e-9), (outcome.outcome.sample, metric)


def as_counts(value: object) -> object:
    """What is followed of all instructions; a log-probability by what it is divided: there 1 is not said."""
    if not isinstance(value, list):
        return [value, 1.0]
    return [sum(value), len(value)] if all(isinstance(each, bool) for each in value) else value


def as_number(value: object) -> object:
    """Some are truth values there."""
    return float(value) if isinstance(value, bool) else value


@each_case
def test_figures_equal_those_of_the_reference(case: Case, reference: dict[str, GoldenTask]) -> None:
    [summary] = examined(case).summary.tasks
    results = reference[case.task]["results"]
    assert summary.failed == 0
    for metric, figure in summary.figures.items():
        name, _, read_by = case.names.get(metric, metric).partition(",")
        [filtered_by] = (
            {read_by} if read_by else {key.partition(",")[2] for key in results if key.startswith(f"{name},")}
        )
        assert figure.n == len(reference[case.task]["docs"])
        assert figure.mean == pytest.approx(results[f"{name},{filtered_by}"], abs=1e-9)
        # Few resamples of eight rows have large perplexities, and these make most of its error.
        monte_carlo = 0.25 if name == "perplexity" else MONTE_CARLO
        assert_same_error(figure, results[f"{name}_stderr,{filtered_by}"], monte_carlo)


@each_case
def test_versions_are_those_of_the_reference(case: Case, reference: dict[str, GoldenTask]) -> None:
    assert float(suites().suite(case.suite).task(case.task).version) == reference[case.task]["version"]
