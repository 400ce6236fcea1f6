"""A run as a file, in every form, through the real service and read back by who would read it."""

import csv
import hashlib
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pyarrow.parquet as pq
import pytest
import pytest_asyncio

from proctor.cli.results.cards.verify import check, read_card
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.sample import Prompt
from services.results.answers import postgres as postgres_exports
from services.results.export import export_chosen
from services.results.runs.run_plan import RunFacts, RunPlan, TaskProvenance
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoringTarget
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import (
    TEXT_SCORING,
    answered,
    batch,
    choice_sample,
    failed,
    new_id,
    plan_of,
    said,
)
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

FACTS = RunFacts("parity", 0, "vllm/tiny model", 1, "ann")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plan(harness: ResultsHarness) -> RunPlan:
    """Five samples of two choices (one answered wrongly, one failed) and two of free text."""
    weighed = [replace(choice_sample(at), doc_json=json.dumps({"n": at, "é": 'q"'})) for at in range(5)]
    asked = [text_sample(at) for at in range(2)]
    ordered = plan_of([5, 2], [await harness.store(weighed), await harness.store(asked)])
    greedy = TaskProvenance(stop=("\n",), max_tokens=64, temperature=0.0)
    tasks = (ordered.tasks[0], replace(ordered.tasks[1], scoring=TEXT_SCORING, provenance=greedy))
    ordered = await harness.open(replace(ordered, tasks=tasks, facts=FACTS))
    outcomes = [answered(0), answered(1), answered(2, 1), answered(4), failed(3)]
    outcomes += [said(5, 'It is "6",\nI think'), said(6, "7")]
    await harness.send(batch(ordered.run_id, outcomes))

    async def all_recorded() -> bool:
        return await harness.recorded(ordered.run_id) == 7

    await eventually(all_recorded, "everything is recorded")
    await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(run_id=ordered.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED)
    )
    return ordered


def text_sample(at: int) -> StoredSample:
    digest = hashlib.sha256(f"text {at}".encode()).digest()
    return StoredSample(
        at, at, digest, Prompt(f"What is {at} + 6?"), ScoringTarget(texts=(str(at + 6),)), "", "{}"
    )


async def exported(
    harness: ResultsHarness, plan: RunPlan, form: str, task: str = "", **chosen: Any
) -> tuple[str, bytes]:
    request = export_pb2.ExportRunRequest(
        run_id=plan.run_id, format=export_pb2.ExportFormat.Value(f"EXPORT_FORMAT_{form}"), task=task, **chosen
    )
    pieces = [piece async for piece in harness.exports.ExportRun(request)]
    return pieces[0].file_name, b"".join(piece.content for piece in pieces)


async def test_jsonl_has_a_line_per_outcome_in_the_order_of_the_samples(
    harness: ResultsHarness, plan: RunPlan
) -> None:
    name, file = await exported(harness, plan, "JSONL")
    lines = [json.loads(line) for line in file.splitlines()]
    assert name == f"parity_vllm-tiny-model_{plan.run_id[:8]}.jsonl"
    assert [(line["task"], line["doc_id"]) for line in lines] == [
        ("t0", 0), ("t0", 1), ("t0", 2), ("t0", 3), ("t0", 4), ("t1", 0), ("t1", 1),
    ]  # fmt: skip
    assert (lines[1]["scores"]["acc"], lines[1]["target"], lines[1]["prediction"]) == (0.0, "odd", "even")
    assert (lines[3]["status"], lines[3]["failure_class"], lines[3]["scores"]) == ("failed", "timeout", {})
    assert lines[5]["answer"] == 'It is "6",\nI think'
    assert lines[6]["scores"] == {"exact_match": 1.0}


async def test_a_card_holds_with_the_export_of_its_run(
    harness: ResultsHarness, plan: RunPlan, tmp_path: Path
) -> None:
    card, lines = tmp_path / "card.json", tmp_path / "lines.jsonl"
    name, content = await exported(harness, plan, "CARD")
    card.write_bytes(content)
    lines.write_bytes((await exported(harness, plan, "JSONL"))[1])
    assert name == f"parity_vllm-tiny-model_{plan.run_id[:8]}_card.json"
    read = read_card(card)
    found = check(read, lines, read["key"])
    assert found.faults == []
    assert (read["samples"]["count"], read["outcomes"]["count"]) == (7, 7)
    assert read["conditions"]["tasks"]["t0"]["samples"] == 5
    # The key is the installation's, whichever run it is.
    assert json.loads((await exported(harness, plan, "CARD"))[1])["key"] == read["key"]
    with pytest.raises(grpc.aio.AioRpcError, match="task must be empty"):
        await exported(harness, plan, "CARD", "t1")


async def test_a_run_that_still_takes_outcomes_has_no_card(harness: ResultsHarness) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="still takes outcomes"):
        await exported(harness, await harness.open_run_of(3), "CARD")


