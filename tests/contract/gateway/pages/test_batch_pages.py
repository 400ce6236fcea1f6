"""Batches and files on pages: states, counts, downloads, what can be done with them, hostile text."""

import pytest

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, Shown, show
from tests.fakes.gateway.gateway_harness import GatewayHarness

BATCH = f"batch_{0:032x}"
PART = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture(autouse=True)
def batch(harness: GatewayHarness) -> batch_pb2.Batch:
    files = harness.scheduler.files
    given = files.put("in.jsonl", b"line", file_pb2.FILE_PURPOSE_BATCH)
    made = files.put("out.jsonl", b"line", file_pb2.FILE_PURPOSE_BATCH_OUTPUT)
    batch = batch_pb2.Batch(batch_id=BATCH, input_file_id=given.file_id, output_file_id=made.file_id)
    batch.state, batch.run_id, batch.model = batch_pb2.BATCH_STATE_IN_PROGRESS, RUN_ID, "vllm/starter"
    batch.total, batch.answered, batch.failed = 1200, 1000, 7
    batch.created_at.FromSeconds(1_700_000_000)
    batch.in_progress_at.FromSeconds(1_700_000_060)
    harness.scheduler.batches.kept[BATCH] = batch
    return batch


def links(shown: Shown) -> list[str]:
    return [attributes.get("href") or "" for tag, attributes in shown.elements if tag == "a"]


async def test_batches_have_their_state_and_counts(harness: GatewayHarness) -> None:
    shown = await show(harness, "/batches")
    assert "in progress" in shown.html
    assert "1\u2009000 of 1\u2009200, 7 failed" in shown.html


async def test_batch_leads_to_its_run_and_its_files(harness: GatewayHarness, batch: batch_pb2.Batch) -> None:
    batch.metadata["purpose"] = "nightly"
    shown = await show(harness, f"/batches/{BATCH}")
    assert {f"/runs/{RUN_ID}", f"/v1/files/{batch.output_file_id}/content", "?ask=cancel"} <= set(
        links(shown)
    )
    assert all(word in shown.html for word in ("nightly", "Created", "In progress"))
    download = await show(harness, f"/v1/files/{batch.output_file_id}/content")
    assert (download.status, download.html) == (200, "line")


async def test_failed_batch_names_its_faulty_lines(harness: GatewayHarness, batch: batch_pb2.Batch) -> None:
    batch.state = batch_pb2.BATCH_STATE_FAILED
    batch.errors.add(code="invalid_json_line", message="It is not valid JSON.", param="body", line=3)
    shown = await show(harness, f"/batches/{BATCH}")
    assert "It is not valid JSON." in shown.html
    assert "?ask=cancel" not in links(shown)


async def test_batch_is_cancelled_after_a_dialog(harness: GatewayHarness, batch: batch_pb2.Batch) -> None:
    asking = await show(harness, f"/batches/{BATCH}?ask=cancel")
    assert any(tag == "dialog" and "open" in a for tag, a in asking.elements)
    own = {"Origin": harness.http}
    done = await show(harness, f"/batches/{BATCH}/cancel", method="POST", headers=own)
    assert done.headers["Location"] == f"/batches/{BATCH}"
    assert batch.state == batch_pb2.BATCH_STATE_CANCELLING
    assert "?ask=cancel" not in links(await show(harness, f"/batches/{BATCH}"))
    batch.state = batch_pb2.BATCH_STATE_COMPLETED
    late = await show(harness, f"/batches/{BATCH}/cancel", method="POST", headers=own)
    cookie = late.headers["Set-Cookie"].partition(";")[0]
    again = await show(harness, f"/batches/{BATCH}", headers={"Cookie": cookie})
    assert "is completed and cannot be cancelled" in again.html


async def test_files_are_listed_by_purpose_and_deleted_unless_a_batch_uses_them(
    harness: GatewayHarness, batch: batch_pb2.Batch
) -> None:
    assert "in.jsonl" not in (await show(harness, "/batches/files?purpose=batch_output")).html
    assert "in.jsonl" in (await show(harness, "/batches/files?purpose=nonsense")).html
    asking = await show(harness, f"/batches/files?ask={batch.input_file_id}")
    assert f'action="/batches/files/{batch.input_file_id}/delete"' in asking.html
    own = {"Origin": harness.http}
    path = f"/batches/files/{batch.input_file_id}/delete"
    harness.scheduler.files.in_use.add(batch.input_file_id)
    kept = await show(harness, path, method="POST", headers=own)
    shown = await show(
        harness, "/batches/files", headers={"Cookie": kept.headers["Set-Cookie"].partition(";")[0]}
    )
    assert "uses this file" in shown.html
    harness.scheduler.files.in_use.clear()
    form = own | {"Content-Type": "application/x-www-form-urlencoded"}
    done = await show(harness, path, method="POST", headers=form, body="back=/batches/files?after=x")
    # The page of the list that it was on.
    assert done.headers["Location"] == "/batches/files?after=x"
    assert "in.jsonl" not in (await show(harness, "/batches/files")).html


async def test_pages_follow_by_the_last_id(harness: GatewayHarness) -> None:
    for number in range(60):
        harness.scheduler.files.put(f"{number}.jsonl", b"", file_pb2.FILE_PURPOSE_BATCH)
        batch_id = f"batch_{number + 1:032x}"
        harness.scheduler.batches.kept[batch_id] = batch_pb2.Batch(
            batch_id=batch_id, state=batch_pb2.BATCH_STATE_COMPLETED
        )
    for path in ("/batches", "/batches/files"):
        first = await show(harness, path)
        [following] = [a["href"] for tag, a in first.elements if tag == "a" and a.get("rel") == "next"]
        second = await show(harness, following or "")
        assert second.status == 200
        assert 'rel="next"' not in second.html


async def test_hostile_text_is_text(harness: GatewayHarness, batch: batch_pb2.Batch) -> None:
    batch.model = batch.endpoint = batch.user = batch.completion_window = HOSTILE
    batch.metadata[HOSTILE] = HOSTILE
    batch.errors.add(message=HOSTILE, param=HOSTILE)
    file = harness.scheduler.files.kept[batch.input_file_id]
    file.name = file.user = HOSTILE
    file.faults.add(line=1, problem=HOSTILE)
    file.fault_count = 1
    for path in ("/batches", f"/batches/{BATCH}", f"/batches/files?ask={file.file_id}"):
        shown = await show(harness, path)
        assert shown.status == 200
        assert "img" not in [tag for tag, _ in shown.elements]
        assert not any(name.startswith("on") for _, attributes in shown.elements for name in attributes)
        assert not {"\u202e", "\u200b"} & set(shown.html)
