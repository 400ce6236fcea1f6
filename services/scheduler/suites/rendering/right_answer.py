"""What a target says: indexes of choices, or texts. A template writes numbers and lists as text."""

import ast
from collections.abc import Sequence

import orjson

from services.scheduler.suites.rows.row_source import Row
from services.scheduler.suites.templates.prompt_template import FieldProblem, PromptTemplate

MAX_LIST_CHARACTERS = 1024 * 1024
_MAX_INDEX_DIGITS = 6


def labels_of(template: PromptTemplate, row: Row, *, has_choices: bool) -> list[object]:
    """What is right, in the order of the target.

    A column is taken as it is; a rendered text may write a number (of a choice) or a list.
    """
    value = _not_null(template, template.value(row))
    is_column = template.template is None and template.source in row
    if isinstance(value, str) and not is_column:
        value = _read_label(value, has_choices=has_choices)
    labels = list(value) if isinstance(value, list | tuple) else [value]
    if not labels:
        raise FieldProblem("doc_to_target gives an empty list")
    return labels


def _read_label(text: str, *, has_choices: bool) -> object:
    if has_choices and text.isascii() and text.isdigit() and len(text) <= _MAX_INDEX_DIGITS:
        return int(text)
    if text.startswith("[") and text.endswith("]"):
        listed = _read(text)
        return listed if isinstance(listed, list) else text
    return text


def index_of(label: object, choices: Sequence[str]) -> int:
    if isinstance(label, str) and label in choices:
        return choices.index(label)
    if isinstance(label, int) and 0 <= label < len(choices):
        return int(label)
    raise FieldProblem(f"the label {label!r} is none of the {len(choices)} choices{_hint(label)}")


def _hint(label: object) -> str:
    """A column of text is compared with the choices; a file such as CSV has no other columns."""
    is_number = isinstance(label, str) and label.isascii() and label.isdigit()
    return " (it is text; as a template, {{…}}, it would be an index)" if is_number else ""


def list_of(template: PromptTemplate, row: Row, key: str) -> tuple[str, ...]:
    """The texts of a column or template that gives a list of them. `key` names it where it does not."""
    value = template.value(row)
    listed = _read(value) if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not listed:
        raise FieldProblem(f"{key} gives no list of texts")
    if None in listed:
        raise FieldProblem(f"{key} gives a list with a null")
    return tuple(one if isinstance(one, str) else str(one) for one in listed)


def _not_null(template: PromptTemplate, value: object) -> object:
    if value is None:
        raise FieldProblem(f"the field {template.source!r} is null", template.source)
    return value


def _read(text: str) -> object:
    """A list written as JSON or as Python has it; a text that is neither stands for itself."""
    if len(text) > MAX_LIST_CHARACTERS:
        raise FieldProblem(f"a list is written with more than {MAX_LIST_CHARACTERS:,} characters")
    try:
        return orjson.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
