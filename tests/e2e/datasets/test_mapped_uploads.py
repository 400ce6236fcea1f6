"""Columns with names of their own: previewed and mapped by REST, the page, gRPC and the command line."""

import io
import json
from pathlib import Path

import aiohttp
import pytest

from proctor.client.datasets import Upload
from proctor.client.errors import Refused
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.values.uploads.column_mapping import ColumnMapping
from tests.e2e.harness.entry_points import http, proctor
from tests.harness.stack_harness import StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

UPLOADS = "/admin/datasets/upload"
CONTENT = b"question,answer\n1 + 1?,2\n2 + 2?,4\n"
PROMPT = "Q: {{question}}"


def form(**fields: str) -> aiohttp.FormData:
    made = aiohttp.FormData()
    for name, value in fields.items():
        made.add_field(name, value)
    made.add_field("file", io.BytesIO(CONTENT), filename="sums.csv")
    return made


async def rows_of(stack: StackHarness, dataset_id: str) -> list[tuple[str, str]]:
    shown = await stack.client.datasets.PreviewDataset(
        dataset_pb2.PreviewDatasetRequest(dataset_id=dataset_id)
    )
    return [(json.loads(row.body_json)["prompt"], row.target) for row in shown.rows]


async def test_rest_refuses_proposes_and_maps(stack: StackHarness) -> None:
    refused = await http(stack, "POST", UPLOADS, data=form())
    assert refused.status == 422
    assert "is not known; a file may have" in json.dumps(refused.body)
    proposed = (await http(stack, "POST", f"{UPLOADS}/preview", data=form())).body
    assert (proposed["columns"], proposed["is_proposed"]) == (["question", "answer"], True)
    assert proposed["mapping"] == {"prompt": "{{question}}", "target": "answer", "id": ""}
    assert [row["body"] for row in proposed["rows"]] == [{"prompt": "1 + 1?"}, {"prompt": "2 + 2?"}]
    stored = await http(stack, "POST", UPLOADS, data=form(prompt=PROMPT, target="answer"))
    assert stored.status == 200, stored.body
    wanted = [("Q: 1 + 1?", "2"), ("Q: 2 + 2?", "4")]
    assert await rows_of(stack, stored.body["dataset_id"]) == wanted
    query = {"name": "sums.csv", "prompt": PROMPT, "target": "answer"}
    headers = {"Content-Type": "application/octet-stream"}
    again = await http(stack, "POST", UPLOADS, params=query, data=CONTENT, headers=headers)
    assert await rows_of(stack, again.body["dataset_id"]) == wanted


async def test_page_shows_rows_before_anything_is_stored(stack: StackHarness) -> None:
    before = await stack.client.datasets.ListDatasets(dataset_pb2.ListDatasetsRequest())
    site = f"http://{stack.stack.gateway_http}"
    async with (
        aiohttp.ClientSession(headers={"Origin": site}) as session,
        session.post(f"{site}/datasets/preview", data=form(prompt="", target="", id="")) as answer,
    ):
        assert answer.status == 200
        shown = await answer.text()
    for part in ("proposed by their names", "1 + 1?", "<textarea", "{{question}}"):
        assert part in shown, part
    after = await stack.client.datasets.ListDatasets(dataset_pb2.ListDatasetsRequest())
    assert after.total == before.total


async def test_one_file_by_two_mappings_is_two_contents(stack: StackHarness) -> None:
    mappings = (ColumnMapping(PROMPT), ColumnMapping(PROMPT, "answer"), ColumnMapping(PROMPT))
    first, second, third = [
        (
            await stack.client.upload_dataset_once(Upload(io.BytesIO(CONTENT), "twice.csv", mapping=each))
        ).dataset
        for each in mappings
    ]
    assert first.digest != second.digest
    assert (first.target_count, second.target_count) == (0, 2)
    # The digest that the client computes is the server's: the third is not sent again.
    assert third.dataset_id == first.dataset_id
    with pytest.raises(Refused, match="prompt names no column"):
        await stack.client.upload_dataset(Upload(io.BytesIO(CONTENT), "a.csv", mapping=ColumnMapping("x")))


async def test_saved_mapping_is_chosen_by_rest_commands_and_on_the_page(
    stack: StackHarness, tmp_path: Path
) -> None:
    mappings = "/admin/datasets/mappings"
    body = {"prompt": PROMPT, "target": "answer"}
    saved = await http(stack, "PUT", f"{mappings}/quiz", json=body)
    assert saved.status == 200, saved.body
    assert (saved.body["name"], saved.body["user"]) == ("quiz", "local")
    assert (await http(stack, "PUT", f"{mappings}/quiz", json={"prompt": "x"})).status == 422
    wanted = [("Q: 1 + 1?", "2"), ("Q: 2 + 2?", "4")]
    query = {"name": "sums.csv", "mapping": "quiz"}
    headers = {"Content-Type": "application/octet-stream"}
    stored = await http(stack, "POST", UPLOADS, params=query, data=CONTENT, headers=headers)
    assert await rows_of(stack, stored.body["dataset_id"]) == wanted
    # What is given beside it replaces a part of it.
    other = query | {"prompt": "{{question}}"}
    stored = await http(stack, "POST", UPLOADS, params=other, data=CONTENT, headers=headers)
    assert [text for text, _ in await rows_of(stack, stored.body["dataset_id"])] == ["1 + 1?", "2 + 2?"]

    file = tmp_path / "sums.csv"
    file.write_bytes(CONTENT)
    uploaded = await proctor(stack, f"datasets upload {file} --mapping quiz --json")
    assert await rows_of(stack, uploaded.document["dataset"]["dataset_id"]) == wanted
    assert "quiz" in (await proctor(stack, "datasets mappings")).out
    listed = await proctor(stack, "datasets mappings --by nobody")
    assert "There is no saved mapping yet" in listed.out
    site = f"http://{stack.stack.gateway_http}"
    async with aiohttp.ClientSession(headers={"Origin": site}) as session:
        fields = form(prompt="{{question}}!", target="", id="", save_as="shout")
        async with session.post(f"{site}/datasets/mappings", data=fields) as answer:
            shown = await answer.text()
            assert str(answer.url).endswith("/datasets?mapping=shout")
            assert "{{question}}!" in shown
        async with session.post(f"{site}/datasets/mappings/delete?name=shout") as answer:
            assert "shout" not in await answer.text()
    assert (await proctor(stack, "datasets delete-mapping quiz")).code == 0
    assert (await http(stack, "GET", f"{mappings}/quiz")).status == 404
    assert (await proctor(stack, f"datasets upload {file} --mapping quiz")).code == 4


async def test_commands_preview_and_map(stack: StackHarness, tmp_path: Path) -> None:
    file = tmp_path / "sums.csv"
    file.write_bytes(CONTENT)
    shown = await proctor(stack, f"datasets preview {file}")
    assert shown.code == 0
    assert f"datasets upload {file} --prompt '{{{{question}}}}' --target answer" in shown.out
    uploaded = await proctor(stack, f"datasets upload {file} --prompt '{PROMPT}' --target answer --json")
    assert await rows_of(stack, uploaded.document["dataset"]["dataset_id"]) == [
        ("Q: 1 + 1?", "2"),
        ("Q: 2 + 2?", "4"),
    ]
    refused = await proctor(stack, f"datasets upload {file} --target answer")
    assert (refused.code, "--target and --id need --prompt" in refused.err) == (2, True)
