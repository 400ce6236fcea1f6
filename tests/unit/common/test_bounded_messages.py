"""Messages of others are refused by the number of their items before anything converts them."""

import gc
import resource
from typing import Any

import pytest
from google.protobuf import struct_pb2
from google.protobuf.message import DecodeError

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import comparison_service_pb2, outcome_pb2, sample_pb2, work_messages_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from services.common.bounded_messages import (
    MAX_BYTES_UNCOUNTED,
    MAX_ITEMS,
    MAX_ITEMS_IN_ALL,
    TooManyItems,
    TooManyParts,
    check_parts,
    read_message,
)


def empty_items(field: int, count: int) -> bytes:
    return bytes([field << 3 | 2, 0]) * count


@pytest.mark.parametrize(
    ("kind", "field", "name", "limit"),
    [
        (comparison_service_pb2.CompareRunsRequest, 1, "run_ids", MAX_ITEMS),
        (work_messages_pb2.OutcomeBatch, 4, "outcomes", 250),
        (work_messages_pb2.OutcomeBatch, 6, "dispatch_proofs", 250),
        (work_messages_pb2.WorkerStatus, 14, "ready_models", 2000),
    ],
)
def test_a_list_may_have_as_many_items_as_its_contract_says(
    kind: type, field: int, name: str, limit: int
) -> None:
    assert len(getattr(read_message(kind, empty_items(field, limit)), name)) == limit
    with pytest.raises(TooManyItems) as refused:
        read_message(kind, empty_items(field, limit + 1))
    assert (refused.value.field, refused.value.limit) == (name, limit)


def test_lists_of_parts_and_maps_are_counted() -> None:
    order = scheduler_pb2.SubmitRunRequest()
    order.order.tasks.extend(["x"] * (MAX_ITEMS + 1))
    with pytest.raises(TooManyItems) as refused:
        read_message(scheduler_pb2.SubmitRunRequest, order.SerializeToString())
    assert refused.value.field == "order.tasks"
    batch = work_messages_pb2.OutcomeBatch(environment={str(i): "" for i in range(MAX_ITEMS + 1)})
    with pytest.raises(TooManyItems):
        read_message(work_messages_pb2.OutcomeBatch, batch.SerializeToString())


def test_lists_in_lists_are_counted_alone_and_together() -> None:
    def of_choices(samples: int, choices: int) -> bytes:
        sample = sample_pb2.Sample(target=sample_pb2.Target(texts=[""] * choices))
        return run_record_pb2.PutSamplesRequest(samples=[sample] * samples).SerializeToString()

    kept = read_message(run_record_pb2.PutSamplesRequest, of_choices(2, 10_000))
    assert len(kept.samples) == 2
    with pytest.raises(TooManyItems) as alone:
        read_message(run_record_pb2.PutSamplesRequest, of_choices(4, 10_001))
    assert (alone.value.field, alone.value.limit) == ("samples.target.texts", 10_000)
    with pytest.raises(TooManyParts) as together:
        read_message(run_record_pb2.PutSamplesRequest, of_choices(26, 10_000))
    assert together.value.limit == MAX_ITEMS_IN_ALL


def test_items_of_the_largest_message_of_nats_are_counted_before_it_is_parsed() -> None:
    with pytest.raises(TooManyParts):
        read_message(work_messages_pb2.OutcomeBatch, empty_items(4, 4_000_000))


