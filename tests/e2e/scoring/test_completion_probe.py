"""A completion probe: a model rewrites rows, and the suite that follows has a figure with an interval."""

import json
from pathlib import Path

import pytest

from tests.e2e.harness.entry_points import proctor
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

OTHER = "openai/other"
ROWS = 12


async def test_probe_is_a_run_of_two_choices_for_each_row(stack: StackHarness, tmp_path: Path) -> None:
    text = "Row {0} begins with some words that all know, and it ends with its own number {0}."
    rows = [{"text": text.format(number)} for number in range(ROWS)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"text": "too short"}]))
    made = await proctor(
        stack,
        f"contamination probe {file} --paraphraser {OTHER} -o {tmp_path / 'probe'} --name own_words --json",
    )
    assert made.code == 0, made
    assert (made.document["rows"], made.document["left_out"]) == (ROWS, 0)
    added = await proctor(stack, f"suites add {made.document['suite']}")
    assert added.code == 0, added
    shown = await proctor(stack, "suites show own_words --row 1 --json")
    choices = shown.document["sample"]["choices"]
    # The fake server rewrites all alike, and says so in the first place of each second row.
    assert choices[0].strip() == "The answer is unknown."
    assert choices[1].endswith("its own number 1.")
    assert shown.document["sample"]["target"]["choice"] == 1
    done = await proctor(stack, f"run --suite own_words --model {MODEL} --json")
    assert done.code == 0, done
    [task] = done.document["summary"]["tasks"]
    assert [figure["metric"] for figure in task["metrics"]] == ["acc_norm", "acc"]
    figure = task["metrics"][0]
    assert figure["n"] == ROWS
    assert 0 <= figure["ci_low"] <= figure["mean"] <= figure["ci_high"] <= 1
    wrong = await proctor(stack, f"contamination probe {file} --paraphraser {OTHER} -o {tmp_path} --name a/b")
    assert wrong.code == 2
