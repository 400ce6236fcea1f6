"""A task of lm-evaluation-harness whose examples a class of its own draws, as a folder of files."""

import json
from collections.abc import Sequence
from pathlib import Path

from services.scheduler.suites.rows.row_source import SourceRow
from services.scheduler.suites.suite import TaskDefinition
from services.scheduler.suites.yaml_installed_suites import load_suites

TASK = """\
task: sampled
dataset_path: json
dataset_kwargs: {data_files: {test: test.jsonl, train: train.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
num_fewshot: 3
"""
SAMPLER = "fewshot_config: {sampler: !function utils.Own}\n"
IMPORT = "from lm_eval.api.samplers import ContextSampler, FirstNSampler\n"


def question_rows(count: int, kinds: int = 3) -> list[SourceRow]:
    return [
        {"question": f"Frage {number} — ü?", "answer": f"{number * 7}", "kind": number % kinds}
        for number in range(count)
    ]


def sampled_task(
    folder: Path,
    code: str,
    more: str = f"{SAMPLER}fewshot_split: train\n",
    test: Sequence[SourceRow] = (),
    train: Sequence[SourceRow] = (),
) -> TaskDefinition:
    """`code` is that of `utils.py`, in which samplers are imported already; `more` ends the task's file."""
    (folder / "sampled.yaml").write_text(TASK + more)
    (folder / "utils.py").write_text(IMPORT + code)
    for name, rows in {"test": test or question_rows(30), "train": train or question_rows(20)}.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    [task] = load_suites(folder).suite("sampled").tasks
    return task
