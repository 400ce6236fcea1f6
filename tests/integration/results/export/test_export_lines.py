"""Lines of an export for rows that are hard to write down, and the files made of them."""

import csv
import io
import json
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import orjson
import pyarrow.parquet as pq
import pytest
import pytest_asyncio

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import run_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.outcome import Answer, Failure, FailureClass, Outcome
from proctor.values.sample import ChatMessage, Prompt
from proctor.values.scoring import OutputType, TaskScoring
from proctor.values.usage import Timing, TokenUsage
from services.common.postgres import PostgresSession, connect_pool
from services.results.export import postgres as postgres_rows
from services.results.export.exported_run import RowKind, RowQuery, RunChanged
from services.results.export.postgres import PostgresExportRows
from services.results.outcomes.outcome import BEFORE_ALL
from services.results.postgres import QUERIES, SCHEMA
from services.results.runs.postgres import PostgresRunRecords
from services.results.runs.run_plan import RunFacts, RunPlan
from services.results.samples.row_request import row_request
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoringTarget
from tests.fakes.eventually import eventually
from tests.fakes.results.exported_texts import NASTY_TEXTS
from tests.fakes.results.recorded_run import (
    CHOICE_SCORING,
    answered,
    batch,
    choice_sample,
    logprob_answer,
    new_id,
    plan_of,
)
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNSCORED = TaskScoring(OutputType.GENERATE_UNTIL, (), target_delimiter="")
FACTS = RunFacts("ds_1", model="p/m", dataset_name="my rows.jsonl")
Records = list[dict[str, object]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(harness: ResultsHarness) -> AsyncIterator[PostgresSession]:
    async with await connect_pool(harness.postgres.address, schema=SCHEMA) as pool:
        yield PostgresSession(pool, QUERIES)


def asked(at: int, prompt: Prompt, target: ScoringTarget | None = None, row_id: str = "") -> StoredSample:
    return StoredSample(at, at, at.to_bytes(32, "big"), prompt, target or ScoringTarget(), "", "", row_id)


def outcome(at: int, result: Answer | Failure, timing: Timing | None = None) -> Outcome:
    return Outcome(at, 0, at, 1, result, TokenUsage(7, 5, 3, 2), timing or Timing())


async def ran(
    harness: ResultsHarness,
    samples: Sequence[StoredSample],
    outcomes: Sequence[Outcome],
    scoring: TaskScoring = UNSCORED,
) -> RunPlan:
    ordered = plan_of([len(samples)], [await harness.store(samples)])
    tasks = (replace(ordered.tasks[0], task='ro"ws', scoring=scoring),)
    plan = await harness.open(replace(ordered, tasks=tasks, facts=FACTS))
    for start in range(0, len(outcomes), 100):
        await harness.send(batch(plan.run_id, outcomes[start : start + 100]))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == len(outcomes)

    await eventually(all_recorded, "everything is recorded")
    return plan


async def file_of(harness: ResultsHarness, plan: RunPlan, word: str) -> bytes:
    form = export_pb2.ExportFormat.Value(f"EXPORT_FORMAT_{word}")
    request = export_pb2.ExportRunRequest(run_id=plan.run_id, format=form)
    return b"".join([piece.content async for piece in harness.exports.ExportRun(request)])


async def records_of(harness: ResultsHarness, plan: RunPlan) -> Records:
    file = await file_of(harness, plan, "JSONL")
    assert not file or file.endswith(b"\n")
    # Two readers. A whole number too large for a long is written with all its digits.
    lines = file.split(b"\n")[:-1]
    records = [orjson.loads(line) for line in lines]
    assert records == [json.loads(line, parse_int=float) for line in lines]
    return records


async def test_every_field_of_a_row_is_there_in_order(harness: ResultsHarness) -> None:
    turns = (ChatMessage("system", "Be brief."), ChatMessage("user", 'a "b"', '{"name": "ann"}'))
    sample = asked(0, Prompt(None, turns), ScoringTarget(texts=("yes", "aye")), "row-7")
    body = {"choices": [{"message": {"tool_calls": [1]}}]}
    said = Answer("Yes!\n", "stop", (), json.dumps(body, indent=1), reasoning="No?\n")
    plan = await ran(harness, [sample], [outcome(0, said, Timing(0.25, 1.0, 1e-9, 0.1 + 0.2))])
    [record] = await records_of(harness, plan)
    assert list(record.items()) == [
        ("task", 'ro"ws'),
        ("doc_id", 0),
        ("row_id", "row-7"),
        ("rollout", 0),
        ("status", "scored"),
        ("prompt", 'system: Be brief.\n\nuser: a "b"'),
        (
            "request",
            {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": 'a "b"', "name": "ann"},
                ]
            },
        ),
        ("choices", []),
        ("target", "yes | aye"),
        ("prediction", ""),
        ("answer", "Yes!\n"),
        ("reasoning", "No?\n"),
        ("finish_reason", "stop"),
        ("choice_logprobs", []),
        ("body", body),
        ("failure_class", ""),
        ("failure_message", ""),
        ("scores", {}),
        ("prompt_tokens", 7),
        ("completion_tokens", 5),
        ("cached_tokens", 3),
        ("reasoning_tokens", 2),
        ("total_seconds", 0.25),
        ("queue_seconds", 1.0),
        ("first_token_seconds", 1e-9),
        ("between_tokens_seconds", 0.30000000000000004),
        ("is_reused", False),
        ("digest", "00" * 32),
    ]
    assert isinstance(record["queue_seconds"], float)


