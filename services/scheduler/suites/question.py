"""One row becomes one question, or says in which way it is unfit."""

import ast
from collections.abc import Sequence

from services.scheduler.suites.prompt_template import FieldProblem, PromptTemplate
from services.scheduler.suites.row_source import Row
from services.scheduler.suites.sample import Question, Target
from services.scheduler.suites.task_definition import OutputType, TaskDefinition


class QuestionWriter:
    """Writes the questions of one task, with or without solved examples before them."""

    def __init__(self, task: TaskDefinition) -> None:
        self._templates = task.templates
        self._delimiter = task.scoring.target_delimiter
        self._example_end = task.fewshot.delimiter
        self._is_choice = task.scoring.output_type is OutputType.MULTIPLE_CHOICE
        choices = self._templates.choices
        self._choices_template = choices if isinstance(choices, PromptTemplate) else None
        self._fixed_choices = () if isinstance(choices, PromptTemplate) else choices
        self._fixed_continuations = self._continuations(self._fixed_choices)

    def question(self, row: Row, examples: str = "") -> Question:
        prompt = f"{self._templates.description}{examples}{self._templates.text.text(row)}"
        choices = self._choices(row)
        target = self._target(row, choices)
        if not self._is_choice:
            return Question(prompt, (), target)
        return Question(prompt, self._fixed_continuations or self._continuations(choices), target)

    def example(self, row: Row) -> str:
        """A question with its answer, as it stands before the next question."""
        choices = self._choices(row)
        target = self._target(row, choices)
        answer = target.texts[0] if target.choice is None else choices[target.choice]
        text = self._templates.text.text(row)
        return f"{text}{self._delimiter}{answer}{self._example_end}" if answer else text

    def cluster(self, row: Row) -> str:
        template = self._templates.cluster
        return "" if template is None else template.text(row)

    def _continuations(self, choices: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{self._delimiter}{choice}" for choice in choices)

    def _choices(self, row: Row) -> Sequence[str]:
        if self._choices_template is None:
            return self._fixed_choices
        listed = _parsed(self._choices_template.value(row))
        if not isinstance(listed, list | tuple) or not listed:
            raise FieldProblem("doc_to_choice gives no list of choices")
        choices = tuple(str(choice) for choice in listed)
        if not all(choices):
            raise FieldProblem("one of the choices is empty")
        return choices

    def _target(self, row: Row, choices: Sequence[str]) -> Target:
        template = self._templates.target
        value = template.value(row)
        if value is None:
            raise FieldProblem(f"the field {template.source!r} is null", template.source)
        is_column = template.template is None and template.source in row
        accepted = _accepted(value, is_column=is_column, has_choices=bool(choices))
        if not choices:
            return Target(texts=tuple(str(one) for one in accepted))
        if len(accepted) != 1:
            raise FieldProblem(f"{len(accepted)} right choices where there must be exactly one")
        index = _index_of(accepted[0], choices)
        return Target(choice=index) if self._is_choice else Target(texts=(choices[index],))


def _accepted(value: object, *, is_column: bool, has_choices: bool) -> list[object]:
    """A column is taken as it is; a rendered text may write a number (of a choice) or a list."""
    if isinstance(value, list | tuple):
        return _not_empty(list(value))
    if isinstance(value, str) and not is_column:
        if has_choices and value.isdigit():
            return [int(value)]
        if value.startswith("[") and value.endswith("]"):
            parsed = _parsed(value)
            return _not_empty(parsed) if isinstance(parsed, list) else [value]
    return [value]


def _not_empty(accepted: list[object]) -> list[object]:
    if not accepted:
        raise FieldProblem("doc_to_target gives an empty list")
    return accepted


def _index_of(label: object, choices: Sequence[str]) -> int:
    if isinstance(label, str) and label in choices:
        return choices.index(label)
    if isinstance(label, int) and 0 <= label < len(choices):
        return int(label)
    raise FieldProblem(f"the label {label!r} is none of the {len(choices)} choices")


def _parsed(value: object) -> object:
    """Templates give text; a text that is a Python literal stands for the list it writes."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
