"""One row becomes a prompt with its right answer, or raises the reason why it cannot."""

from collections.abc import Sequence

from proctor.values.sample import Target
from proctor.values.scoring import OutputType
from services.scheduler.suites.rendering.sample import RenderedRow
from services.scheduler.suites.rows.row_source import SourceRow
from services.scheduler.suites.suite import TaskDefinition
from services.scheduler.suites.templates.errors import RowFault
from services.scheduler.suites.templates.literals import parse_literal
from services.scheduler.suites.templates.prompt_template import PromptTemplate

# More digits are a text and no index of a choice.
_MAX_INDEX_DIGITS = 6


def read_labels(template: PromptTemplate, row: SourceRow, *, has_choices: bool) -> list[object]:
    """Right answers (texts or indexes of choices) in the order of the target.

    A column's value is used unchanged; in rendered text, numbers are choice indexes and lists are parsed.
    """
    value = _require_value(template, template.value(row))
    is_column = template.template is None and template.source in row
    if isinstance(value, str) and not is_column:
        value = _read_label(value, has_choices=has_choices)
    labels = list(value) if isinstance(value, list | tuple) else [value]
    if not labels:
        raise RowFault("doc_to_target gives an empty list")
    return labels


def _read_label(text: str, *, has_choices: bool) -> object:
    if has_choices and text.isascii() and text.isdigit() and len(text) <= _MAX_INDEX_DIGITS:
        return int(text)
    if text.startswith("[") and text.endswith("]"):
        listed = parse_literal(text)
        return listed if isinstance(listed, list) else text
    return text


def choice_index(label: object, choices: Sequence[str]) -> int:
    if isinstance(label, str) and label in choices:
        return choices.index(label)
    if isinstance(label, int) and 0 <= label < len(choices):
        return int(label)
    raise RowFault(f"the label {label!r} is none of the {len(choices)} choices{_hint(label)}")


def _hint(label: object) -> str:
    """Explains why a digit in a text column (CSV has no others) is not an index."""
    is_number = isinstance(label, str) and label.isascii() and label.isdigit()
    return " (it is text; as a template, {{…}}, it would be an index)" if is_number else ""


def text_list(template: PromptTemplate, row: SourceRow, key: str) -> tuple[str, ...]:
    """Texts of a column or template that gives a list; `key` is named in the error."""
    value = template.value(row)
    listed = parse_literal(value) if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not listed:
        raise RowFault(f"{key} gives no list of texts")
    if None in listed:
        raise RowFault(f"{key} gives a list with a null")
    return tuple(one if isinstance(one, str) else str(one) for one in listed)


def _require_value(template: PromptTemplate, value: object) -> object:
    if value is None:
        raise RowFault(f"the field {template.source!r} is null", template.source)
    return value


def _is_joined(before: str, after: str) -> bool:
    """Two texts that would run into each other."""
    return bool(before and after) and not (before[-1].isspace() or after[0].isspace())