async def test_turns_of_a_chat_are_written_one_after_another_however_many(harness: ResultsHarness) -> None:
    chats = [tuple(ChatMessage(f"role{turn}", f"said {turn}") for turn in range(count)) for count in range(5)]
    samples = [asked(at, Prompt(None, turns)) for at, turns in enumerate(chats)]
    answers = [outcome(at, Answer("Yes", "stop")) for at in range(len(chats))]
    plan = await ran(harness, samples, answers)
    expected = ["\n\n".join(f"{turn.role}: {turn.content}" for turn in turns) for turns in chats]
    assert [record["prompt"] for record in await records_of(harness, plan)] == expected


async def test_requests_are_those_that_lists_show(harness: ResultsHarness) -> None:
    """Both make them: Postgres for files, Python for lists."""
    parts = '{"content": [{"type": "text", "text": "a\\u0000 b"}]}'
    chats = [(ChatMessage("user", text), ChatMessage("user", text, parts)) for text in NASTY_TEXTS]
    params = ("", '{"n":2,"stop":["\\n"]}', "{}")
    prompts = [*(Prompt(None, chat) for chat in chats), *(Prompt("?") for _ in params)]
    own = [*(params[at % 3] for at in range(len(chats))), *params]
    samples = [replace(asked(at, prompt), params_json=own[at]) for at, prompt in enumerate(prompts)]
    plan = await ran(harness, samples, [outcome(at, Answer("x")) for at in range(len(samples))])
    shown = [json.loads(row_request(sample) or "null") for sample in samples]
    assert [record["request"] for record in await records_of(harness, plan)] == shown
    assert shown[-3:] == [None, {"prompt": "?", "n": 2, "stop": ["\n"]}, {"prompt": "?"}]


async def test_texts_come_back_as_they_were_in_every_form(harness: ResultsHarness) -> None:
    samples, outcomes = [], []
    for at, text in enumerate(NASTY_TEXTS):
        samples.append(asked(at, Prompt(f"{text}?"), ScoringTarget(texts=(text,)), text))
        outcomes.append(outcome(at, Answer(text, "stop")))
    for at, text in enumerate(NASTY_TEXTS, len(NASTY_TEXTS)):
        samples.append(asked(at, Prompt(None, (ChatMessage("user", text), ChatMessage("user", text)))))
        outcomes.append(outcome(at, Failure(FailureClass.REFUSED, text)))
    plan = await ran(harness, samples, outcomes)
    records = await records_of(harness, plan)
    texts, half = list(NASTY_TEXTS), len(NASTY_TEXTS)
    for field in ("row_id", "target", "answer"):
        assert [record[field] for record in records[:half]] == texts, field
    assert [record["prompt"] for record in records[:half]] == [f"{text}?" for text in texts]
    assert [record["prompt"] for record in records[half:]] == [f"user: {it}\n\nuser: {it}" for it in texts]
    reported = [text or "The worker gave no reason." for text in texts]
    assert [record["failure_message"] for record in records[half:]] == reported
    assert {record["failure_class"] for record in records[half:]} == {"refused"}

    table = io.StringIO((await file_of(harness, plan, "CSV")).decode(), newline="")
    csv.field_size_limit(2**31)
    for row, record in zip(csv.DictReader(table), records, strict=True):
        assert row == {name: cell(value) for name, value in record.items() if name != "scores"}
    parquet = pq.read_table(io.BytesIO(await file_of(harness, plan, "PARQUET"))).to_pylist()
    for row, record in zip(parquet, records, strict=True):
        request = json.loads(row.pop("request") or "null")
        assert {**row, "request": request} == {**record, "scores": "{}", "body": None}
    document = json.loads(await file_of(harness, plan, "JSON"))
    assert document["outcomes"] == records
    assert document["run"]["dataset_name"] == FACTS.dataset_name


