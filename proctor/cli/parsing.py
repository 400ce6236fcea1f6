"""Metrics as they are written on the command line.
What `proctor run` was asked for, and the order that it stands for.
"""

import json
from collections.abc import Mapping
from typing import TypeVar

from proctor.cli.render.documents import Json
from proctor.client.errors import Refused
from proctor.v1 import run_pb2, sample_pb2

_FORM = 'write it as NAME, NAME:OPTION=VALUE or {"metric": "f1", "average": "macro"}'


def metric_use(text: str) -> sample_pb2.MetricUse:
    """A name, a name with one option, or a JSON object as it stands in a metric_list."""
    if text.lstrip().startswith("{"):
        return _of_object(text)
    name, separator, option = text.partition(":")
    if not separator:
        return sample_pb2.MetricUse(name=text)
    key, equals, value = option.partition("=")
    if not (name and key and equals):
        raise Refused(f"--metric {text}: {_FORM}.", "INVALID_PARAMETER")
    return sample_pb2.MetricUse(name=name, options_json=json_text({key: _value(value)}))


def json_text(value: Json) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:  # YAML has dates and NaN
        raise Refused(f"This cannot be sent: {error}.", "INVALID_PARAMETER") from error


def _of_object(text: str) -> sample_pb2.MetricUse:
    try:
        options = json.loads(text)
        name = options.pop("metric")
    except (ValueError, KeyError) as error:
        raise Refused(f"--metric {text}: {_FORM}.", "INVALID_PARAMETER") from error
    return sample_pb2.MetricUse(name=name, options_json=json_text(options) if options else "")


def _value(text: str) -> Json:
    """A number, a list, true; else the text as it stands."""
    try:
        value: Json = json.loads(text)
    except ValueError:
        return text
    return value


T = TypeVar("T")

PRIORITIES: Mapping[str, run_pb2.Priority.ValueType] = {
    "high": run_pb2.PRIORITY_HIGH,
    "normal": run_pb2.PRIORITY_NORMAL,
    "low": run_pb2.PRIORITY_LOW,
}
SCORING_METHODS: Mapping[str, run_pb2.ScoringMethod.ValueType] = {
    "auto": run_pb2.SCORING_METHOD_UNSPECIFIED,
    "loglikelihood": run_pb2.SCORING_METHOD_LOGLIKELIHOOD,
    "generate": run_pb2.SCORING_METHOD_GENERATE,
    "constrained": run_pb2.SCORING_METHOD_CONSTRAINED,
}


def chosen(words: Mapping[str, T], word: str, option: str) -> T:
    if word not in words:
        raise Refused(f"{option} {word}: it must be one of {', '.join(words)}.", "INVALID_PARAMETER")
    return words[word]
