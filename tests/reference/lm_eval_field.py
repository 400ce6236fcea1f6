"""A script for lm-evaluation-harness's own environment: evaluates its tasks as they are, over rows of files.

Reads {"rows": {data set: {config: {split: file}}}, "tasks": {name: number of examples or null},
"answers": [text], "repeated": [text]} from standard input. Writes by name what `lm_eval_scores.py` writes by
task, or {"error": sentence}. The model weighs continuations by the hash of the golden files, and says the
answer that the hash of the prompt chooses.
"""

import hashlib
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from lm_eval import simple_evaluate
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks import TaskManager
from lm_eval_scores import (  # type: ignore[import-not-found]  # it lies beside this script
    GivenModel,
    Request,
    docs_of,
)


class AnsweringModel(GivenModel):  # type: ignore[misc]  # as above
    """Says an answer by the hash of the prompt, and others where the request is repeated."""

    def __init__(self, said: Sequence[str], repeated: Sequence[str]) -> None:
        super().__init__({})
        self.said, self.repeated = said, repeated

    def generate_until(self, requests: Sequence[Request]) -> list[str]:
        asked: Counter[int] = Counter()
        said = []
        for one in requests:
            number, rollout = _hash(one.args[0]), asked[id(one)]
            again = self.repeated[(number + rollout**2) % len(self.repeated)]
            said.append(again if rollout else self.said[number % len(self.said)])
            asked[id(one)] += 1
        return said


def _hash(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def read_from(rows: Mapping[str, Mapping[str, Mapping[str, str]]]) -> None:
    """Puts these rows in the place of the hub."""

    def load_dataset(path: str, name: str | None = None, *, split: str | None = None, **_: Any) -> Any:
        configs = rows[path]
        files = configs.get(name or "") or configs["*"]
        splits = datasets.DatasetDict(
            {
                each: datasets.Dataset.from_list(
                    [json.loads(line) for line in Path(file).read_text().splitlines()]
                )
                for each, file in files.items()
            }
        )
        return splits if split is None else splits[split]

    datasets.load_dataset = load_dataset


def seed_each_split() -> None:
    """Code that draws at random gets the same draws for each split, whatever was evaluated before."""
    for name in ("training_docs", "validation_docs", "test_docs"):
        setattr(ConfigurableTask, name, _seeded(getattr(ConfigurableTask, name)))


def _seeded(read: Callable[..., object]) -> Callable[..., object]:
    def seeded(task: object) -> object:
        random.seed(0)
        np.random.seed(1234)
        return read(task)

    return seeded


def evaluated(task: str, shots: int | None, model: AnsweringModel, manager: TaskManager) -> dict[str, object]:
    done = simple_evaluate(
        model=model,
        tasks=[task],
        num_fewshot=shots,
        task_manager=manager,
        log_samples=True,
        bootstrap_iters=0,
        confirm_run_unsafe_code=True,
    )
    return {
        name: {
            "version": str(done["versions"][name]),
            "results": {
                key: value for key, value in done["results"][name].items() if isinstance(value, float | int)
            },
            "docs": docs_of(samples),
        }
        for name, samples in done["samples"].items()
    }


def plain(value: object) -> object:
    """Numbers and truth values of numpy, and else a text."""
    return value.item() if hasattr(value, "item") else str(value)


def main() -> None:
    job = json.load(sys.stdin)
    read_from(job["rows"])
    seed_each_split()
    model, manager = AnsweringModel(job["answers"], job["repeated"]), TaskManager()
    found: dict[str, object] = {}
    for task, shots in job["tasks"].items():
        try:
            found[task] = evaluated(task, shots, model, manager)
        except Exception as error:  # noqa: BLE001  # whatever a task does: the others are compared
            found[task] = {"error": f"{type(error).__name__}: {error}"}
    json.dump(found, sys.stdout, default=plain)


if __name__ == "__main__":
    main()
