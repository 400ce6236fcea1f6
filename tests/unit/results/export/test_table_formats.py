"""A table is written as the csv module writes it."""

import csv
import io

import orjson

from services.results.export.format import ExportedRun
from services.results.export.table_formats import SCORE_PREFIX, CsvFile, field_names
from services.results.runs.run_plan import RunRecord
from tests.fakes.results.exported_texts import NASTY_TEXTS
from tests.fakes.results.recorded_run import plan_of

JSON_FIELDS = ("choice_logprobs", "body")
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
