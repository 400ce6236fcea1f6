"""Lists and mappings that are written as JSON or in Python's syntax."""

import ast

import orjson

from services.scheduler.suites.templates.errors import RowFault

# Python's parser takes many times the memory of its text.
MAX_LITERAL_CHARACTERS = 1024 * 1024


def parse_literal(text: str) -> object:
    """Returns other text unchanged."""
    if len(text) > MAX_LITERAL_CHARACTERS:
        raise RowFault(f"a list is written with more than {MAX_LITERAL_CHARACTERS:,} characters")
    try:
        return orjson.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    # Python's parser raises the last two for brackets that are nested deeply.
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