class RowRenderer:
    """Renders the rows of one task, with or without few-shot examples."""

    def __init__(self, task: TaskDefinition) -> None:
        self._templates = task.templates
        self._delimiter = task.scoring.target_delimiter
        self._example_end = task.fewshot.delimiter
        self._output_type = task.scoring.output_type
        choices = self._templates.choices
        self._choices_template = choices if isinstance(choices, PromptTemplate) else None
        self._fixed_choices = () if isinstance(choices, PromptTemplate) else choices
        self._fixed_continuations = self._continuations(self._fixed_choices)
        self._has_texts_only = self._templates.wrong_texts is None and self._templates.choice_texts is None

    def render(self, row: SourceRow, examples: str = "") -> RenderedRow:
        right = self._right_context(row)
        if right is not None:
            return self._contexts(row, examples, right)
        if self._output_type is OutputType.LOGLIKELIHOOD_ROLLING:
            counted = self._templates.counted_text
            texts = (counted.text(row),) if counted else ()
            return RenderedRow("", (self._given_text(row),), Target(choice=0, texts=texts))
        question, begin = self._question(row)
        prompt = f"{self._description(row)}{examples}{question}{begin}"
        if self._output_type is OutputType.LOGLIKELIHOOD:
            return RenderedRow(prompt, (self._given_text(row),), Target(choice=0))
        choices = self._choices(row)
        if self._output_type is OutputType.GENERATE_UNTIL:
            return RenderedRow(prompt, (), self._text_target(row, choices))
        target = self._choice_target(row, choices, self._right_indexes(row, choices))
        return RenderedRow(prompt, self._fixed_continuations or self._continuations(choices), target)

    def _description(self, row: SourceRow) -> str:
        of_row = self._templates.row_description
        return self._templates.description if of_row is None else of_row.text(row)

    def _given_text(self, row: SourceRow) -> str:
        text = self._templates.target.text(row)
        if not text and self._output_type is OutputType.LOGLIKELIHOOD:
            raise RowFault("doc_to_target gives an empty text")
        return text

    def _right_context(self, row: SourceRow) -> int | None:
        """The number that `doc_to_text` gives where the choices are contexts, and one text follows each."""
        template = self._templates.text
        if not self._templates.text_may_be_index:
            return None
        value = template.value(row)
        if isinstance(value, str):
            is_number = template.template is not None and value.isascii() and value.isdigit()
            return int(value) if is_number and len(value) <= _MAX_INDEX_DIGITS else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _contexts(self, row: SourceRow, examples: str, right: int) -> RenderedRow:
        contexts, template = self._choices(row), self._templates.answer_begin
        begin = "" if template is None else template.text(row)
        ending = f"{self._delimiter}{self._templates.target.text(row)}"
        if not ending.strip():
            raise RowFault("doc_to_target gives no text to follow the choices")
        return RenderedRow(
            f"{self._description(row)}{examples}",
            tuple(f"{context}{begin}{ending}" for context in contexts),
            self._choice_target(row, contexts, [choice_index(right, contexts)]),
            ending,
        )

    def example(self, row: SourceRow) -> str:
        """The text of a row with its first right answer, as shown before another row."""
        right = self._right_context(row)
        if right is None:
            answer = self._right_texts(row, self._choices(row))[0]
            question, begin = self._question(row)
        else:
            contexts, answer = self._choices(row), self._templates.target.text(row)
            question, begin = self._begun(contexts[choice_index(right, contexts)], row)
        if not answer:
            return question + begin
        # As lm-evaluation-harness: after a begin of the answer the delimiter is a space.
        delimiter = (" " if _is_joined(begin, answer) else "") if begin else self._delimiter
        return f"{question}{begin}{delimiter}{answer}{self._example_end}"

    def _question(self, row: SourceRow) -> tuple[str, str]:
        """The question, with a delimiter where one is needed, and the begin of the answer, "" for none."""
        return self._begun(self._templates.text.text(row), row)

    def _begun(self, question: str, row: SourceRow) -> tuple[str, str]:
        template = self._templates.answer_begin
        if template is None:
            return question, ""
        begin = template.text(row)
        return question + self._delimiter if _is_joined(question, begin) else question, begin

    def cluster(self, row: SourceRow) -> str:
        template = self._templates.cluster
        return "" if template is None else template.text(row)

    def _continuations(self, choices: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{self._delimiter}{choice}" for choice in choices)

    def _choices(self, row: SourceRow) -> Sequence[str]:
        if self._choices_template is None:
            return self._fixed_choices
        choices = text_list(self._choices_template, row, "doc_to_choice")
        if not all(choices):
            raise RowFault("one of the choices is empty")
        return choices

    def _choice_target(self, row: SourceRow, choices: Sequence[str], right: Sequence[int]) -> Target:
        several = tuple(sorted(set(right)))
        is_one = len(several) == 1
        return Target(
            choice=several[0] if is_one else None,
            texts=self._listed(row, self._templates.answers, "doc_to_answers"),
            right_choices=() if is_one else several,
            choice_texts=self._choice_texts(row, choices),
        )

    def _choice_texts(self, row: SourceRow, choices: Sequence[str]) -> tuple[str, ...]:
        texts = self._listed(row, self._templates.choice_texts, "doc_to_choice_text")
        if texts and len(texts) != len(choices):
            raise RowFault(f"doc_to_choice_text gives {len(texts)} texts for {len(choices)} choices")
        return texts

    def _text_target(self, row: SourceRow, choices: Sequence[str]) -> Target:
        texts = self._right_texts(row, choices)
        if self._has_texts_only:
            return Target(texts=texts)
        return Target(
            texts=texts,
            wrong_texts=self._listed(row, self._templates.wrong_texts, "doc_to_wrong_target"),
            choice_texts=self._listed(row, self._templates.choice_texts, "doc_to_choice_text"),
        )

    def _right_texts(self, row: SourceRow, choices: Sequence[str]) -> tuple[str, ...]:
        if choices:
            return tuple(choices[index] for index in self._right_indexes(row, choices))
        labels = read_labels(self._templates.target, row, has_choices=False)
        if None in labels:
            raise RowFault("doc_to_target gives a list with a null")
        return tuple(str(label) for label in labels)

    def _right_indexes(self, row: SourceRow, choices: Sequence[str]) -> list[int]:
        labels = self._templates.target_indexes or read_labels(self._templates.target, row, has_choices=True)
        return [choice_index(label, choices) for label in labels]

    def _listed(self, row: SourceRow, template: PromptTemplate | None, key: str) -> tuple[str, ...]:
        return () if template is None else text_list(template, row, key)
