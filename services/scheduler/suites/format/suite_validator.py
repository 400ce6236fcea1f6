"""JSON Schema as suites mean it, where the library means less: whole numbers, ends of texts, patterns."""

import re
from collections.abc import Iterator, Mapping

import regex
from jsonschema import Draft202012Validator, FormatChecker, TypeChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from services.common.pattern_size import check_pattern_size

_FORMATS = FormatChecker(formats=())
# Of the two modules one takes it for a class of letters, the other for a set of colons and letters.
_POSIX_CLASS = re.compile(r"\[:\^?\w+:\]")


def suite_validator(schema: Mapping[str, object]) -> Draft202012Validator:
    validator: Draft202012Validator = _SuiteValidator(schema, format_checker=_FORMATS)
    return validator


def check_regex(pattern: str) -> None:
    """Both modules that are going to read it must take it. Raises re.error."""
    if _POSIX_CLASS.search(pattern):
        raise re.error("a class such as [:alpha:] is not known")
    try:
        re.compile(pattern)
        check_pattern_size(pattern)
        regex.compile(pattern, regex.VERSION0)
    except regex.error as error:
        raise re.error(str(error)) from error
    except (RecursionError, OverflowError) as error:
        raise re.error("it is nested too deeply, or a number in it is too large") from error


@_FORMATS.checks("regex", raises=re.error)
def _is_regex(value: object) -> bool:
    if isinstance(value, str):
        check_regex(value)
    return True


def _is_integer(_: TypeChecker, value: object) -> bool:
    """1.0 is one for JSON, and breaks what reckons with whole numbers."""
    return isinstance(value, int) and not isinstance(value, bool)


def _pattern(
    _: Draft202012Validator, pattern: str, value: object, __: Mapping[str, object]
) -> Iterator[ValidationError]:
    """In ECMA's patterns `$` is the end; in Python's a line break may follow."""
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_SuiteValidator = extend(  # type: ignore[no-untyped-call]  # its types leave it out
    Draft202012Validator,
    validators={"pattern": _pattern},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)
