"""docs/guides/suites.md says what the schema and the catalogue say, and its example is one."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proctor.values.outcome import Answer
from services.results.scoring.answer_filters import FILTERS, MAJORITY_VOTE, TAKE_FIRST_K
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.score import ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.scheduler.suites.format.suite_document import (
    SuiteDocument,
)
from services.scheduler.suites.format.yaml_suite_reader import read_document
from services.scheduler.suites.rendering.render_task import open_task
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.rows.file_rows import FileRows

REPOSITORY = Path(__file__).parents[3]
DOC = (REPOSITORY / "docs" / "guides" / "suites.md").read_text(encoding="utf-8")
METRICS = (REPOSITORY / "docs" / "reference" / "answer-metrics.md").read_text(encoding="utf-8")
SCHEMA: Mapping[str, Any] = json.loads(
    (REPOSITORY / "suites" / "task.schema.json").read_text(encoding="utf-8")
)
MIB = 1024 * 1024


def keys_of(schema: object) -> Iterator[str]:
    """Every key that a suite file may have, wherever the schema lets it stand."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in schema.values():
            yield from keys_of(part)


def section(heading: str) -> str:
    return DOC.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def maximum(definition: str, key: str) -> int:
    highest: int = SCHEMA["$defs"][definition]["properties"][key]["maximum"]
    return highest


def fenced(language: str) -> str:
    """The first block of this language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", DOC, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def document(text: str) -> SuiteDocument:
    return SuiteDocument(text, "cities.yaml", {"cities.csv": fenced("csv").encode()})


def test_every_key_of_the_schema_is_described() -> None:
    assert [key for key in sorted(set(keys_of(SCHEMA))) if f"`{key}`" not in DOC + METRICS] == []


def test_every_filter_is_described() -> None:
    described = section("Filters")
    assert [
        name for name in (*FILTERS, MAJORITY_VOTE, TAKE_FIRST_K) if f"| `{name}` |" not in described
    ] == []


def test_the_bounds_of_keys_are_those_of_the_schema() -> None:
    assert f"`max_gen_toks` | 1 to {maximum('generation', 'max_gen_toks'):,} |" in section("A task")
    assert f"`num_fewshot` | 0 to {maximum('task', 'num_fewshot')} |" in section("A task")
    assert f"at most {SCHEMA['$defs']['name']['maxLength']} letters" in section("The suite")


def test_the_example_is_a_suite_that_can_be_asked(tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text(fenced("csv"))
    reading = read_document(document(fenced("yaml")), folder=tmp_path)
    assert reading.faults == ()
    assert reading.suite is not None
    asked: list[list[RenderedSample]] = [
        list(open_task(task, FileRows()).samples) for task in reading.suite.tasks
    ]
    choices, words = asked
    assert [sample.target.choice for sample in choices] == [0, 1, 1, 2]
    assert words[2].prompt.as_text.startswith("Name the country of Lisbon in one word: Portugal\n\n")
    assert words[2].target.texts == ("Italy",)


def test_the_example_of_mathematics_is_asked_for_a_box_and_scored_by_its_expression(tmp_path: Path) -> None:
    row = {"problem": "Solve x^2 = 2.", "solution": r"Roots: \boxed{\pm\sqrt{2}}."}
    (tmp_path / "algebra.jsonl").write_text(json.dumps(row))
    [task_text] = re.findall(r"^```yaml\n(task: algebra.*?)^```$", DOC, re.DOTALL | re.MULTILINE)
    task = "\n".join(f"    {line}" for line in task_text.splitlines()).replace("    task", "  - task", 1)
    text = f"suite: mathematics\ntasks:\n{task}\n"
    reading = read_document(SuiteDocument(text, "mathematics.yaml", {"algebra.jsonl": b""}), folder=tmp_path)
    assert reading.faults == ()
    assert reading.suite is not None
    [task_read] = reading.suite.tasks
    [sample] = open_task(task_read, FileRows()).samples
    assert sample.prompt.as_text.endswith(r"put your final answer within \boxed{}.")
    target = ScoringTarget(texts=sample.target.texts)
    scoring = compile_scoring(task_read.scoring)
    answers = [r"So \boxed{x = \sqrt2} or \boxed{x = -\sqrt2}", r"\boxed{\sqrt2}", "It is unclear."]
    scores = [score_answer(scoring, target, Answer(answer)) for answer in answers]
    assert [score.scores["math"] for score in scores] == [1.0, 0.0, 0.0]
    assert [score.is_unparsed for score in scores] == [False, False, True]


def test_the_faults_of_the_example_are_reported_as_shown() -> None:
    text = (
        fenced("yaml")
        .replace("doc_to_target", "doc_to_taget", 1)
        .replace("max_gen_toks: 8", "max_gen_toks: eight")
    )
    reported = [
        f"cities.yaml:{fault.line}: {fault.field}: {fault.problem}"
        for fault in read_document(document(text)).faults
    ]
    assert reported == fenced("text").splitlines()
