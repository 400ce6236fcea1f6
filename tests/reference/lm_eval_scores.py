"""A script for lm-evaluation-harness's own environment: it scores given answers over given rows.

Reads jobs by task from standard input and writes what `make_golden.py` writes, so that both are compared in
one way; a metric read through several filters is named `metric,filter`. Continuations are weighed by the hash
of the golden files.
"""

import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Mapping, MutableSequence, Sequence
from pathlib import Path
from typing import Any, Protocol, TypedDict

import langdetect
import lm_eval
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

EVALUATED_SPLITS = (
    *("validation", "validation_mismatched", "test"),
    *("team_allocation", "murder_mysteries", "object_placements"),
)
EXAMPLE_SPLITS = ("train", "dev")


class Job(TypedDict):
    """`yaml`: a file below lm_eval/tasks. `rows`, `pool`: JSONL files. `answers`: a text per row, or none."""

    yaml: str
    rows: str
    pool: str
    shots: int
    answers: list[str]


class Request(Protocol):
    args: tuple[str, str]
    task_name: str
    doc_id: int


class GivenModel(LM):  # type: ignore[misc]  # lm_eval is in an environment of its own
    """Says the given answers; weighs continuations by a hash."""

    def __init__(self, answers: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.answers = answers

    def loglikelihood(self, requests: Sequence[Request]) -> list[tuple[float, bool]]:
        hashes = [int(hashlib.sha256("\0".join(one.args).encode()).hexdigest(), 16) for one in requests]
        return [(-(one % 1000) / 100.0, one % 1000 < 100) for one in hashes]

    def loglikelihood_rolling(self, requests: Sequence[Request]) -> list[float]:
        """As that of a continuation of nothing."""
        hashes = [int(hashlib.sha256(f"\0{one.args[0]}".encode()).hexdigest(), 16) for one in requests]
        return [-(one % 1000) / 100.0 for one in hashes]

    def generate_until(self, requests: Sequence[Request]) -> list[str]:
        return [self.answers[one.task_name][one.doc_id] for one in requests]


def write_task(folder: Path, name: str, job: Job) -> None:
    """The task of lm-evaluation-harness, over files instead of a hub."""
    files = dict.fromkeys(EVALUATED_SPLITS, job["rows"]) | dict.fromkeys(EXAMPLE_SPLITS, job["pool"])
    own = {
        "include": str(Path(lm_eval.__file__).parent / "tasks" / job["yaml"]),
        "task": name,
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": files},
        "num_fewshot": job["shots"],
    }
    (folder / f"{name}.yaml").write_text(json.dumps(own))


def _leave(x: MutableSequence[Any]) -> None:
    """In its order."""


def evaluated(jobs: Mapping[str, Job]) -> dict[str, dict[str, object]]:
    """What lm-evaluation-harness makes of the jobs; its tasks keep their names with `ref_` before them.

    Languages are detected with the draws that we have. Options of GPQA, which are shuffled there, keep the
    order that they have here for a question whose length is a multiple of their number.
    """
    langdetect.DetectorFactory.seed = 0
    random.shuffle = _leave
    with tempfile.TemporaryDirectory() as folder:
        for name, job in jobs.items():
            write_task(Path(folder), f"ref_{name}", job)
        done = simple_evaluate(
            model=GivenModel({f"ref_{name}": job["answers"] for name, job in jobs.items()}),
            tasks=[f"ref_{name}" for name in jobs],
            task_manager=TaskManager(include_path=folder),
            log_samples=True,
            bootstrap_iters=1000,
        )
    return {
        name: {
            "version": done["versions"][f"ref_{name}"],
            "results": done["results"][f"ref_{name}"],
            "docs": docs_of(done["samples"][f"ref_{name}"]),
        }
        for name in jobs
    }


def docs_of(samples: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """One per row, in order; lm-evaluation-harness gives one per row and filter."""
    has_several = len({sample["filter"] for sample in samples}) > 1
    docs: dict[object, dict[str, object]] = {}
    for sample in samples:
        kept = {key: sample[key] for key in ("doc_id", "target", "arguments")}
        suffix = f",{sample['filter']}" if has_several else ""
        metrics = sample["metrics"]
        assert isinstance(metrics, list)
        scores = {f"{metric}{suffix}": sample[metric] for metric in metrics}
        docs.setdefault(sample["doc_id"], kept).update(scores)
    return sorted(docs.values(), key=lambda doc: int(str(doc["doc_id"])))


if __name__ == "__main__":
    json.dump(evaluated(json.load(sys.stdin)), sys.stdout, default=float)
