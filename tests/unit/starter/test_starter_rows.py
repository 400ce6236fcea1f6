"""The starter suite's rows: made by rule, apart from each other, and what the templates need."""

import random
from itertools import islice
from pathlib import Path

import pytest

from proctor.starter import make_rows
from proctor.starter.make_rows import SUITE_DIR, is_current, read_rows, row_file, row_identity, write_stamp
from proctor.starter.render_prompts import held_out_examples, held_out_questions, training_examples

TASKS = sorted(make_rows.DRAWS)


def test_rows_in_the_repository_are_the_ones_that_the_script_makes(tmp_path: Path) -> None:
    make_rows.write_rows(tmp_path)
    for task in TASKS:
        for split in ("train", "test"):
            assert (
                row_file(tmp_path, task, split).read_bytes() == row_file(SUITE_DIR, task, split).read_bytes()
            )


@pytest.mark.parametrize("task", TASKS)
def test_no_test_question_is_asked_in_train(task: str) -> None:
    asked = {row_identity(task, row) for row in read_rows(SUITE_DIR, task, "train")}
    assert len(asked) == make_rows.TRAIN_ROWS
    assert not asked & held_out_questions(SUITE_DIR, task)


@pytest.mark.parametrize("task", TASKS)
def test_training_never_asks_a_test_prompt(task: str) -> None:
    held_out = {example.prompt for example in held_out_examples(SUITE_DIR, task)}
    practised = {each.prompt for each in islice(training_examples(SUITE_DIR, task, random.Random(0)), 3000)}
    assert not practised & held_out


def test_commuted_addition_is_the_same_question() -> None:
    assert row_identity("addition", {"a": 3, "b": 4}) == row_identity("addition", {"a": 4, "b": 3})


def test_prompts_are_rendered_by_the_suites_own_templates() -> None:
    example = held_out_examples(SUITE_DIR, "addition")[0]
    row = read_rows(SUITE_DIR, "addition", "test")[0]
    assert example.prompt == f"Question: What is {row['a']} + {row['b']}?\nAnswer:"
    assert example.delimiter + example.answer == f" {row['sum']}"


def test_model_is_current_only_with_the_stamp_of_this_recipe(tmp_path: Path) -> None:
    assert not is_current(tmp_path)
    write_stamp(tmp_path)
    assert is_current(tmp_path)
    (tmp_path / "recipe.sha256").write_text("another recipe", encoding="ascii")
    assert not is_current(tmp_path)