@pytest.mark.parametrize("beside", [100_000, MAX_BYTES_UNCOUNTED], ids=["uncounted", "counted"])
@pytest.mark.parametrize(("name", "value"), [("texts", ""), ("right_choices", 1)])
def test_a_long_list_in_a_list_is_found_beside_long_texts(beside: int, name: str, value: object) -> None:
    texts = [sample_pb2.Sample(prompt=sample_pb2.Prompt(text="x" * 1000))] * (beside // 1000)
    right = sample_pb2.Sample(target=sample_pb2.Target(texts=["yes"] * 10_000))
    too_long: dict[str, Any] = {name: [value] * 10_001}
    wrong = sample_pb2.Sample(target=sample_pb2.Target(**too_long))

    def sent(*last: sample_pb2.Sample) -> bytes:
        return run_record_pb2.PutSamplesRequest(samples=[*texts, *last]).SerializeToString()

    assert len(read_message(run_record_pb2.PutSamplesRequest, sent(right)).samples) == len(texts) + 1
    with pytest.raises(TooManyItems) as refused:
        read_message(run_record_pb2.PutSamplesRequest, sent(right, wrong))
    assert refused.value.field == f"samples.target.{name}"


def test_bytes_of_no_message_are_a_decode_error() -> None:
    with pytest.raises(DecodeError) as refused:
        read_message(outcome_pb2.Outcome, b"\xff")
    assert not isinstance(refused.value, TooManyItems)


def in_field(number: int, content: bytes) -> bytes:
    """A message with another in the field; of more than 127 and fewer than 2^28 bytes."""
    length = len(content)
    sizes = (length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14 & 0x7F | 0x80, length >> 21)
    return bytes([number << 3 | 2, *sizes]) + content


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (comparison_service_pb2.CompareRunsRequest, empty_items(1, 2_000_000)),
        (comparison_service_pb2.CompareRunsRequest, b"\xf2\x07\x00" * 1_300_000),
        (comparison_service_pb2.CompareRunsRequest, b"\x7d0000" * 20_001),
        (scheduler_pb2.SubmitRunRequest, in_field(1, empty_items(3, 2_000_000))),
        (scheduler_pb2.SubmitRunRequest, in_field(1, b"\x48\x01" * 40_000)),
        (suite_pb2.AddSuiteRequest, in_field(1, empty_items(3, 2_000_000))),
    ],
    ids=["items", "unknown fields", "numbers", "items of a part", "fields of a part", "entries of a map"],
)
def test_parts_of_a_large_message_are_counted_before_it_is_parsed(kind: type, content: bytes) -> None:
    with pytest.raises(TooManyParts):
        check_parts(kind, content, 20_000)


def test_large_messages_of_few_parts_and_small_ones_are_taken() -> None:
    suite = suite_pb2.AddSuiteRequest(user="x")
    suite.document.files["rows.jsonl"] = b"x" * 4_000_000
    check_parts(suite_pb2.AddSuiteRequest, suite.SerializeToString(), 20)
    marks = answer_pb2.MarkAnswersRequest()
    for number in range(MAX_ITEMS):
        marks.answers.add(row_id=f"{number:0100}")
    check_parts(answer_pb2.MarkAnswersRequest, marks.SerializeToString(), MAX_ITEMS)
    check_parts(comparison_service_pb2.CompareRunsRequest, empty_items(1, 30_000), 20_000)


@pytest.mark.parametrize("content", [b"\xff" * 100_000, b"\x0f" * 100_000])
def test_large_bytes_of_no_message_are_a_decode_error(content: bytes) -> None:
    with pytest.raises(DecodeError):
        check_parts(comparison_service_pb2.CompareRunsRequest, content, 100_000)


def test_the_depth_of_a_large_message_is_no_recursion() -> None:
    """A value of JSON may be a list of values."""
    deep = b""
    for _ in range(7_000):
        deep = in_field(1, in_field(6, deep))
    check_parts(struct_pb2.ListValue, deep, 100_000)


def test_refused_messages_stay_in_memory_no_longer() -> None:
    """Without a garbage collection: few objects are made, so that none comes by itself."""
    content = empty_items(1, MAX_ITEMS_IN_ALL - 1)
    gc.disable()
    try:
        peaks = [peak_kib_after_refusal(content) for _ in range(40)]
    finally:
        gc.enable()
    # One takes some 9 MiB.
    assert peaks[-1] < peaks[0] + 100 * 1024


def peak_kib_after_refusal(content: bytes) -> int:
    with pytest.raises(TooManyItems):
        read_message(comparison_service_pb2.CompareRunsRequest, content)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
