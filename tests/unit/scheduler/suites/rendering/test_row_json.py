"""Rows as JSON text: the order of the fields, and what JSON has no word for."""

import json
from datetime import date, datetime
from decimal import Decimal

import pytest

from services.scheduler.suites.rendering.sample import row_as_json


def test_fields_keep_their_order() -> None:
    assert row_as_json({"b": 1, "a": [True, None, "é"]}) == '{"b":1,"a":[true,null,"é"]}'.encode()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (date(2026, 2, 1), "2026-02-01"),
        (datetime(2026, 2, 1, 3, 4, 5), "2026-02-01T03:04:05"),  # noqa: DTZ001  # as a file without zones has it
        (b"\xff\x00", "/wA="),
        (2**70, "1180591620717411303424"),
        ("\ud800", "?"),
        (Decimal("1.50"), "1.50"),
        ({1: {"deep": [b"x"]}}, {"1": {"deep": ["eA=="]}}),
    ],
)
def test_what_json_cannot_say_is_said_in_one_way(value: object, said: object) -> None:
    assert json.loads(row_as_json({"field": value, "other": "\x00"})) == {"field": said, "other": "\x00"}


def test_rows_that_are_nested_without_end_are_refused() -> None:
    row: dict[str, object] = {}
    for _ in range(600):
        row = {"in": row}
    with pytest.raises(TypeError):
        row_as_json(row)
