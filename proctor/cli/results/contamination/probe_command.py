"""`proctor contamination probe`: a model paraphrases rows, and a suite asks others which words come next."""

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.gateway import Session
from proctor.cli.options import PROJECT_METAVAR, PROJECT_VARIABLE, read_project
from proctor.cli.program import program_name
from proctor.cli.render.terminal import say
from proctor.cli.render.words import counted, state_word
from proctor.cli.results.contamination.probe import (
    MIN_WORDS,
    HalvedRow,
    halved,
    paraphrase,
    prepare_folder,
    probe_lines,
    write_probe,
)
from proctor.cli.results.contamination.rows import read_rows
from proctor.client.datasets import Upload
from proctor.client.errors import Refused
from proctor.client.pages import all_pages
from proctor.exit_codes import ExitCode
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2

_MAX_TOKENS = 2048
# Of a file too.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """Which rows, and who rewrites them."""

    rows: Annotated[
        Path,
        typer.Argument(metavar="ROWS", help="Rows as lines of JSON, or the JSONL of `proctor export`."),
    ]
    paraphraser: Annotated[
        str, typer.Option(metavar="MODEL", help="Who rewrites second halves; not the model that is probed.")
    ]
    folder: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the suite is written.")
    ]
    name: Annotated[str, typer.Option(help="Name of the suite.")] = "probe"
    field: Annotated[
        list[str] | None,
        typer.Option(help="Only this field of a row; repeat for several. Default: all its texts."),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="First N rows.")] = None
    max_cost: Annotated[
        float | None, typer.Option(help="The run of the paraphraser fails when its tokens cost this much.")
    ] = None
    project: Annotated[
        int, typer.Option(envvar=PROJECT_VARIABLE, parser=read_project, metavar=PROJECT_METAVAR)
    ] = 0


async def probe(session: Session, options: ProbeOptions) -> ExitCode:
    """Write a suite that asks models which words follow: a row's own ones, or those of a paraphrase."""
    if not _NAME.fullmatch(options.name):
        raise Refused(f"{options.name} names no suite and no file: take letters, digits, _ and -.")
    # Before the paraphraser is paid for.
    prepare_folder(options.folder, options.name)
    rows = halved(read_rows(options.rows, options.field or ())[: options.limit])
    if not rows:
        raise Refused(f"{options.rows} has no row of {MIN_WORDS} words or more.")
    run = await _paraphrased(session, rows, options)
    lines = [*probe_lines(rows, await _answers(session, run.run_id))]
    if not lines:
        raise Refused(f"Run {run.run_id} has made no paraphrase; it is {state_word(run.state)}.")
    suite = write_probe(options.folder, options.name, lines)
    left_out = len(rows) - len(lines)
    session.terminal.report(
        {"run_id": run.run_id, "suite": str(suite), "rows": len(lines), "left_out": left_out},
        f"{suite} asks {counted(len(lines), 'row')}; {left_out} were not rewritten by run {run.run_id}.",
    )
    if not session.terminal.is_json:
        for line in (f"suites add {suite}", f"run --suite {options.name} --model PROVIDER/NAME"):
            session.terminal.out.print(f"  {program_name()} {line}", style="dim", soft_wrap=True)
        say(session.terminal.out, "Without a preference for the rows' own words acc_norm is 0.5.")
    return ExitCode.OK


async def _paraphrased(session: Session, rows: Sequence[HalvedRow], options: ProbeOptions) -> run_pb2.Run:
    client = session.client
    file = "".join(f"{json.dumps(row.request, ensure_ascii=False)}\n" for row in rows)
    upload = Upload(io.BytesIO(file.encode()), f"{options.name}.jsonl", project_id=options.project)
    uploaded = await client.upload_dataset_once(upload)
    if uploaded.faults:
        raise Refused(f"The rows are no data set: {uploaded.faults[0].problem}")
    order = run_pb2.RunOrder(
        dataset_id=uploaded.dataset.dataset_id,
        model=options.paraphraser,
        project_id=options.project,
        max_cost=options.max_cost,
        params=run_pb2.GenerationParams(temperature=0, max_tokens=_MAX_TOKENS),
    )
    run = (await client.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=order))).run
    rewrites = f"Run {run.run_id} of {options.paraphraser} rewrites {counted(len(rows), 'row')}."
    say(session.terminal.progress, rewrites)
    async for seen in client.watch_run(run.run_id):
        run = seen
    return run


async def _answers(session: Session, run_id: str) -> Mapping[str, str]:
    """By the names of rows, without reasoning; failures and answers that were cut off have none."""
    request = results_pb2.ListOutcomesRequest(run_id=run_id)
    pages = all_pages(session.client.outcomes.ListOutcomes, request)
    answers = [(each.row_id, each.outcome.answer) async for page in pages for each in page.outcomes]
    return {name: paraphrase(answer.text, answer.finish_reason) for name, answer in answers}