async def test_one_task_alone_can_be_exported(harness: ResultsHarness, plan: RunPlan) -> None:
    name, file = await exported(harness, plan, "JSONL", "t1")
    assert name == f"parity_t1_vllm-tiny-model_{plan.run_id[:8]}.jsonl"
    assert [json.loads(line)["task"] for line in file.splitlines()] == ["t1", "t1"]


async def test_csv_keeps_quotes_and_line_ends_and_has_a_column_per_metric(
    harness: ResultsHarness, plan: RunPlan
) -> None:
    _, file = await exported(harness, plan, "CSV")
    rows = list(csv.DictReader(io.StringIO(file.decode(), newline="")))
    assert [row["score_acc"] for row in rows] == ["1.0", "0.0", "0.0", "", "1.0", "", ""]
    assert rows[5]["answer"] == 'It is "6",\nI think'
    assert json.loads(rows[0]["choices"]) == [" even", " odd"]
    assert rows[6]["score_exact_match"] == "1.0"


async def test_parquet_has_typed_columns(harness: ResultsHarness, plan: RunPlan) -> None:
    _, file = await exported(harness, plan, "PARQUET")
    table = pq.read_table(io.BytesIO(file))
    assert table.column("score_acc").to_pylist() == [1.0, 0.0, 0.0, None, 1.0, None, None]
    assert table.column("choices").to_pylist()[0] == [" even", " odd"]
    assert json.loads(table.column("scores")[1].as_py())["mcc"] == [1, 0]


async def test_chosen_outcomes_come_in_the_order_of_their_list_in_every_table(
    harness: ResultsHarness, plan: RunPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_chosen, "_PER_PAGE", 2)

    async def places(form: str, **chosen: Any) -> list[tuple[str, int]]:
        name, file = await exported(harness, plan, form, **chosen)
        assert name.startswith("chosen_parity_")
        if form == "PARQUET":
            rows = pq.read_table(io.BytesIO(file)).to_pylist()
        elif form == "JSONL":
            rows = [json.loads(line) for line in file.splitlines()]
        else:
            rows = list(csv.DictReader(io.StringIO(file.decode())))
        return [(row["task"], int(row["doc_id"])) for row in rows]

    six = results_pb2.OutcomeFilter(text="6")
    wrong = results_pb2.OutcomeFilter(metric="acc", max_score=0.0)
    for form in ("CSV", "JSONL", "PARQUET"):
        assert await places(form, filter=six) == [("t1", 0), ("t1", 1)]
        assert await places(form, filter=wrong) == [("t0", 1), ("t0", 2)]
        assert await places(form, status=outcome_pb2.OUTCOME_STATUS_FAILED) == [("t0", 3)]
        # More than a page.
        order = {"sort": results_pb2.OUTCOME_SORT_SAMPLE, "is_descending": True}
        assert await places(form, task="t0", **order) == [("t0", number) for number in (4, 3, 2, 1, 0)]
        assert await places(form, filter=results_pb2.OutcomeFilter(text="no such text")) == []
    whole = pq.read_schema(io.BytesIO((await exported(harness, plan, "PARQUET"))[1]))
    assert pq.read_schema(io.BytesIO((await exported(harness, plan, "PARQUET", filter=six))[1])) == whole


@pytest.mark.parametrize(
    ("form", "chosen", "sentence"),
    [
        ("JSON", {"filter": results_pb2.OutcomeFilter(text="6")}, "only CSV, JSONL and Parquet"),
        (
            "LM_EVAL",
            {"task": "t0", "status": outcome_pb2.OUTCOME_STATUS_SCORED},
            "only CSV, JSONL and Parquet",
        ),
        ("CARD", {"sort": results_pb2.OUTCOME_SORT_TIME}, "only CSV, JSONL and Parquet"),
        ("CSV", {"filter": results_pb2.OutcomeFilter(text="6"), "first_byte": 5}, "cannot be resumed"),
        (
            "CSV",
            {"filter": results_pb2.OutcomeFilter(min_score=1, max_score=0)},
            "must not be above max_score",
        ),
        (
            "CSV",
            {"filter": results_pb2.OutcomeFilter(text="6"), "task": "t7"},
            "task must be one of the run's",
        ),
    ],
)
async def test_a_file_of_chosen_outcomes_is_refused_before_its_first_piece(
    harness: ResultsHarness, plan: RunPlan, form: str, chosen: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=sentence):
        await exported(harness, plan, form, **chosen)


async def test_json_is_one_document_with_facts_figures_and_outcomes(
    harness: ResultsHarness, plan: RunPlan
) -> None:
    _, file = await exported(harness, plan, "JSON")
    document = json.loads(file)
    assert (document["run"]["benchmark"], document["run"]["state"]) == ("parity", "completed")
    assert document["run"]["environment"] == {"engine": "fake"}
    assert document["summary"]["tasks"][0]["figures"]["acc"]["mean"] == 0.5
    assert len(document["outcomes"]) == 7


