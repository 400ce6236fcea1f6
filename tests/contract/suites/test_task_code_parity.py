"""A task with Python code makes the rows, prompts and targets that lm-evaluation-harness makes of it."""

import json
from pathlib import Path

import pytest

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.task_code.bubblewrap import BubblewrapCode
from services.scheduler.suites.code.coded_rows import CodedRows
from services.scheduler.suites.rendering.render_task import open_task
from services.scheduler.suites.rows.file_rows import FileRows
from services.scheduler.suites.yaml_installed_suites import load_suites
from tests.reference.lm_eval_venv import run_in_lm_eval

ROWS = [
    {
        "question": f"Frage {number} — [x] ü?",
        "options": ["a", "b", "c"][: 2 + number % 2],
        "answer": number % 2,
    }
    for number in range(300)
]
TASK = """\
task: coded
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
output_type: multiple_choice
process_docs: !function utils.process
doc_to_text: !function utils.text
doc_to_choice: !function utils.choices
doc_to_target: !function utils.target
metric_list: [{metric: acc}]
"""
CODE = """\
import re

import datasets
import numpy as np


def process(dataset: datasets.Dataset) -> datasets.Dataset:
    def changed(doc, index):
        doc["options"].append("none of these")
        query = re.sub("[xü]", "", doc["question"])
        return {"query": query, "number": index, "all": doc["options"]}

    kept = dataset.filter(lambda doc: len(doc["options"]) == 3 or doc["answer"])
    kept = kept.map(changed, with_indices=True, remove_columns=["question"])
    assert kept.column_names == ["options", "answer", "query", "number", "all"]
    kept = kept.rename_column("number", "place").add_column("last", [str(row["number"]) for row in kept])
    batched = kept.map(lambda rows: {"last": [cell * 2 for cell in rows["last"]]}, batched=True)
    return batched.select(range(5, len(batched)))


def text(doc):
    return f"{doc['query']} {len(doc['options'])} {doc['last']}\\nAnswer:"


def choices(doc):
    return doc["all"]


def target(doc):
    return doc["answer"] if doc["place"] % 2 else doc["all"][doc["answer"]]
"""
THEIRS = """\
import json
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

task = ConfigurableTask(config=dict(load_yaml("coded.yaml")))
samples = []
for doc in task.eval_docs:
    choices, target = task.doc_to_choice(doc), task.doc_to_target(doc)
    index = choices.index(target) if isinstance(target, str) else target
    samples.append([task.doc_to_text(doc), [f" {choice}" for choice in choices], index])
print(json.dumps(samples))
"""


@pytest.mark.thorough
def test_code_makes_what_it_makes_there(tmp_path: Path) -> None:
    (tmp_path / "coded.yaml").write_text(TASK)
    (tmp_path / "utils.py").write_text(CODE)
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    [task] = load_suites(tmp_path).suite("coded").tasks
    runner = BubblewrapCode(BubblewrapEngine(find_bubblewrap()))
    samples = open_task(task, CodedRows(FileRows(), runner)).samples
    ours = [[sample.prompt.text, list(sample.choices), sample.target.choice] for sample in samples]
    script = f"import os; os.chdir({str(tmp_path)!r})\n{THEIRS}"
    printed = run_in_lm_eval(["-c", script], {"HF_DATASETS_CACHE": str(tmp_path / "cache")})
    assert ours == json.loads(printed.strip().splitlines()[-1])
    assert len(ours) > 100  # most of the rows