def cell(value: object) -> str:
    """As the CSV module writes it."""
    if value is None:
        return ""
    return orjson.dumps(value).decode() if isinstance(value, list | dict) else str(value)


async def test_numbers_are_read_back_as_the_same_and_what_is_none_is_null(harness: ResultsHarness) -> None:
    numbers = [0.0, -0.0, 1.0, 1e-9, 5e-324, 1e15, 123456789012345.0, 1e22, 1.7976931348623157e308, 2 / 3]
    undefined = [math.nan, math.inf, -math.inf]
    count = len(numbers) + len(undefined)
    samples = [asked(at, Prompt("?")) for at in range(count)]
    plan = await ran(harness, samples, [outcome(at, Answer("x")) for at in range(count)])
    async with harness.database() as database:
        await database.executemany(
            "UPDATE outcomes SET total_seconds = $3 WHERE run_id = $1 AND sample = $2",
            [(plan.run_id, at, number) for at, number in enumerate(numbers + undefined)],
        )
        await database.executemany(
            "UPDATE outcomes SET scores = $3 WHERE run_id = $1 AND sample = $2",
            [(plan.run_id, at, json.dumps({"acc": number})) for at, number in enumerate(numbers)],
        )
    records = await records_of(harness, plan)
    seconds = [record["total_seconds"] for record in records]
    assert [repr(number) for number in seconds] == [repr(number) for number in numbers] + ["None"] * 3
    scored = [record["scores"] for record in records[: len(numbers)]]
    assert scored == [{"acc": number} for number in numbers]


async def test_choices_targets_and_weights_are_as_scorers_read_them(harness: ResultsHarness) -> None:
    choices = (" a", "b", " c")
    targets = [
        ScoringTarget(choices, choice=2),
        ScoringTarget(choices, choice=1),
        ScoringTarget(choices, right_choices=(0, 2, 9)),
    ]
    samples = [asked(at, Prompt("?"), target) for at, target in enumerate(targets)]
    weighed = logprob_answer(
        (-0.5, -math.inf, -2.0), (True, False, False), finish_reason="stop", token_count=1
    )
    # Choices cannot be scored without their weights.
    unscored = Answer("said", "length")
    outcomes = [outcome(0, weighed), outcome(1, weighed), outcome(2, unscored)]
    plan = await ran(harness, samples, outcomes, CHOICE_SCORING)
    records = await records_of(harness, plan)
    assert [record["target"] for record in records] == ["c", "b", "a | c"]
    assert records[0]["choices"] == [" a", "b", " c"]
    assert records[0]["choice_logprobs"] == [-0.5, None, -2.0]
    assert records[0]["scores"] == {"acc": 0.0, "mcc": [2, 0]}
    assert (records[2]["failure_class"], records[2]["answer"]) == ("scoring", "said")
    assert records[2]["finish_reason"] == "length"


async def test_an_answer_that_was_taken_from_another_run_took_no_time(harness: ResultsHarness) -> None:
    plan = await ran(harness, [asked(0, Prompt("?"))], [outcome(0, Answer("x"))])
    async with harness.database() as database:
        await database.execute("UPDATE outcomes SET is_reused = true WHERE run_id = $1", plan.run_id)
    [record] = await records_of(harness, plan)
    assert (record["is_reused"], record["total_seconds"]) == (True, None)


async def rows_wanted(session: PostgresSession, plan: RunPlan) -> RowQuery:
    record = await PostgresRunRecords(session).find(plan.run_id)
    assert record is not None
    return RowQuery(RowKind.LINE, record, 0)