async def test_the_report_needs_nothing_beside_it_and_escapes_what_it_shows(
    harness: ResultsHarness, plan: RunPlan
) -> None:
    _, file = await exported(harness, plan, "HTML")
    page = file.decode()
    assert "0.5000" in page
    assert "src=" not in page
    assert "http" not in page.replace("http-equiv", "")
    drawing = page[page.index("<svg") : page.index("</svg>") + 6]
    assert len(ET.fromstring(drawing).findall("circle")) == 2

    hostile = replace(FACTS, model="<script>alert(1)</script>")
    sample_set_id = await harness.store([choice_sample(0), choice_sample(1)])
    empty = await harness.open(replace(plan_of([2], [sample_set_id]), facts=hostile))
    _, file = await exported(harness, empty, "HTML")
    assert b"<script>" not in file
    assert b"partial" in file


async def test_lm_eval_samples_have_its_fields_and_hashes(harness: ResultsHarness, plan: RunPlan) -> None:
    _, file = await exported(harness, plan, "LM_EVAL", "t0")
    lines = [json.loads(line) for line in file.splitlines()]
    assert [line["doc_id"] for line in lines] == [0, 1, 2, 4]
    first = lines[1]
    doc = {"n": 1, "é": 'q"'}
    assert (first["doc"], first["target"], first["acc"], first["metrics"]) == (doc, "1", 0.0, ["acc", "mcc"])
    assert first["arguments"]["gen_args_1"] == {"arg_0": "1 is", "arg_1": " odd"}
    assert first["resps"] == [[["-0.5", "True"]], [["-2.0", "False"]]]
    assert first["filtered_resps"] == [["-0.5", "True"], ["-2.0", "False"]]
    written = json.dumps(doc, indent=2, ensure_ascii=False).encode()
    assert first["doc_hash"] == hashlib.sha256(written).hexdigest()
    assert first["prompt_hash"] == hashlib.sha256(b"1 is").hexdigest()
    assert first["target_hash"] == hashlib.sha256(b"1").hexdigest()


async def test_lm_eval_samples_say_how_was_generated(harness: ResultsHarness, plan: RunPlan) -> None:
    _, file = await exported(harness, plan, "LM_EVAL", "t1")
    asked = {"until": ["\n"], "max_gen_toks": 64, "do_sample": False, "temperature": 0.0}
    assert [json.loads(line)["arguments"] for line in file.splitlines()] == [
        {"gen_args_0": {"arg_0": f"What is {at} + 6?", "arg_1": asked}} for at in range(2)
    ]


async def test_what_cannot_be_exported_is_reported_before_the_first_piece(
    harness: ResultsHarness, plan: RunPlan
) -> None:
    for request, code in (
        (export_pb2.ExportRunRequest(run_id=plan.run_id), grpc.StatusCode.INVALID_ARGUMENT),
        (
            export_pb2.ExportRunRequest(run_id=new_id(), format=export_pb2.EXPORT_FORMAT_CSV),
            grpc.StatusCode.NOT_FOUND,
        ),
        (
            export_pb2.ExportRunRequest(run_id=plan.run_id, format=export_pb2.EXPORT_FORMAT_CSV, task="t9"),
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
        (
            export_pb2.ExportRunRequest(run_id=plan.run_id, format=export_pb2.EXPORT_FORMAT_LM_EVAL),
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            [piece async for piece in harness.exports.ExportRun(request)]
        assert refused.value.code() == code


async def test_a_run_larger_than_a_chunk_comes_out_whole_and_in_order(harness: ResultsHarness) -> None:
    count = postgres_exports.FIRST_ROWS + postgres_exports.MAX_ROWS + 7
    long = await harness.open_run_of(count)
    for start in range(0, count, 400):
        await harness.send(batch(long.run_id, [answered(at) for at in range(start, min(start + 400, count))]))

    async def all_recorded() -> bool:
        return await harness.recorded(long.run_id) == count

    await eventually(all_recorded, "everything is recorded")
    _, file = await exported(harness, long, "JSONL")
    assert [json.loads(line)["doc_id"] for line in file.splitlines()] == list(range(count))


async def test_an_answer_that_could_not_be_scored_is_exported_beside_its_failure(
    harness: ResultsHarness,
) -> None:
    ordered = await harness.open(plan_of([1], [await harness.store([choice_sample(0, "unscored")])]))
    await harness.send(batch(ordered.run_id, [said(0, "without weights")]))

    async def is_recorded() -> bool:
        return await harness.recorded(ordered.run_id) == 1

    await eventually(is_recorded, "the failure is recorded")
    _, file = await exported(harness, ordered, "JSONL")
    line = json.loads(file)
    assert (line["status"], line["failure_class"], line["answer"]) == ("failed", "scoring", "without weights")
    assert line["finish_reason"] == "stop"

    page = await harness.public.ListOutcomes(results_pb2.ListOutcomesRequest(run_id=ordered.run_id))
    [listed] = page.outcomes
    assert listed.outcome.failure.answer.text == "without weights"
