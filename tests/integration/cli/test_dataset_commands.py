"""`proctor datasets …` as a script sees it, against a real gateway."""

import os
from pathlib import Path

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.common.errors import ErrorKind
from tests.fakes.eventually import eventually
from tests.fakes.gateway.dataset_service import FakeDatasets
from tests.fakes.refusals import refused
from tests.fakes.stack.command_line import CommandLine, ended

ID = "ds_" + 32 * "0"


async def test_file_is_uploaded_listed_shown_and_deleted(
    datasets: FakeDatasets, proctor: CommandLine, rows: Path
) -> None:
    assert "datasets upload FILE` makes one." in (await proctor("datasets")).out
    uploaded = await proctor("datasets", "upload", str(rows), "--user", "bob", "--format", "csv")
    assert (uploaded.code, uploaded.err) == (0, "")
    assert uploaded.out.splitlines()[0] == f"rows.jsonl  {ID}"
    assert "2 rows · 0 with a target · CSV, 32 bytes · /v1/completions · for starter" in uploaded.out
    [header] = datasets.headers
    assert (header.user, header.format, len(header.request_id)) == ("bob", dataset_pb2.DATASET_FORMAT_CSV, 36)
    assert datasets.content == rows.read_bytes()

    named = await proctor("datasets", "upload", str(rows), "--name", "mine", "--project", "7", "--json")
    assert named.document["dataset"]["name"] == "mine"
    assert datasets.headers[-1].project_id == 7
    listed = await proctor("datasets", "list", "--json")
    assert [each["name"] for each in listed.document["datasets"]] == ["mine", "rows.jsonl"]
    page = await proctor("datasets", "list", "--page-size", "1")
    assert "1 of 2. The next page: --page 1" in page.out
    assert ID in (await proctor("datasets")).out

    shown = await proctor("datasets", "show", ID, "--row", "1", "--rows", "1")
    assert "row 1 · request-1" in shown.out
    assert '"prompt": "One and one?"' in shown.out
    assert 'target: "two"\nmetadata: {"level": 1}\n' in shown.out
    reported = await proctor("datasets", "show", ID, "--json")
    assert [row["doc_id"] for row in reported.document["rows"]] == [0, 1]

    beyond = await proctor("datasets", "show", ID, "--row", "2")
    assert (beyond.code, beyond.err) == (4, "There is no row 2: rows are 0 to 1.\n")

    datasets.in_use = {ID}
    in_use = await proctor("datasets", "delete", ID)
    assert (in_use.code, in_use.err) == (2, "Run r1 uses this data set.\n")
    datasets.in_use = set()
    assert (await proctor("datasets", "delete", ID)).out == f"{ID} is deleted.\n"
    gone = await proctor("datasets", "show", ID)
    assert (gone.code, gone.err) == (4, f"There is no data set {ID}.\n")


async def test_faults_are_a_table_of_lines_and_fields(proctor: CommandLine, rows: Path) -> None:
    rows.write_text("fine\n" + "broken\n" * 30)
    refusal = await proctor("datasets", "upload", str(rows))
    assert (refusal.code, refusal.out) == (2, "")
    first, *table = refusal.err.splitlines()
    kept = "rows.jsonl is refused and nothing of it is stored: 30 faults, of which these are the first 20."
    assert first == kept
    row = next(line for line in table if "broken" in line)
    assert " ".join(row.split()) == "2 body broken is not a row"
    reported = await proctor("datasets", "upload", str(rows), "--json")
    assert (reported.code, reported.document["fault_count"], reported.document["dataset"]) == (2, 30, None)
    assert reported.document["faults"][0]["line"] == 2


def was_written(pipe: Path, content: bytes) -> bool:
    """False while it has no reader: a blocking open would wait for ever for a program that has ended."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return True


async def test_pipe_is_uploaded_as_it_comes(
    datasets: FakeDatasets, proctor: CommandLine, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = await proctor.start("datasets", "upload", str(pipe), "--name", "piped.jsonl")
    await eventually(lambda: was_written(pipe, b"one\ntwo\n"), "the pipe is read")
    assert (await ended(process)).code == 0
    assert (datasets.content, datasets.headers[0].name) == (b"one\ntwo\n", "piped.jsonl")


async def test_what_cannot_be_uploaded_is_said_in_a_sentence(
    datasets: FakeDatasets, proctor: CommandLine, rows: Path
) -> None:
    missing = await proctor("datasets", "upload", str(rows.parent / "none"))
    assert (missing.code, missing.err) == (
        2,
        f"{rows.parent / 'none'} cannot be read: No such file or directory.\n",
    )
    form = await proctor("datasets", "upload", str(rows), "--format", "xlsx")
    assert (form.code, form.err) == (2, "--format xlsx: it must be jsonl, csv, parquet or tsv.\n")
    datasets.refusal = refused(ErrorKind.UNAVAILABLE, "OBJECT_STORE_UNAVAILABLE", "No room.", dependency="s3")
    full = await proctor("datasets", "upload", str(rows))
    assert (full.code, full.err) == (3, "No room.\n")
    nobody = await proctor("datasets", "upload", str(rows), "--gateway", "127.0.0.1:1")
    assert (nobody.code, nobody.err[:39]) == (3, "No gateway answers at 127.0.0.1:1: star")
    assert (datasets.kept, datasets.open_uploads) == ({}, 0)
