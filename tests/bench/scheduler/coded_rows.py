"""Planning and scoring by Python code of a task, in sandboxes; planning beside lm-evaluation-harness."""

import asyncio
import json
import subprocess
import tempfile
import time
from pathlib import Path
from textwrap import dedent

from rich.console import Console
from rich.table import Table

from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.task_code.bubblewrap import BubblewrapCode
from services.results.scoring.code.score_by_code import AnswerToCode, ScoreByCode
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.ports import AnswerToScore
from services.results.scoring.score import ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.scheduler.suites.code.coded_rows import CodedRows
from services.scheduler.suites.format.yaml_files import SuiteFiles
from services.scheduler.suites.format.yaml_suite_reader import NameRule, read_suite
from services.scheduler.suites.rendering.render_task import open_task
from services.scheduler.suites.rows.file_rows import FileRows
from tests.bench.scheduler.rendering import write_rows
from tests.reference.lm_eval_venv import lm_eval_python

ROWS, ANSWERS, TRIES = 100_000, 5_000, 2
_TASK = """\
task: coded
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
output_type: multiple_choice
process_docs: !function utils.process_docs
doc_to_text: !function utils.doc_to_text
doc_to_choice: [A, B, C, D]
doc_to_target: answer
metric_list: [{metric: acc}]
"""
_CODE = """\
import re


def process_docs(dataset):
    def changed(doc):
        options = [each.strip() for each in doc["choices"]]
        return {"query": re.sub(r"\\s+", " ", doc["question"]).strip(), "options": options}

    return dataset.map(changed)


def doc_to_text(doc):
    listed = "\\n".join(f"{letter}. {option}" for letter, option in zip("ABCD", doc["options"]))
    return f"Question: {doc['query']}\\n{listed}\\nAnswer:"


def score(doc, results):
    return {"acc": float(doc["answer"] in re.findall(r"\\w+", results[0].lower()))}
"""
_THEIRS = """
import time
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml
began = time.monotonic()
task = ConfigurableTask(config=dict(load_yaml("coded.yaml")))
task.build_all_requests()
print(len(task.eval_docs), time.monotonic() - began)
"""


def plan_here(folder: Path) -> float:
    """Seconds from the file of rows to hashed samples."""
    files = SuiteFiles(lambda path: (folder / path).read_bytes(), "coded.yaml", lambda: ["coded.yaml"])
    reading = read_suite(files, folder, NameRule())
    if reading.suite is None:
        raise SystemExit(f"{reading.faults}")
    [task] = reading.suite.tasks
    started = time.monotonic()
    made = sum(1 for _ in open_task(task, CodedRows(FileRows(), _runner())).samples)
    if made != ROWS:
        raise SystemExit(f"{made} samples of {ROWS} rows")
    return time.monotonic() - started


def plan_there(folder: Path, number: int) -> float:
    """Seconds from the file of rows to requests, without imports; its cache of data sets is a new one."""
    environment = {"HF_DATASETS_CACHE": str(folder / f"cache{number}"), "HF_HUB_OFFLINE": "1"}
    command = [str(lm_eval_python()), "-c", dedent(_THEIRS)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    count, seconds = done.stdout.split()[-2:]
    if int(count) != ROWS:
        raise SystemExit(f"{count} requests of {ROWS} rows")
    return float(seconds)


async def score_here() -> tuple[float, float]:
    """Seconds on the clock, and of CPU outside of the sandboxes."""
    uses = (MetricUse("acc"),)
    scoring = compile_scoring(
        TaskScoring(OutputType.GENERATE_UNTIL, uses, process_results="utils.py:score", code_digest="d")
    )
    target, answer = ScoringTarget(texts=("two",)), Answer("So the answer of it is forty two, I think. " * 10)
    scored = score_answer(scoring, target, answer)
    row = json.dumps({"question": "How many?", "answer": "two"})
    given = [AnswerToCode(one, row, AnswerToScore(target, answer), scored) for one in range(ANSWERS)]
    started, cpu = time.monotonic(), time.process_time()
    await ScoreByCode(_runner()).score(scoring, {"utils.py": _CODE.encode()}, given)
    return time.monotonic() - started, time.process_time() - cpu


def _runner() -> BubblewrapCode:
    return BubblewrapCode(BubblewrapEngine(find_bubblewrap()))


async def main() -> None:
    table = Table(title=f"Python code of a task: {ROWS:,} rows planned, {ANSWERS:,} answers scored")
    for name in (
        "planned here, s",
        "by lm-evaluation-harness, s",
        "ratio",
        "scored, µs each",
        "own CPU, µs each",
    ):
        table.add_column(name, justify="right")
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as path:
        folder = Path(path)
        write_rows(folder / "rows.jsonl", ROWS)
        (folder / "coded.yaml").write_text(_TASK, encoding="utf-8")
        (folder / "utils.py").write_text(_CODE, encoding="utf-8")
        for number in range(TRIES):
            here = await asyncio.to_thread(plan_here, folder)
            there = await asyncio.to_thread(plan_there, folder, number)
            seconds, cpu = await score_here()
            each = [f"{value / ANSWERS * 1e6:.0f}" for value in (seconds, cpu)]
            table.add_row(f"{here:.1f}", f"{there:.1f}", f"{here / there:.2f}", *each)
    Console(width=100).print(table)
