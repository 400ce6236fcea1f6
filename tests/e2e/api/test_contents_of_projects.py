"""What is equal inside and outside of a declared project: nobody learns by it what others have.

Ann has contents in the project; bob, who is no member, has the same in none.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.e2e.harness.entry_points import API
from tests.e2e.harness.project_site import Site, ended
from tests.fakes.eventually import eventually
from tests.harness.rollout_orders import MEND, harbor_tasks
from tests.harness.stack_harness import MODEL

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG = {"provider": "openai", "model": "fake"}
UPLOAD, ROLLOUTS = "/admin/datasets/upload", "/api/v1/rollouts"
# What differs between any two uploads.
OWN = {"dataset_id", "id", "name", "filename", "uploaded_at", "created_at", "digest"}


def lines(word: str) -> aiohttp.FormData:
    """Of one length for words of one length."""
    form = aiohttp.FormData()
    rows = [{"prompt": f"{word} {row}. KEY=k{row}", "target": word} for row in range(3)]
    form.add_field("file", "\n".join(map(json.dumps, rows)), filename="rows.jsonl")
    return form


async def added(site: Site, user: str, word: str, project_id: int = 0) -> Mapping[str, Any]:
    answer = await site.call(user, "POST", f"{UPLOAD}?project_id={project_id}", data=lines(word))
    assert answer.status == 200, answer.body
    body: Mapping[str, Any] = answer.body
    return body


def objects(site: Site) -> int:
    folder = Path(site.stack.stack.options.state_dir) / "objects"
    return sum(path.is_file() for path in folder.rglob("*"))


async def test_an_upload_and_its_deletion_are_the_same_whether_others_have_the_content(site: Site) -> None:
    of_ann = await added(site, "ann", "walrus", site.project_id)
    before = await site.call("ann", "GET", f"/admin/datasets/{of_ann['dataset_id']}/preview")
    seen = []
    for word in ("walrus", "badger"):
        counted = objects(site)
        of_bob = await added(site, "bob", word)
        stored = objects(site) - counted
        listed = await site.call("bob", "GET", f"/admin/datasets/{of_bob['dataset_id']}")
        deleted = await site.call("bob", "DELETE", f"/admin/datasets/{of_bob['dataset_id']}")
        facts = [{name: each[name] for name in each.keys() - OWN} for each in (of_bob, listed.body)]
        # The content is his own: objects are stored, and are deleted with it.
        seen.append((facts, stored, deleted.status, objects(site) - counted))
    assert seen[0] == seen[1]
    assert (seen[0][1] > 0, seen[0][3]) == (True, 0)
    after = await site.call("ann", "GET", f"/admin/datasets/{of_ann['dataset_id']}/preview")
    assert (after.status, after.body) == (200, before.body)
    # Within the project a content is stored once.
    counted = objects(site)
    await added(site, "ann", "walrus", site.project_id)
    assert objects(site) == counted


def suite(name: str, row: Mapping[str, str]) -> Mapping[str, Any]:
    task = {
        "task": "only",
        "version": "1",
        "dataset": {"file": "rows.jsonl"},
        "output_type": "generate_until",
        "doc_to_text": "{{question}} KEY=k1",
        "doc_to_target": "answer",
        "metric_list": [{"metric": "exact_match"}],
        "metadata": {"license": "Apache-2.0"},
    }
    document = yaml.safe_dump({"suite": name, "description": "Rows.", "tasks": [task]})
    return {"document": document, "files": {"rows.jsonl": json.dumps(row) + "\n"}}


async def test_who_asks_the_same_gets_own_rows_and_no_others(site: Site) -> None:
    """A suite of a user with the questions of another's, which has more columns."""
    asked = {"question": "Which animal?", "answer": "walrus"}
    shown = {}
    for user, project_id, row in (
        ("ann", site.project_id, asked | {"note": "confidential"}),
        ("bob", 0, asked | {"source": "mine"}),
    ):
        name = f"animals-of-{user}"
        added = await site.call(
            user, "POST", f"/api/v1/suites?project_id={project_id}", json=suite(name, row)
        )
        assert added.status == 201, added.body
        order = {"project_id": project_id, "suite": name, "config": CONFIG}
        run = (await site.call(user, "POST", f"{API}/run", json=order)).body["job_id"]
        path = f"{API}/results/{run}"
        await ended(site, path, user)
        status, log = await site.text(user, "GET", f"{path}/export?format=lm_eval&task=only")
        assert status == 200, log
        shown[user] = [json.loads(line) for line in log.splitlines()]
    assert [each["doc"] for each in shown["ann"]] == [asked | {"note": "confidential"}]
    assert [each["doc"] for each in shown["bob"]] == [asked | {"source": "mine"}]


async def test_a_digest_of_tasks_opens_them_for_nobody_else(site: Site, tmp_path: Path) -> None:
    content = harbor_tasks(tmp_path, {"mend": MEND})
    headers = {"Content-Type": "application/gzip"}
    made = await site.call("ann", "POST", f"{ROLLOUTS}/tasks", data=content, headers=headers)
    assert made.status == 201, made.body
    refusals = []
    for digest in (made.body["tasks_digest"], "0" * 64):
        order = {"suite": "of-bob", "tasks_digest": digest, "models": [MODEL]}
        answer = await site.call("bob", "POST", ROLLOUTS, json=order)
        refusals.append((answer.status, json.dumps(answer.body).replace(digest, "")))
    assert refusals[0] == refusals[1]
    assert refusals[0][0] == 404


async def test_a_run_of_a_project_that_keeps_an_open_data_set_is_not_named(site: Site) -> None:
    dataset = (await added(site, "bob", "otters"))["dataset_id"]
    await site.stack.model_server.control(latency_seconds=30)
    order = {"model_id": MODEL, "dataset_id": dataset, "project_id": site.project_id}
    run = await site.call("ann", "POST", "/admin/benchmarks/run", json=order)
    assert run.status == 200, run.body
    run_id = run.body["benchmark_id"]
    refused = await site.call("bob", "DELETE", f"/admin/datasets/{dataset}")
    named = await site.call("olga", "DELETE", f"/admin/datasets/{dataset}")
    await site.stack.model_server.control(latency_seconds=0)
    await ended(site, f"/admin/benchmarks/{run_id}")
    assert (refused.status, refused.body["reason"]) == (409, "DATASET_IN_USE")
    assert run_id not in json.dumps(refused.body)
    assert run_id in json.dumps(named.body)

    async def is_deleted() -> bool:
        return (await site.call("bob", "DELETE", f"/admin/datasets/{dataset}")).status in (200, 404)

    await eventually(is_deleted, "the data set is deleted once the run is over", 30)
