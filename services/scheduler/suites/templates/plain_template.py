"""Templates of text and names of columns alone, which are most: written without Jinja, as Jinja does."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

from jinja2 import nodes

from services.scheduler.suites.rows.row_source import SourceRow
from services.scheduler.suites.templates.budget import MAX_CHARACTERS

_TEXTS = frozenset({str})
# Jinja writes the template itself for it, whatever the row has.
_TEMPLATE_ITSELF = "self"


@dataclass(frozen=True, slots=True)
class PlainTemplate:
    """`pattern` is one of the operator `%`; `values` takes those of its names from a row."""

    pattern: str
    values: Callable[[SourceRow], tuple[object, ...]]

    def text(self, row: SourceRow) -> str | None:
        """None where Jinja decides: a value is missing or no text, or the text is too long."""
        try:
            values = self.values(row)
        except KeyError:
            return None
        if not _TEXTS.issuperset(map(type, values)):
            return None
        return None if sum(map(len, values)) > MAX_CHARACTERS else self.pattern % values  # type: ignore[arg-type]  # all are texts


def plain_template(parsed: nodes.Template) -> PlainTemplate | None:
    """None for a template with anything else than text and names."""
    parts = [part for output in parsed.body if isinstance(output, nodes.Output) for part in output.nodes]
    names = [part.name for part in parts if isinstance(part, nodes.Name)]
    texts = [part for part in parts if isinstance(part, nodes.TemplateData)]
    is_all = all(isinstance(node, nodes.Output) for node in parsed.body)
    if not is_all or len(names) + len(texts) < len(parts) or _TEMPLATE_ITSELF in names:
        return None
    pattern = "".join(
        part.data.replace("%", "%%") if isinstance(part, nodes.TemplateData) else "%s" for part in parts
    )
    return PlainTemplate(pattern, _values_of(names))


def _values_of(names: list[str]) -> Callable[[SourceRow], tuple[object, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda row: tuple([row[name] for name in names])
