"""Options that several commands have, and values written as text: metrics, JSON."""

import json
import re
from dataclasses import dataclass
from typing import Annotated

import typer

from proctor.cli.render.words import JsonValue
from proctor.client.errors import Refused
from proctor.stack.defaults import DEFAULT_GATEWAY_GRPC
from proctor.v1 import sample_pb2

Gateway = Annotated[
    str | None,
    typer.Option(
        envvar="PROCTOR_GATEWAY",
        metavar="HOST:PORT",
        help="gRPC address of the gateway, https://HOST:PORT with TLS; default: the local stack's, "
        f"else PROCTOR_GATEWAY_GRPC_ADDRESS, else {DEFAULT_GATEWAY_GRPC}.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")]
UserOption = Annotated[
    str,
    typer.Option(
        envvar="PROCTOR_USER",
        help="Name of the user at a gateway without API keys; others take it from PROCTOR_API_KEY.",
    ),
]
# Only by environment: other accounts of a machine see the arguments of a program.
API_KEY_VARIABLE = "PROCTOR_API_KEY"
RunIdArgument = Annotated[str, typer.Argument(metavar="RUN_ID", help="Id of the run (see `proctor runs`).")]
RunIdsArgument = Annotated[
    list[str], typer.Argument(metavar="RUN_ID...", help="Ids of the runs (see `proctor runs`).")
]
PageOption = Annotated[str, typer.Option(help="Token of the page, printed below the page before.")]
# What is made counts towards the same project, command after command.
PROJECT_VARIABLE = "PROCTOR_PROJECT"


class NamedProject(str):
    """The name of a project; a command gets the number, which its session asks for."""

    __slots__ = ()


def read_project(given: object) -> int | NamedProject:
    """Of an option. A name has more than digits."""
    text = str(given).strip()
    # A larger number is nobody's.
    return min(int(text), _INT64_MAX) if text.isdecimal() else NamedProject(text)


PROJECT_METAVAR = "PROJECT"
ProjectFilter = Annotated[
    int | None,
    typer.Option(
        parser=read_project, metavar=PROJECT_METAVAR, help="Only of this project, by name or number."
    ),
]
StorageProject = Annotated[
    int,
    typer.Option(
        envvar=PROJECT_VARIABLE,
        parser=read_project,
        metavar=PROJECT_METAVAR,
        help="Name or number of the project that it is in, and whose storage it counts towards; 0 is none.",
    ),
]
_INT64_MAX = 2**63 - 1
_POINTS = re.compile(r"(\d+(?:\.\d+)?) ?pts?")
_METRIC_FORM = 'write it as NAME, NAME:OPTION=VALUE or {"metric": "f1", "average": "macro"}'


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The options of every command that calls a gateway."""

    gateway: Gateway = None
    user: UserOption = ""
    as_json: AsJson = False


def points(option: str, text: str) -> float:
    found = _POINTS.fullmatch(text.strip())
    if not found:
        raise Refused(
            f"{option} {text}: write points with their unit, such as 1pt for a hundredth of a share."
        )
    return float(found[1])


def metric_use(text: str) -> sample_pb2.MetricUse:
    """A name, a name with one option, or a JSON object in the form of a metric_list entry."""
    if text.lstrip().startswith("{"):
        return _metric_of_json(text)
    name, separator, option = text.partition(":")
    if not separator:
        return sample_pb2.MetricUse(name=text)
    key, equals, value = option.partition("=")
    if not (name and key and equals):
        raise Refused(f"--metric {text}: {_METRIC_FORM}.")
    return sample_pb2.MetricUse(name=name, options_json=json_text({key: json_or_text(value)}))


def json_text(value: JsonValue) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:  # YAML has dates and NaN
        raise Refused(f"This cannot be sent: {error}.") from error


def json_or_text(text: str) -> JsonValue:
    """A number, a list, true; otherwise the text itself."""
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value


def _metric_of_json(text: str) -> sample_pb2.MetricUse:
    try:
        options = json.loads(text)
        name = options.pop("metric")
    except (ValueError, KeyError) as error:
        raise Refused(f"--metric {text}: {_METRIC_FORM}.") from error
    return sample_pb2.MetricUse(name=name, options_json=json_text(options) if options else "")
