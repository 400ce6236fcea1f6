"""Suites over a socket: bring, check, look, delete; every problem with its line."""

import base64
import io
import json

import pytest

from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call

SUITES = "/api/v1/suites"
DOCUMENT = "suite: mine\ntasks: []\n"
YAML = {"Content-Type": "application/yaml; charset=utf-8"}


async def test_suites_are_listed_with_versions_and_problems(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "GET", SUITES)
    assert status == 200
    broken, sound = body["suites"]
    assert broken["problem"] == "mine/task.yaml: doc_to_text is missing"
    assert (sound["suite"], sound["version"], sound["problem"]) == ("starter", None, None)
    assert sound["tasks"][0]["metrics"] == ["acc"]
    judge = {"model_id": "openai/judge", "prompt": "style", "has_document": False, "scale": ""}
    assert (sound["judges"], broken["judges"]) == ([judge], [])


async def test_new_suite_is_201_and_the_same_again_is_200(harness: GatewayHarness) -> None:
    given = {"document": DOCUMENT, "file_name": "mine.yaml", "files": {"rows.jsonl": '{"a": 1}\n'}}
    headers = {"X-Proctor-User": "bob"}
    status, body, _ = await call(harness, "POST", SUITES, json=given, headers=headers)
    assert (status, body["suite"]["version"], body["is_known"]) == (201, 1, False)
    status, body, _ = await call(harness, "POST", SUITES, json=given)
    assert (status, body["suite"]["version"], body["is_known"]) == (200, 1, True)
    added = harness.scheduler.suites.added[0]
    assert (added.user, added.document.file_name) == ("bob", "mine.yaml")
    assert dict(added.document.files) == {"rows.jsonl": b'{"a": 1}\n'}


async def test_binary_files_travel_as_base64(harness: GatewayHarness) -> None:
    parquet = base64.b64encode(b"PAR1\xff").decode()
    given = {"document": DOCUMENT, "files": {"rows.parquet": {"base64": parquet}}}
    assert (await call(harness, "POST", SUITES, json=given))[0] == 201
    assert harness.scheduler.suites.added[0].document.files["rows.parquet"] == b"PAR1\xff"
    given = {"document": DOCUMENT, "files": {"rows.parquet": {"base64": "%"}}}
    status, body, _ = await call(harness, "POST", SUITES, json=given)
    assert status == 422
    assert "not base64" in body["detail"]
    assert [fault["field"] for fault in body["errors"]] == ["files.rows.parquet"]


async def test_a_suite_is_read_as_the_body_that_added_it(harness: GatewayHarness) -> None:
    parquet = {"base64": base64.b64encode(b"PAR1\xff").decode()}
    given = {"document": DOCUMENT, "file_name": "mine.yaml", "files": {"a.csv": "ä\n", "b.parquet": parquet}}
    await call(harness, "POST", SUITES, json=given)
    status, body, _ = await call(harness, "GET", f"{SUITES}/mine/document")
    assert (status, body) == (200, {**given, "version": 1})
    for name in ("mine@2", "zzz"):
        assert (await call(harness, "GET", f"{SUITES}/{name}/document"))[0] == 404


@pytest.mark.parametrize("content", [7, None, ["a"], {"base64": 7}, {"base64": "", "name": "a"}])
async def test_file_that_is_neither_text_nor_base64_is_named_once(
    harness: GatewayHarness, content: object
) -> None:
    given = {"document": DOCUMENT, "files": {"a.csv": "a\n", "b.csv": content}}
    status, body, _ = await call(harness, "POST", SUITES, json=given)
    assert (status, body["reason"]) == (422, "INVALID_PARAMETER")
    assert [fault["field"] for fault in body["errors"]] == ["files.b.csv"]


async def test_yaml_is_taken_as_it_is(harness: GatewayHarness) -> None:
    path = f"{SUITES}?file_name=mine.yaml&project_id=7"
    status, _, _ = await call(harness, "POST", path, data=DOCUMENT.encode(), headers=YAML)
    assert status == 201
    [added] = harness.scheduler.suites.added
    assert (added.document.text, added.document.file_name) == (DOCUMENT, "mine.yaml")
    assert added.project_id == 7


