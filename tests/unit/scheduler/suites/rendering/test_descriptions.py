"""What stands before the examples: a text, or a template of the row that is asked."""

from pathlib import Path

import pytest

from services.scheduler.suites.rendering.render_task import render_task
from tests.fakes.suites.suite_folder import load_one

ROWS = [{"thing": "grass", "label": 1}, {"thing": "blood", "label": 0}]


@pytest.mark.parametrize(
    ("description", "begin"),
    [
        ("Of {{thing}}:\n\n", "Of grass:\n\n"),
        ("thing", "thing"),  # a word is no column here
        ("{# of none #}", ""),
    ],
)
def test_a_description_may_say_something_of_the_row_that_is_asked(
    tmp_path: Path, description: str, begin: str
) -> None:
    task = load_one(tmp_path, description=description, fewshot_config={"sampler": "first_n"})
    sample = next(render_task(task, ROWS[:1], ROWS[1:2], 1))
    assert sample.prompt.as_text == f"{begin}blood is red\n\ngrass is"
