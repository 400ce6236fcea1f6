"""Validates values against suites/task.schema.json; each violation is one sentence at its path."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path as FilePath
from typing import Any, cast

from jsonschema import Draft202012Validator, FormatChecker, TypeChecker
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend

from services.common.patterns import compile_pattern
from services.scheduler.suites.format.suite_document import ValueFault

_FORMATS = FormatChecker(formats=())
SCHEMA_FILE = FilePath(__file__).resolve().parents[4] / "suites" / "task.schema.json"
_MAX_SENTENCE_CHARACTERS = 300
# Unknown keys reported per mapping.
MAX_KEYS = 100


def suite_validator(schema: Mapping[str, object]) -> Draft202012Validator:
    validator: Draft202012Validator = _SuiteValidator(schema, format_checker=_FORMATS)
    return validator


@_FORMATS.checks("regex", raises=re.error)
def _is_regex(value: object) -> bool:
    if isinstance(value, str):
        compile_pattern(value)
    return True


def _is_integer(_: TypeChecker, value: object) -> bool:
    """JSON Schema accepts 1.0, which breaks code that needs an int."""
    return isinstance(value, int) and not isinstance(value, bool)


def _pattern(
    _: Draft202012Validator, pattern: str, value: object, __: Mapping[str, object]
) -> Iterator[ValidationError]:
    """Checks ECMA patterns, where `$` is the end of the text; in Python a line break may follow."""
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_SuiteValidator = extend(  # type: ignore[no-untyped-call]  # its types leave it out
    Draft202012Validator,
    validators={"pattern": _pattern},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


def schema_faults(value: object, definition: str) -> list[ValueFault]:
    """`definition` is a path below the schema's definitions: "task", or "metric/properties/pattern"."""
    return [found for error in _validator(definition).iter_errors(value) for found in _faults(error)]


@cache
def _validator(definition: str) -> Draft202012Validator:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    own = {**schema, "$ref": f"#/$defs/{definition}"}
    return suite_validator(own)


def _faults(violation: ValidationError) -> Iterator[ValueFault]:
    # Where several alternatives fail, the best match says what is wrong.
    error = best_match([violation]) or violation
    path = tuple(error.absolute_path)
    schema = cast("Mapping[str, Any]", error.schema)
    match error.validator:
        case "required":
            # One violation per missing key; only its message names the key.
            missing = [key for key in schema["required"] if error.message.startswith(repr(key))]
            yield from (ValueFault((*path, key), "is missing") for key in missing)
        case "additionalProperties":
            known = list(schema["properties"])
            unknown = [key for key in cast("Mapping[str, object]", error.instance) if key not in known]
            yield from (
                ValueFault((*path, key), f"there is no such key{_advice(key, known)}")
                for key in unknown[:MAX_KEYS]
            )
        case _:
            yield ValueFault(path, _value_sentence(error, schema))


def _value_sentence(error: ValidationError, schema: Mapping[str, Any]) -> str:
    """The fault of a value itself, whatever its keys are."""
    match error.validator:
        case "oneOf":
            names = [name for way in schema["oneOf"] for name in way["required"]]
            return f"exactly one of {', '.join(names)} is needed"
        case "enum":
            return f"{error.instance!r:.60} is none of {', '.join(schema['enum'])}"
        case "minLength":
            return "it is empty"
        case "maxLength":
            return f"it has {len(str(error.instance))} characters, and may have {schema['maxLength']}"
        case "format":
            return f"{error.instance!r:.60} is not a regular expression: {error.cause}"
        case "type" if schema["type"] == "string" and isinstance(error.instance, bool | int | float):
            return f"{_sentence(error.message)}{_why_no_text(error.instance)}"
        case _:
            return _sentence(error.message)


def _advice(key: str, known: Sequence[str]) -> str:
    close = get_close_matches(key, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; the keys are {', '.join(known)}"


def _why_no_text(value: float) -> str:
    if isinstance(value, bool):
        return ": YAML takes words such as no and on for truth values, so put it in quotes"
    return ": put the number in quotes"


def _sentence(message: str) -> str:
    """Shortens the message: the library quotes the whole value."""
    half = _MAX_SENTENCE_CHARACTERS // 2
    return message if len(message) <= _MAX_SENTENCE_CHARACTERS else f"{message[:half]} … {message[-half:]}"
