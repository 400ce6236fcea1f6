"""No text of a table begins as a formula, in exports and in the files of pages alike."""

import csv
import io
from collections.abc import Sequence

import pyarrow.parquet as pq
import pytest
from starlette.responses import StreamingResponse

from proctor.values.plain import csv_safe
from services.gateway.pages.table_files import FileForm, Value, each_of, streamed_file

BEGINS = "=+-@\t\r\n＝＋－＠"


async def written(
    form: FileForm, columns: Sequence[str], records: Sequence[Sequence[Value]], *numbers: str
) -> bytes:
    response = await streamed_file("x", form, columns, each_of(records), numbers=numbers)
    assert isinstance(response, StreamingResponse)
    assert response.headers["Content-Disposition"] == f'attachment; filename="x.{form}"'
    return b"".join([bytes(piece) async for piece in response.body_iterator if not isinstance(piece, str)])


@pytest.mark.parametrize("begin", BEGINS)
async def test_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe(begin: str) -> None:
    formula = f"{begin}HYPERLINK(1)"
    assert csv_safe(formula) == f"'{formula}"
    file = (await written("csv", ["model"], [[formula]])).decode()
    rows = list(csv.reader(io.StringIO(file, newline="")))
    assert rows == [["model"], [f"'{formula}"]]


@pytest.mark.parametrize("text", ["", "a=b", "-1.5", "+3", "-1e-7", "mistral:latest"])
def test_other_texts_and_numbers_stay(text: str) -> None:
    assert csv_safe(text) == text


async def test_numbers_of_pages_stay_numbers() -> None:
    file = await written("csv", ["accuracy", "delta"], [[-0.25, None]])
    assert file == b"accuracy,delta\r\n-0.25,\r\n"


@pytest.mark.parametrize("count", [0, 1, 2500])
async def test_parquet_has_the_rows_of_a_page_in_typed_columns(count: int) -> None:
    records: list[list[Value]] = [
        [f"=m{number} é", None if number % 2 else number] for number in range(count)
    ]
    file = await written("parquet", ["model", "score"], records, "score")
    table = pq.read_table(io.BytesIO(file))
    assert [str(field.type) for field in table.schema] == ["string", "double"]
    assert [[row["model"], row["score"]] for row in table.to_pylist()] == records
