"""Texts whose log-probability is asked, instead of that of choices: what follows contexts."""

import pytest

from proctor.values.sample import Target
from services.scheduler.suites.errors import InvalidRow
from services.scheduler.suites.rendering.render_task import render_task
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.suite import TaskDefinition
from tests.fakes.suites.suite_documents import suite_of

CONTEXTS = """\
task: gaps
dataset_path: org/gaps
training_split: train
validation_split: validation
output_type: multiple_choice
doc_to_text: "{{answer}}"
doc_to_choice: "{{[before ~ ' cup', before ~ ' table']}}"
doc_to_target: "{{after}}"
fewshot_config: {sampler: first_n}
"""
ROWS = [
    {"before": "The", "after": "broke.", "answer": 1},
    {"before": "A", "after": "fell.", "answer": 0},
]


def task_of(text: str) -> TaskDefinition:
    [task] = suite_of(text).tasks
    return task


def samples_of(text: str, shots: int = 0, rows: list[dict[str, object]] = ROWS) -> list[RenderedSample]:
    """With examples the first row, before which the second one is shown."""
    return list(render_task(task_of(text), rows, rows[1:], shots, limit=1 if shots else None))


@pytest.mark.parametrize("question", ['"{{answer}}"', "answer"])
def test_a_question_that_is_a_number_names_the_context_that_is_right(question: str) -> None:
    first, second = samples_of(CONTEXTS.replace('"{{answer}}"', question))
    assert (first.prompt.text, first.choices) == ("", ("The cup broke.", "The table broke."))
    assert (first.choice_ending, first.target) == (" broke.", Target(choice=1))
    assert (second.choice_ending, second.target) == (" fell.", Target(choice=0))


def test_examples_are_the_right_context_with_what_follows() -> None:
    [first] = samples_of(CONTEXTS, shots=1)
    assert (first.prompt.text, first.choices[0]) == ("A cup fell.\n\n", "The cup broke.")


def test_what_is_scored_of_contexts_is_part_of_the_digest() -> None:
    whole = CONTEXTS.replace('"{{answer}}"', '""').replace('"{{after}}"', '"{{answer}}"')
    whole = whole.replace("' cup'", "' cup ' ~ after").replace("' table'", "' table ' ~ after")
    whole += 'target_delimiter: ""\n'
    one, other = samples_of(CONTEXTS)[0], samples_of(whole)[0]
    assert (one.prompt, one.choices, one.target) == (other.prompt, other.choices, other.target)
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"answer": 2}, "the label 2 is none of the 2 choices"), ({"after": ""}, "no text to follow")],
)
def test_a_context_that_is_not_there_or_that_nothing_follows_is_refused(
    change: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidRow, match=problem):
        samples_of(CONTEXTS, rows=[{**ROWS[0], **change}])


WORDS = """\
task: last_words
dataset_path: org/words
test_split: test
output_type: loglikelihood
doc_to_text: "{{before}}"
doc_to_target: "{{' ' ~ after}}"
target_delimiter: " ==> "
fewshot_config: {sampler: first_n}
"""


def test_a_given_text_follows_its_prompt_as_it_is() -> None:
    first, second = samples_of(WORDS)
    assert (first.prompt.text, first.choices, first.target) == ("The", (" broke.",), Target(choice=0))
    assert second.choices == (" fell.",)
    with pytest.raises(InvalidRow, match="an empty text"):
        samples_of(WORDS.replace("' ' ~ ", ""), rows=[{**ROWS[0], "after": ""}])


def test_a_whole_text_follows_nothing_and_may_be_empty() -> None:
    rolling = WORDS.replace("loglikelihood", "loglikelihood_rolling") + "description: Say it.\n"
    [first] = samples_of(rolling, shots=1)
    assert (first.prompt.text, first.choices) == ("", (" broke.",))
    [empty] = samples_of(rolling.replace("' ' ~ ", ""), rows=[{**ROWS[0], "after": ""}])
    assert empty.choices == ("",)