async def test_yaml_that_is_no_text_is_422(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "POST", SUITES, data=b"\xff", headers=YAML)
    assert status == 422
    assert "not UTF-8 text" in body["detail"]


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
async def test_every_fault_of_a_suite_is_named_with_its_line(harness: GatewayHarness, query: str) -> None:
    text = "suite: mine\nbroken_key: 1\ntasks: []\nbroken_too: 2\n"
    status, body, response = await call(harness, "POST", SUITES + query, json={"document": text})
    assert status == 422
    assert response.content_type == "application/problem+json"
    assert (body["status"], body["reason"]) == (422, "INVALID_SUITE_FILE")
    assert body["faults"] == [
        {"file": "", "line": 2, "field": "tasks.0", "problem": "broken_key: 1 is not a key"},
        {"file": "", "line": 4, "field": "tasks.0", "problem": "broken_too: 2 is not a key"},
    ]
    assert "line 2 tasks.0: broken_key: 1 is not a key" in body["detail"]
    assert not harness.scheduler.suites.kept


async def test_dry_run_keeps_nothing(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "POST", f"{SUITES}?dry_run=true", json={"document": DOCUMENT})
    assert (status, body["suite"]["suite"], body["is_known"]) == (200, "mine", None)
    assert not harness.scheduler.suites.kept


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "document"),
        ({"document": ""}, "document"),
        ({"document": DOCUMENT, "file": "x"}, "file"),
        ({"document": "\ud800"}, "body"),
        ([], "body"),
    ],
)
async def test_body_of_another_form_is_422_with_the_field(
    harness: GatewayHarness, given: object, field: str
) -> None:
    status, body, _ = await call(harness, "POST", SUITES, json=given)
    assert status == 422
    assert body["errors"][0]["field"] == field


async def test_suite_may_be_larger_than_other_bodies_up_to_its_own_limit(harness: GatewayHarness) -> None:
    headers = {"Content-Type": "application/json"}
    big, too_big = (
        io.BytesIO(json.dumps({"document": DOCUMENT, "files": {"rows.jsonl": "x" * size}}).encode())
        for size in (3_000_000, 7_000_000)
    )
    assert (await call(harness, "POST", SUITES, data=big, headers=headers))[0] == 201
    status, body, _ = await call(harness, "POST", SUITES, data=too_big, headers=headers)
    assert status == 413
    assert "larger than 6291456 bytes" in body["detail"]


async def test_sample_is_shown_to_the_last_blank(harness: GatewayHarness) -> None:
    sample = harness.scheduler.suites.sample
    sample.prompt.text = "Review: fine \nSentiment:"
    sample.choices.extend([" negative", " positive"])
    sample.target.choice, sample.digest = 1, b"\xab"
    sample.doc_json = '{"text": "fine ", "score": NaN}'
    status, body, _ = await call(harness, "GET", f"{SUITES}/starter/tasks/sentiment/samples/3?num_fewshot=2")
    assert status == 200
    assert (body["prompt"], body["choices"]) == ("Review: fine \nSentiment:", [" negative", " positive"])
    assert body["target"]["choice"] == 1
    assert body["doc"] == {"text": "fine ", "score": None}
    assert body["metrics"] == [{"metric": "f1", "options": {"average": "macro"}}]
    assert (body["max_tokens"], body["filters"], body["stop"]) == (None, None, ["\n"])
    [asked] = harness.scheduler.suites.shown
    assert (asked.suite, asked.doc_id, asked.num_fewshot) == ("starter", 3, 2)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("starter/tasks/nothing/samples/0", 404),
        ("starter/tasks/sentiment/samples/99", 404),
        ("starter/tasks/sentiment/samples/-1", 422),
        ("starter/tasks/sentiment/samples/x", 422),
    ],
)
async def test_what_a_path_names_and_does_not_exist_is_404(
    harness: GatewayHarness, path: str, status: int
) -> None:
    answered, body, _ = await call(harness, "GET", f"{SUITES}/{path}")
    assert (answered, body["status"]) == (status, status)


async def test_version_is_deleted_unless_a_run_used_it(harness: GatewayHarness) -> None:
    await call(harness, "POST", SUITES, json={"document": DOCUMENT})
    harness.scheduler.suites.in_use = {1}
    status, body, _ = await call(harness, "DELETE", f"{SUITES}/mine/versions/1")
    assert (status, body["reason"]) == (409, "SUITE_IN_USE")
    harness.scheduler.suites.in_use = set()
    status, body, _ = await call(harness, "DELETE", f"{SUITES}/mine/versions/1")
    assert (status, body["message"]) == (200, "Version 1 of suite mine deleted")
    status, body, _ = await call(harness, "DELETE", f"{SUITES}/mine/versions/9")
    assert (status, body["detail"]) == (404, "No user's suite mine has a version 9.")
