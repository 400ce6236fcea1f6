"""docs/guides/suites.md says what the schema and the catalogue say, and its example is one."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor.values.sample import MAX_SUITE_BYTES
from services.results.scoring.answer_filters import FILTERS, MAJORITY_VOTE
from services.scheduler.suites import add_suite as check_suite
from services.scheduler.suites import show_sample
from services.scheduler.suites.format.metric_specs import METRICS
from services.scheduler.suites.format.suite_document import (
    MAX_FILES,
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    SuiteDocument,
)
from services.scheduler.suites.format.yaml_suite_reader import read_document
from services.scheduler.suites.rendering.render_task import open_task
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.rows.file_rows import FileRows
from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES
from services.scheduler.suites.suite import FewshotRule, Generation
from services.scheduler.suites.templates import budget as template_budget
from services.scheduler.suites.templates import cost_writer

REPOSITORY = Path(__file__).parents[3]
DOC = (REPOSITORY / "docs" / "guides" / "suites.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("key", sorted(set(keys_of(SCHEMA))))
def test_every_key_of_the_schema_is_described(key: str) -> None:
    assert f"`{key}`" in DOC


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_described(metric: str) -> None:
    assert f"`{metric}`" in section("Metrics")


@pytest.mark.parametrize("function", [*FILTERS, MAJORITY_VOTE])
def test_every_filter_is_described(function: str) -> None:
    assert f"| `{function}` |" in section("Filters")


@pytest.mark.parametrize(
    ("heading", "limit"),
    [
        ("Templates", f"{cost_writer.MAX_SOURCE_CHARACTERS // 1024} Ki characters"),
        ("Templates", f"{cost_writer.MAX_PARTS:,} parts, {cost_writer.MAX_DEPTH} levels"),
        ("Templates", f"{template_budget.MAX_STEPS:,}: parts"),
        ("Templates", f"{template_budget.MAX_CHARACTERS // MIB} Mi characters"),
        ("Templates", f"{template_budget.MAX_REGEX_SECONDS:g} s together"),
        ("Templates", f"{template_budget.MAX_INTEGER_BITS:,} bits"),
        ("Rows", f"A row has at most {MAX_ROW_BYTES // MIB} MiB"),
        ("Examples", f"`seed` | {FewshotRule().seed} |"),
        (
            "A task",
            f"`max_gen_toks` | 1 to {maximum('generation', 'max_gen_toks'):,} | {Generation().max_tokens} |",
        ),
        ("A task", f"`num_fewshot` | 0 to {maximum('task', 'num_fewshot')} |"),
        ("The suite", f"at most {SCHEMA['$defs']['name']['maxLength']} letters"),
        ("The smallest suite", f"A check may take {check_suite.TIMEOUT_SECONDS:g} s"),
        ("Versions", f"{MAX_PATH_BYTES:,}\nbytes and names of {MAX_NAME_BYTES} in them"),
        ("Versions", f"{MAX_SUITE_BYTES // MIB} MiB in {MAX_FILES} files"),
    ],
)
def test_limits_and_defaults_are_those_of_the_code(heading: str, limit: str) -> None:
    assert limit in section(heading)


def test_a_check_and_a_sample_may_take_the_same_time() -> None:
    assert check_suite.TIMEOUT_SECONDS == show_sample.TIMEOUT_SECONDS


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
