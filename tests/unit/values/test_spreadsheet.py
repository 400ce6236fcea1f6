"""No text of a table begins as a formula, in exports and in the files of pages alike."""

import csv
import io

import pytest

from proctor.values.plain import csv_safe
from services.gateway.pages.table_files import csv_file

BEGINS = "=+-@\t\r\n＝＋－＠"


@pytest.mark.parametrize("begin", BEGINS)
def test_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe(begin: str) -> None:
    formula = f"{begin}HYPERLINK(1)"
    assert csv_safe(formula) == f"'{formula}"
    written = bytes(csv_file("x.csv", ["model"], [[formula]]).body).decode()
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert rows == [["model"], [f"'{formula}"]]


@pytest.mark.parametrize("text", ["", "a=b", "-1.5", "+3", "-1e-7", "mistral:latest"])
def test_other_texts_and_numbers_stay(text: str) -> None:
    assert csv_safe(text) == text


def test_numbers_of_pages_stay_numbers() -> None:
    assert (
        bytes(csv_file("x.csv", ["accuracy", "delta"], [[-0.25, None]]).body)
        == b"accuracy,delta\r\n-0.25,\r\n"
    )
