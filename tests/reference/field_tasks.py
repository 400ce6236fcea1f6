"""Tasks of lm-evaluation-harness as they are, evaluated there and here over rows of our own making."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from proctor.task_names import TaskNames, read_task_names
from proctor.values.outcome import Answer
from services.scheduler.suites.format.yaml_files import SuiteFiles
from services.scheduler.suites.format.yaml_suite_reader import NameRule, read_suite
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.rows.row_source import Provenance, RowSet, RowsReference
from services.scheduler.suites.suite import SuiteDefinition
from tests.reference.field_answers import ANSWERS, REPEATED
from tests.reference.field_rows import made_rows
from tests.reference.golden_reference import hash_answer, hash_text
from tests.reference.lm_eval_venv import lm_eval_tasks

# By a task, a group or a tag, how many examples are shown; None: as the task says. The first Open LLM
# Leaderboard shows more of them, which are drawn in the same way.
LEADERBOARD_1: Mapping[str, int | None] = {
    "arc_challenge": 5,
    "hellaswag": 5,
    "winogrande": 5,
    "truthfulqa_mc1": 0,
    "truthfulqa_mc2": 0,
    "mmlu": 5,
    "gsm8k": 5,
}
FIELD: Mapping[str, int | None] = {
    **LEADERBOARD_1,
    "leaderboard": None,
    "hendrycks_math": None,
    "minerva_math": None,
    "mmlu_pro": None,
    "gpqa_main_zeroshot": None,
    "gpqa_diamond_cot_zeroshot": None,
    "gpqa_extended_generative_n_shot": None,
    "bbh_zeroshot": None,
    "bbh_cot_zeroshot": None,
    "truthfulqa_gen": None,
    "drop": 2,
    "race": None,
    "ifeval": None,
    "aime24": None,
    "aime25": None,
    "lambada_openai": None,
    "lambada_standard": 2,
    "lambada_standard_cloze_yaml": None,
    "lambada_openai_mt_en": None,
    "wikitext": None,
    "pile_10k": None,
    "piqa": 3,
    "openbookqa": 3,
    "triviaqa": 2,
    "nq_open": 2,
    "medqa_4options": 1,
    "mgsm_direct": None,
    "mgsm_cot_native": None,
    "xnli": 1,
    "belebele_ceb_Latn": None,
    "babilong_qa1": 2,
    "graphwalks_128k": None,
    "cieacova_choice": None,
    "mmlu_early_training": None,
    "gsm8k_cot_self_consistency": None,
    "gsm8k_platinum_cot_self_consistency": None,
}
# What code of a task loads: data sets with a configuration and their splits.
LOADED: Mapping[str, Sequence[tuple[str, str, Sequence[str]]]] = {
    "babilong_qa1": [("RMT-team/babilong-1k-samples", "0k", ("qa1",))],
    "graphwalks_128k": [("openai/graphwalks", "", ("train",))],
    "cieacova_choice": [("gplsi/cieacova", "multiple_choice", ("train", "test"))],
}


class MadeRows:
    """The rows of our own making, of any split."""

    def open(self, reference: RowsReference) -> RowSet:
        return RowSet(
            made_rows(reference.hub_id, reference.config, reference.split), Provenance("test", "", "")
        )


@cache
def _names() -> TaskNames:
    return read_task_names(_paths(), _read)


@cache
def _paths() -> tuple[str, ...]:
    root = lm_eval_tasks()
    return tuple(sorted(path.relative_to(root).as_posix() for path in root.rglob("*.yaml")))


def _read(path: str) -> bytes:
    return (lm_eval_tasks() / path).read_bytes()


def field_suites(name: str) -> list[SuiteDefinition]:
    """The suite of a task or a group, or those of the tasks of a tag."""
    names = _names()
    return [_suite(names.files[one]) for one in ([name] if name in names.files else names.tagged[name])]


def _suite(path: str) -> SuiteDefinition:
    files = SuiteFiles(_read, path, _paths)
    # All files are read for them, which takes seconds.
    files.__dict__["task_names"] = _names()
    reading = read_suite(files, Path(lm_eval_tasks()), NameRule())
    assert reading.suite is not None, reading.faults[:3]
    return reading.suite


def field_answer(sample: RenderedSample) -> Answer:
    """What the model says there as well: the hash of the prompt chooses it."""
    if sample.choices:
        return hash_answer(sample)
    return Answer(ANSWERS[hash_text(sample.prompt.as_text) % len(ANSWERS)])


def field_answer_again(sample: RenderedSample, rollout: int) -> Answer:
    """Some are said more often than others: by the squares of the numbers of rollouts."""
    return Answer(REPEATED[(hash_text(sample.prompt.as_text) + rollout**2) % len(REPEATED)])
