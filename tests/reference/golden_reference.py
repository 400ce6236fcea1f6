"""The golden files of lm-evaluation-harness: their rows, their model (a hash), what they hold of a task."""

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TypedDict, cast

import pytest

from proctor.values.outcome import Answer, ChoiceScore
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.rows.file_rows import MirrorRows
from services.scheduler.suites.rows.row_source import RowSet, RowsReference

GoldenDoc = dict[str, object]


class GoldenTask(TypedDict):
    version: float | str
    docs: list[GoldenDoc]
    results: dict[str, float | str]


@dataclass(frozen=True)
class GoldenFile:
    """Which rows its maker read, and how many examples it showed."""

    name: str
    shots: int
    rows: int


GOLDEN_FILES = (GoldenFile("golden_0shot.json", 0, 30), GoldenFile("golden_3shot.json", 3, 12))

# By suite; medical shares five subjects with mmlu.
GOLDEN_TASKS = {
    "glue": ("cola", "sst2", "mrpc", "qqp", "mnli", "qnli", "rte", "wnli"),
    "superglue": ("boolq", "cb", "copa", "multirc", "sglue_rte", "wic", "wsc"),
    "medical": (
        "pubmedqa",
        "medmcqa",
        "medqa_4options",
        "mmlu_anatomy",
        "mmlu_clinical_knowledge",
        "mmlu_college_biology",
        "mmlu_medical_genetics",
        "mmlu_professional_medicine",
    ),
    "mmlu": (
        "mmlu_abstract_algebra",
        "mmlu_anatomy",
        "mmlu_clinical_knowledge",
        "mmlu_college_biology",
        "mmlu_college_computer_science",
        "mmlu_formal_logic",
        "mmlu_high_school_mathematics",
        "mmlu_machine_learning",
        "mmlu_medical_genetics",
        "mmlu_moral_scenarios",
        "mmlu_professional_medicine",
        "mmlu_us_foreign_policy",
    ),
}
GOLDEN_TASK_NAMES = [(suite, task) for suite, tasks in GOLDEN_TASKS.items() for task in tasks]


def folder_of(variable: str) -> Path:
    if variable not in os.environ:
        pytest.skip(f"{variable} is not set: parity is not checked without the real rows and golden files")
    return Path(os.environ[variable])


@cache
def golden_tasks(file: Path) -> dict[str, GoldenTask]:
    """What make_golden.py wrote, by task."""
    return cast("dict[str, GoldenTask]", json.loads(file.read_text(encoding="utf-8")))


def golden_file(golden: GoldenFile) -> dict[str, GoldenTask]:
    return golden_tasks(folder_of("PROCTOR_REFERENCE_DIR") / "lm_eval" / golden.name)


def hash_logprob(context: str, continuation: str) -> float:
    """The model of the golden files: what it thinks of a continuation depends on both texts alone."""
    return -_hash(context, continuation) / 100.0


def hash_answer(sample: RenderedSample) -> Answer:
    """What that model answers to a sample of choices."""
    hashes = [_hash(context, continuation) for context, continuation in continuations_of(sample)]
    return Answer(choices=tuple(ChoiceScore(-one / 100.0, one < 100) for one in hashes))


def continuations_of(sample: RenderedSample) -> list[tuple[str, str]]:
    """Context and continuation of each request, as lm-evaluation-harness makes them."""
    prompt, ending = sample.prompt.as_text, sample.choice_ending
    if ending:
        return [(prompt + choice.removesuffix(ending), ending) for choice in sample.choices]
    return [(prompt, choice) for choice in sample.choices]


def _hash(context: str, continuation: str) -> int:
    return hash_text(f"{context}\0{continuation}") % 1000


def hash_text(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


@dataclass(frozen=True)
class GoldenRows:
    """The first rows of the evaluated split, also where examples are asked for; MMLU's come from `dev`."""

    mirror: MirrorRows
    evaluated: RowsReference
    count: int

    def open(self, reference: RowsReference) -> RowSet:
        if reference.split == "dev":
            return self.mirror.open(reference)
        found = self.mirror.open(self.evaluated)
        return RowSet(islice(found.rows, self.count), found.provenance)


def golden_rows(evaluated: RowsReference, count: int) -> GoldenRows:
    return GoldenRows(MirrorRows(folder_of("PROCTOR_DATA_DIR")), evaluated, count)
