"""Tasks of lm-evaluation-harness as they are: the same prompts, targets, scores and figures as there.

Rows are made in the form of each data set. Most of these tasks have Python code, which is executed here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.task_code.bubblewrap import BubblewrapCode
from services.results.outcomes.outcome import ScoredOutcome
from services.results.scoring.choice_metrics import VALUES_FOR_CODE
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.suite import SuiteDefinition, TaskDefinition
from tests.reference.evaluated_tasks import Examination, Examined, examine
from tests.reference.field_answers import ANSWERS, REPEATED
from tests.reference.field_rows import SPLITS, made_rows
from tests.reference.field_tasks import (
    FIELD,
    LOADED,
    MadeRows,
    field_answer,
    field_answer_again,
    field_suites,
)
from tests.reference.golden_reference import GoldenTask, continuations_of
from tests.reference.lm_eval_venv import run_in_lm_eval, task_packages

# All tasks in one process: some minutes, and more on a busy machine.
LIMIT_SECONDS = 3600.0
# It takes an environment of its own, which takes minutes to install.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(LIMIT_SECONDS)]

SCRIPT = Path(__file__).parents[2] / "reference" / "lm_eval_field.py"


@dataclass(frozen=True)
class Evaluated:
    """A task in its suite, and what lm-evaluation-harness makes of it."""

    suite: SuiteDefinition
    task: TaskDefinition
    theirs: GoldenTask
    ours: Examined

    @property
    def samples(self) -> list[RenderedSample]:
        return list(self.ours.samples[self.task.name])

    @property
    def outcomes(self) -> list[ScoredOutcome]:
        return list(self.ours.outcomes[self.task.name])


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, GoldenTask]]:
    """What lm-evaluation-harness makes of all tasks, by the name of a suite and by task."""
    folder = tmp_path_factory.mktemp("rows")
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for task in (task for name in FIELD for suite in field_suites(name) for task in suite.tasks):
        for reference in (task.rows, task.fewshot_rows):
            if reference is not None and reference.hub_id:
                files = rows.setdefault(reference.hub_id, {}).setdefault(reference.config, {})
                for split in (*SPLITS, reference.split):
                    files[split] = _written(folder, reference.hub_id, reference.config, split)
    for hub_id, config, splits in (each for name in FIELD for each in LOADED.get(name, ())):
        written = {split: _written(folder, hub_id, config, split) for split in splits}
        rows.setdefault(hub_id, {})[config or "*"] = written
    tasks = {suite.name: FIELD[name] for name in FIELD for suite in field_suites(name)}
    job = json.dumps({"rows": rows, "tasks": tasks, "answers": ANSWERS, "repeated": REPEATED})
    environment = {"HF_DATASETS_CACHE": str(folder / "cache")}
    printed = run_in_lm_eval([SCRIPT], environment, input_text=job, limit_seconds=LIMIT_SECONDS)
    found: dict[str, dict[str, GoldenTask]] = json.loads(printed.splitlines()[-1])
    return found


def _written(folder: Path, hub_id: str, config: str, split: str) -> str:
    file = folder / f"{hub_id} {config} {split}.jsonl".replace("/", " ")
    if not file.exists():
        file.write_text("\n".join(map(json.dumps, made_rows(hub_id, config, split))), encoding="utf-8")
    return str(file)


@cache
def _runner() -> BubblewrapCode:
    return BubblewrapCode(BubblewrapEngine(find_bubblewrap()), packages=task_packages())


def _examined(suite: SuiteDefinition, task: TaskDefinition, shots: int | None) -> Examined:
    order = Examination(
        suite, [task], lambda _: MadeRows(), field_answer, shots, _runner(), field_answer_again
    )
    return examine(order)


@pytest.mark.parametrize("name", FIELD)
def test_a_task_asks_and_scores_as_it_does_there(
    name: str, theirs: Mapping[str, Mapping[str, GoldenTask]], capsys: pytest.CaptureFixture[str]
) -> None:
    for suite in field_suites(name):
        assert "error" not in theirs[suite.name], theirs[suite.name]
        assert theirs[suite.name].keys() == {task.name for task in suite.tasks}
        for task in suite.tasks:
            found = Evaluated(suite, task, theirs[suite.name][task.name], _examined(suite, task, FIELD[name]))
            _assert_same_questions(found)
            if task.repeats == 1:
                # Of several answers there is one score for each vote.
                _assert_same_scores(found)
            _assert_same_figures(found)
            with capsys.disabled():
                print(_row(found))  # noqa: T201  # the table of `make parity`


def _row(found: Evaluated) -> str:
    """A row of the table that `make parity` prints."""
    code = ", ".join(found.task.code_keys) or "-"
    figures = ", ".join(found.ours.summary.tasks[0].figures)
    return f"| {found.suite.name} | {found.task.name} | {len(found.samples)} | {code} | {figures} | equal |"


def test_most_tasks_have_code() -> None:
    tasks = {task.name: task for name in FIELD for suite in field_suites(name) for task in suite.tasks}
    assert len(tasks) >= 260
    assert sum(task.has_code for task in tasks.values()) >= 105


def _assert_same_questions(found: Evaluated) -> None:
    docs = found.theirs["docs"]
    assert len(found.samples) == len(docs) > 0
    for sample, doc in zip(found.samples, docs, strict=True):
        assert _asked_here(sample) == _asked_there(doc), (found.task.name, sample.doc_id)
        assert _target(sample, doc["target"]) == str(doc["target"]), (found.task.name, sample.doc_id)


def _asked_here(sample: RenderedSample) -> list[object]:
    """Pairs of context and continuation; of a generation the context alone."""
    return [list(pair) for pair in continuations_of(sample)] or [sample.prompt.as_text]


def _asked_there(doc: Mapping[str, object]) -> list[object]:
    """The same, without the options of a generation. A whole text follows nothing."""
    assert isinstance(doc["arguments"], list)
    pairs = [one if len(one) == 2 else ["", *one] for one in doc["arguments"]]
    return [context if isinstance(other, dict) else [context, other] for context, other in pairs]


def _target(sample: RenderedSample, theirs: object) -> str:
    """The index of the right choice, or its text where that is given there; else the accepted texts.

    Of contexts it is the text that follows each of them; a given text is its own.
    """
    if len(sample.choices) == 1:
        return sample.choices[0]
    if sample.choice_ending:
        return sample.choice_ending.removeprefix(" ")
    if not sample.choices:
        texts = list(sample.target.texts)
        return texts[0] if len(texts) == 1 and theirs != texts else str(texts)
    if sample.target.choice is None:
        return str(list(sample.target.right_choices))
    text = sample.choices[sample.target.choice].removeprefix(" ")
    return text if theirs == text else str(sample.target.choice)


def _assert_same_scores(found: Evaluated) -> None:
    compared = 0
    for outcome, doc in zip(found.outcomes, found.theirs["docs"], strict=True):
        assert outcome.scores, (found.task.name, outcome.outcome.result)
        for metric, value in outcome.scores.items():
            place = found.task.name, doc["doc_id"], metric
            if isinstance(value, int | float):
                # Some are truth values there.
                assert value == pytest.approx(_number(doc[metric]), abs=1e-9), place
                compared += 1
            elif found.task.scoring.output_type.is_of_given_text:
                # A log-probability, and what it is divided by, where that is said there.
                assert value == pytest.approx(_pair(doc[metric]), abs=1e-9), place
                compared += 1
            elif metric in VALUES_FOR_CODE:
                # The right choice, and a number for each choice.
                assert _numbers(value) == pytest.approx(_numbers(doc[metric]), abs=1e-9), place
                compared += 1
    assert compared >= len(found.outcomes)


def _pair(value: object) -> list[float]:
    return [float(each) for each in value] if isinstance(value, list) else [_number(value), 1.0]


def _numbers(value: object) -> list[float]:
    if isinstance(value, list | tuple):
        return [number for each in value for number in _numbers(each)]
    return [_number(value)]


def _number(value: object) -> float:
    assert isinstance(value, bool | int | float), value
    return float(value)


def _assert_same_figures(found: Evaluated) -> None:
    [summary] = found.ours.summary.tasks
    results = found.theirs["results"]
    assert summary.failed == 0
    for metric, figure in summary.figures.items():
        name, _, read_by = metric.partition(",")
        [key] = [each for each in results if each == metric or (not read_by and each.startswith(f"{name},"))]
        assert figure.mean == pytest.approx(results[key], abs=1e-9), (found.task.name, metric)