async def test_long_texts_come_a_few_at_a_time_and_none_is_lost(
    harness: ResultsHarness, session: PostgresSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_rows, "CHUNK_BYTES", 20_000)
    monkeypatch.setattr(postgres_rows, "MAX_CHUNK_BYTES", 50_000)
    # Short ones first, so that the windows have grown when the long ones come.
    long = range(400, 430)
    samples = [asked(at, Prompt(f"{at}" * (5000 if at in long else 1))) for at in range(500)]
    plan = await ran(harness, samples, [outcome(at, Answer("x")) for at in range(500)])
    chunks = [
        chunk
        async for chunk in PostgresExportRows(session).chunks(await rows_wanted(session, plan), BEFORE_ALL)
    ]
    lines = [[row["line"] for row in chunk.rows] for chunk in chunks]
    assert [orjson.loads(line)["doc_id"] for some in lines for line in some] == list(range(500))
    # One row may come over the bound, and lines have fields beside the texts that are weighed.
    assert max(sum(map(len, some)) for some in lines) < 2 * 50_000
    assert all(orjson.loads(chunk.rows[-1]["line"])["doc_id"] == chunk.last[0] for chunk in chunks)


async def test_a_run_that_is_opened_again_breaks_its_export_off(
    harness: ResultsHarness, session: PostgresSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_rows, "CHUNK_BYTES", 10_000)
    ordered = plan_of([300], [await harness.store([choice_sample(at) for at in range(300)])], run_id=new_id())
    plan = await harness.open(ordered)
    await harness.send(batch(plan.run_id, [answered(at) for at in range(300)]))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == 300

    await eventually(all_recorded, "everything is recorded")
    await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED)
    )
    chunks = PostgresExportRows(session).chunks(await rows_wanted(session, plan), BEFORE_ALL)
    await anext(chunks)
    await harness.open(plan, epoch=2)
    with pytest.raises(RunChanged):
        async for _ in chunks:
            pass


async def test_reasoning_has_a_column_of_its_own_in_every_file(harness: ResultsHarness) -> None:
    prompt = Prompt('Is "<think>" one?\n{"answer":"no","reasoning":"no"}')
    marked = '<think>\nOslo? "No"\n\\</think>\n\nBergen "é"'
    answers = [
        Answer(marked, "stop"),
        Answer(marked, "stop", reasoning="Hm."),
        Answer("Bergen", "stop", reasoning="Oslo?"),
        Answer("<think>Oslo?", "length"),
        Answer("The answer is `</think>`.", "stop"),
        Answer(
            marked,
            "stop",
            body_json='{"choices": [{"answer":"<think>x</think>y"}], "big": 123456789012345678901}',
        ),
    ]
    plan = await ran(
        harness,
        [asked(at, prompt) for at in range(6)],
        [outcome(at, said) for at, said in enumerate(answers)],
    )
    apart = [
        ('Bergen "é"', 'Oslo? "No"\n\\'),
        ('Bergen "é"', 'Hm.\n\nOslo? "No"\n\\'),
        ("Bergen", "Oslo?"),
        ("", "Oslo?"),
        ("The answer is `</think>`.", ""),
        ('Bergen "é"', 'Oslo? "No"\n\\'),
    ]
    records = await records_of(harness, plan)
    assert [(record["answer"], record["reasoning"]) for record in records] == apart
    assert [record["finish_reason"] for record in records][2:4] == ["stop", "length"]
    # The provider's own body stays as it is, with whatever numbers.
    assert b'"answer":"<think>x</think>y"}], "big": 123456789012345678901}' in await file_of(
        harness, plan, "JSONL"
    )
    assert json.loads(await file_of(harness, plan, "JSON"))["outcomes"] == json.loads(
        f"[{(await file_of(harness, plan, 'JSONL')).decode().strip().replace(chr(10), ',')}]"
    )
    table = list(csv.DictReader(io.StringIO((await file_of(harness, plan, "CSV")).decode(), newline="")))
    assert [(row["answer"], row["reasoning"]) for row in table] == apart
    parquet = pq.read_table(io.BytesIO(await file_of(harness, plan, "PARQUET"))).to_pylist()
    assert [(row["answer"], row["reasoning"]) for row in parquet] == apart
