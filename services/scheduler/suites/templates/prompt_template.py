"""One template of a task: a column name, or sandboxed Jinja over a row."""

import re
from dataclasses import dataclass

import regex
from jinja2 import Template, TemplateError, TemplateSyntaxError, UndefinedError, meta

from services.common.threads.cancellable_threads import check_cancelled
from services.scheduler.suites.rows.row_source import SourceRow
from services.scheduler.suites.templates.budget import BUDGET, RenderingBudget
from services.scheduler.suites.templates.budgeted_environment import new_environment
from services.scheduler.suites.templates.cost_writer import MAX_SOURCE_CHARACTERS, CostWriter, check_size
from services.scheduler.suites.templates.errors import (
    InvalidTemplate,
    NullWritten,
    OverBudget,
    RowFault,
    UnfitTemplate,
)
from services.scheduler.suites.templates.plain_template import PlainTemplate, plain_template

_ENVIRONMENT = new_environment()
# Errors that a template can cause on a row; anything else is a bug here.
_TEMPLATE_FAILURES = (
    *(TemplateError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
    *(re.error, regex.error),
)
# Errors of Python in code generated from a template: numbers too long, loops nested too deeply.
_COMPILE_FAILURES = (SyntaxError, RecursionError, ValueError, OverflowError)
_SHOWN_CHARACTERS = 200
# The whole row, for columns whose names are not names of Jinja; a column of this name comes first.
ROW = "row"


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """`template` is None if the source is a column name or plain text.

    `plain` writes the same text in a fifth of the time, where the template is text and names alone.
    """

    source: str
    fields: tuple[str, ...]
    template: Template | None
    plain: PlainTemplate | None = None

    def value(self, row: SourceRow) -> object:
        """Returns the column's value unchanged, or the rendered text. Raises `RowFault`."""
        if self.template is not None:
            text = None if self.plain is None else self.plain.text(row)
            return self._render(self.template, row) if text is None else text
        if self.source in row:
            return row[self.source]
        if self.source.isidentifier():
            raise RowFault(f"the field {self.source!r} is missing", self.source)
        return self.source

    def text(self, row: SourceRow) -> str:
        value = self.value(row)
        if value is None:
            raise RowFault(f"the field {self.source!r} is null", self.source)
        return value if isinstance(value, str) else str(value)

    def _render(self, template: Template, row: SourceRow) -> str:
        check_cancelled()
        token = BUDGET.set(RenderingBudget())
        try:
            is_whole = ROW in self.fields and ROW not in row
            return template.render({**row, ROW: row} if is_whole else row)
        except UndefinedError as error:
            raise self._fault_of(row, str(error)) from error
        except NullWritten as error:
            raise self._fault_of(row, "a null would be written into the prompt") from error
        except OverBudget as error:
            raise self._failure(f"was stopped: {error}") from error
        except _TEMPLATE_FAILURES as error:
            raise self._failure(f"failed: {str(error).rstrip('.')}") from error
        finally:
            BUDGET.reset(token)

    def _fault_of(self, row: SourceRow, message: str) -> RowFault:
        for field in self.fields:
            if field == ROW:
                continue
            if field not in row:
                return RowFault(f"the field {field!r} is missing", field)
            if row[field] is None:
                return RowFault(f"the field {field!r} is null", field)
        return self._failure(f"failed: {message}")

    def _failure(self, what: str) -> RowFault:
        is_long = len(self.source) > _SHOWN_CHARACTERS
        shown = self.source[:_SHOWN_CHARACTERS] + "…" if is_long else self.source
        return RowFault(f"the template {shown!r} {what}")


def compile_template(source: str) -> PromptTemplate:
    """Raises `InvalidTemplate`."""
    if len(source) > MAX_SOURCE_CHARACTERS:
        raise InvalidTemplate(f"it has more than {MAX_SOURCE_CHARACTERS:,} characters")
    if not any(mark in source for mark in ("{{", "{%", "{#")):
        return PromptTemplate(source=source, fields=(source,) if source.isidentifier() else (), template=None)
    check_cancelled()
    try:
        parsed = _ENVIRONMENT.parse(source)
        check_size(parsed)
        fields = sorted(meta.find_undeclared_variables(parsed))
        plain = plain_template(parsed)
        template = _ENVIRONMENT.from_string(CostWriter().visit(parsed))
        # Jinja copies the globals for each row: as a dict, not its ChainMap, a row takes a sixth less time.
        template.globals = dict(template.globals)
    except TemplateSyntaxError as error:
        raise InvalidTemplate(f"line {error.lineno} of the template: {error.message}") from error
    except (TemplateError, UnfitTemplate) as error:
        raise InvalidTemplate(str(error)) from error
    except _COMPILE_FAILURES as error:
        raise InvalidTemplate(f"it cannot be compiled: {error}") from error
    return PromptTemplate(source=source, fields=tuple(fields), template=template, plain=plain)
