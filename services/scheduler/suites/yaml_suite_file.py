"""One YAML file of a suite, read and held against the schema; what is wrong is told with its line and key."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import cast

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from services.scheduler.suites.suite_errors import InvalidSuiteFile

SCHEMA_FILE = Path(__file__).resolve().parents[3] / "suites" / "task.schema.json"

Fields = Mapping[str, object]


def read_suite_file(file: Path, definition: str) -> Fields:
    """`definition`: what the file declares, "suite" or "task"."""
    try:
        text = file.read_text(encoding="utf-8")
        fields = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InvalidSuiteFile(file, f"no valid YAML: {error.problem}", line=line) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidSuiteFile(file, f"cannot be read: {error}") from error
    violation = best_match(_validator(definition).iter_errors(fields))
    if violation is not None:
        raise _invalid(file, text, violation)
    return cast("Fields", fields)


def fault(file: Path, key: str, problem: str) -> InvalidSuiteFile:
    """What the schema cannot say of a file that it lets pass."""
    return InvalidSuiteFile(file, problem, key, _line_of(file.read_text(encoding="utf-8"), [key]))


@cache
def _validator(definition: str) -> Draft202012Validator:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    own = {**schema, "$ref": f"#/$defs/{definition}"}
    return Draft202012Validator(own, format_checker=Draft202012Validator.FORMAT_CHECKER)


def _invalid(file: Path, text: str, violation: ValidationError) -> InvalidSuiteFile:
    path = list(violation.absolute_path)
    key = ".".join(str(part) for part in path)
    return InvalidSuiteFile(file, violation.message, key, _line_of(text, path))


def _line_of(text: str, path: Iterable[str | int]) -> int | None:
    """Follow the keys and indexes of `path` through the document, as far as they lead."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for part in path:
        below = _child(node, part)
        if below is None:
            break
        node = below
    return None if node is None else int(node.start_mark.line) + 1


def _child(node: yaml.Node | None, part: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
        return cast("yaml.Node", node.value[part])
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    return None
