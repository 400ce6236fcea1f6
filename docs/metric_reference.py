"""The catalogue of metrics as a page of docs/reference, and as the end of suites/task.schema.json."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from proctor.values.metrics.catalogue import METRICS
from proctor.values.metrics.metric import Metric, MetricOption

SCHEMA = Path(__file__).resolve().parents[1] / "suites" / "task.schema.json"
ABOUT = (
    "A metric scores the answers of a task. The first one of `metric_list`, or of an order, is the main one. "
    "A right-or-wrong metric scores each answer 1 or 0, a graded one gives it a number; of labels, numbers, "
    "ranks and counts the figure is of all answers together, and those of counts are not compared between "
    "runs. Pages show shares and coefficients times a hundred. An unparsed answer is not right, and is in no "
    "correlation. The name in parentheses may be written where no metric of the task has that name. "
    "[Statistics](statistics.md) says how figures get their errors."
)
OPTIONS = (
    "Options stand beside `metric` in a suite, and behind the name in an order "
    "(`--metric 'regex:pattern=\\d+'`)."
)
# The generated definitions are the last ones of the schema.
_BEGIN = '    "metric_name": {'

Row = Sequence[str]
Table = tuple[Row, Iterable[Row]]


def metrics_table() -> Table:
    columns = ("metric", "scores", "what it is", "figure", "options", "unparsed where", "source")
    return columns, map(_metric_row, METRICS.values())


def _metric_row(metric: Metric) -> Row:
    return (
        f"`{metric.name}`{f' (`{metric.alias}`)' if metric.alias else ''}",
        "; ".join(each.in_words for each in metric.inputs),
        metric.description,
        f"{metric.unit.in_words}, {metric.kind}{_place(metric)}",
        ", ".join(f"`{option.name}`" for option in metric.options),
        metric.unparsed,
        metric.source,
    )


def _place(metric: Metric) -> str:
    if not metric.higher_is_better:
        return "; main only where of no other more is better"
    return "" if metric.may_be_headline else "; main only where alone"


def options_table() -> Table:
    return ("option", "of", "type", "default", "meaning"), map(_option_row, _options().values())


def _options() -> Mapping[str, MetricOption]:
    return {option.name: option for metric in METRICS.values() for option in metric.options}


def _option_row(option: MetricOption) -> Row:
    having = ", ".join(f"`{name}`" for name in _having(option))
    return f"`{option.name}`", having, _type_of(option.schema), option.default, option.description


def _having(option: MetricOption) -> Sequence[str]:
    return [name for name, metric in METRICS.items() if option in metric.options]


def _type_of(schema: Mapping[str, object]) -> str:
    """A type as one would say it."""
    match schema:
        case {"enum": [*words]}:
            return ", ".join(f"`{word}`" for word in words)
        case {"type": "array", "items": {"format": "regex"}}:
            return "list of regular expressions"
        case {"type": "array", "items": {"exclusiveMinimum": 0}, "minItems": least, "maxItems": most}:
            return f"list of {least:,} to {most:,} numbers above 0"
        case {"type": "object", "minProperties": least, "maxProperties": most}:
            return f"object of {least:,} to {most:,} labels with numbers from 0 to 1"
        case {"type": "array", "minItems": least, "maxItems": most}:
            return f"list of {least:,} to {most:,} texts"
        case {"format": "regex", "maxLength": most}:
            return f"regular expression of at most {most:,} characters"
        case {"type": "number", "minimum": least}:
            return f"number from {least}"
        case {"type": "boolean"}:
            return "true or false"
    raise SystemExit(f"docs/metric_reference.py has no words for an option with the schema {schema}.")


def schema_text() -> str:
    """The schema of suites with the names and options of the catalogue."""
    written, _, _ = SCHEMA.read_text(encoding="utf-8").partition(_BEGIN)
    properties = {
        "metric": {"$ref": "#/$defs/metric_name"},
        "aggregation": {"type": "string", "description": "Only to be held against the metric's own."},
        "higher_is_better": {
            "type": "boolean",
            "description": "Only to be held against the metric's own: true.",
        },
        **{name: _with_description(option) for name, option in _options().items()},
    }
    lines = (
        f'        "{name}": {json.dumps(schema, ensure_ascii=False)}' for name, schema in properties.items()
    )
    return "\n".join(
        (
            f"{written}{_BEGIN}",
            '      "$comment": "This and `metric` come from proctor/values/metrics by `make docs`.",',
            f'      "enum": {json.dumps(list(METRICS))}',
            "    },",
            '    "metric": {',
            '      "type": "object",',
            '      "additionalProperties": false,',
            '      "required": ["metric"],',
            '      "properties": {',
            ",\n".join(lines),
            "      }",
            "    }",
            "  }",
            "}\n",
        )
    )


def _with_description(option: MetricOption) -> Mapping[str, object]:
    about = f"Of {', '.join(_having(option))}. {option.description} Default: {option.default}."
    return {**option.schema, "description": about}
