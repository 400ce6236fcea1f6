"""One template of a task: the name of a column, or sandboxed Jinja over a row."""

import re
from dataclasses import dataclass

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, UndefinedError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from services.scheduler.suites.row_source import Row


class InvalidTemplate(Exception):
    """A template cannot be compiled."""


class FieldProblem(Exception):
    """A row lacks what a template or a task needs of it."""

    def __init__(self, problem: str, field: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.field = field


class _NullWritten(Exception):
    """A template wrote a null, which would show the model the word None."""


def _refuse_null(value: object) -> object:
    if value is None:
        raise _NullWritten
    return value


def _regex_replace(text: str, pattern: str, replacement: str, count: int = 0) -> str:
    return re.sub(pattern, replacement, text, count=count)


def _new_environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, finalize=_refuse_null
    )
    environment.filters["regex_replace"] = _regex_replace
    return environment


_ENVIRONMENT = _new_environment()
_TEMPLATE_FAILURES = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    re.error,
)
"""What a template can do wrong with a row; anything else is a fault of ours."""


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """`template` is None where the source is a column's name or plain text."""

    source: str
    fields: tuple[str, ...]
    template: Template | None

    def value(self, row: Row) -> object:
        """The column as it is in the row, or the rendered text."""
        if self.template is not None:
            return self._render(self.template, row)
        if self.source in row:
            return row[self.source]
        if self.source.isidentifier():
            raise FieldProblem(f"the field {self.source!r} is missing", self.source)
        return self.source

    def text(self, row: Row) -> str:
        value = self.value(row)
        if value is None:
            raise FieldProblem(f"the field {self.source!r} is null", self.source)
        return value if isinstance(value, str) else str(value)

    def _render(self, template: Template, row: Row) -> str:
        try:
            return template.render(row)
        except UndefinedError as error:
            raise self._problem_of(row, str(error)) from error
        except _NullWritten as error:
            raise self._problem_of(row, "a null would be written into the prompt") from error
        except _TEMPLATE_FAILURES as error:
            raise FieldProblem(f"the template {self.source!r} failed: {error}") from error

    def _problem_of(self, row: Row, message: str) -> FieldProblem:
        for field in self.fields:
            if field not in row:
                return FieldProblem(f"the field {field!r} is missing", field)
            if row[field] is None:
                return FieldProblem(f"the field {field!r} is null", field)
        return FieldProblem(f"the template {self.source!r} failed: {message}")


def compile_template(source: str) -> PromptTemplate:
    if not any(mark in source for mark in ("{{", "{%", "{#")):
        return PromptTemplate(source=source, fields=(source,) if source.isidentifier() else (), template=None)
    try:
        fields = sorted(meta.find_undeclared_variables(_ENVIRONMENT.parse(source)))
        template = _ENVIRONMENT.from_string(source)
    except TemplateSyntaxError as error:
        raise InvalidTemplate(f"line {error.lineno} of the template: {error.message}") from error
    except TemplateError as error:
        raise InvalidTemplate(str(error)) from error
    return PromptTemplate(source=source, fields=tuple(fields), template=template)
