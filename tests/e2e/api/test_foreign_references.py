"""What a body names of another project is as unknown as what is nowhere, and odd texts break nothing."""

import uuid
from collections.abc import Mapping
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.harness.entry_points import API
from tests.e2e.harness.project_site import WORD, Site, ended, rows
from tests.harness.keyed_suite import SUITE
from tests.harness.stack_harness import MODEL

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG = {"provider": "openai", "model": "fake"}
# Text that parsers, tables and terminals dislike: directions, joined and half-width letters, controls.
ODD = "\u202eevil\u2066 ﷽ 👩‍👩‍👧‍👦 \u0007\u001b[31m\ufeff\u2028 İıﬁ \U0010ffff " + "Z̵͎̈́" * 20


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def mine(site: Site) -> Mapping[str, str]:
    """Things of bob's own, in no project."""
    order = {"project_id": 0, "suite": SUITE, "config": CONFIG}
    run = await site.call("bob", "POST", f"{API}/run", json=order)
    assert run.status == 200, run.body
    await ended(site, f"{API}/results/{run.body['job_id']}", "bob")
    uploaded = await site.call("bob", "POST", "/admin/datasets/upload", data=rows())
    return {"job_id": run.body["job_id"], "dataset_id": uploaded.body["dataset_id"]}


def requests(ids: Mapping[str, str], mine: Mapping[str, str]) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Sound requests but for one name in the body of each, which is in `ids`."""
    run, of_dataset, own = ids["job_id"], ids["dataset_id"], mine["job_id"]
    order = {"project_id": 0, "suite": SUITE, "config": CONFIG}
    on_rows = {"model_id": MODEL, "dataset_id": mine["dataset_id"]}
    decided = {"until_decided": {"against_job_id": run}}
    gate = {"base_run_id": run}
    batch = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return {
        "suite of a run": ("POST", f"{API}/run", order | {"suite": ids["suite"]}),
        "suite of an estimate": ("POST", f"{API}/estimate", order | {"suite": ids["suite"]}),
        "data set": ("POST", "/admin/benchmarks/run", on_rows | {"dataset_id": of_dataset}),
        "run that decides": ("POST", "/admin/benchmarks/run", on_rows | decided),
        "compared run": ("POST", f"{API}/compare", {"model_ids": [own, run]}),
        "first compared run": ("POST", f"{API}/compare", {"model_ids": [run, own]}),
        "run of a gate": ("POST", f"{API}/gate", {"job_id": run, "base_job_id": own}),
        "base of a gate": ("POST", f"{API}/gate", {"job_id": own, "base_job_id": run}),
        "run of a size": ("POST", f"{API}/plan-size", {"model_ids": [run, own], "difference_points": 2}),
        "judged beside": ("POST", f"{API}/judgements/{own}", {"model_id": MODEL, "against": run}),
        "scheduled suite": (
            "POST",
            "/api/v1/schedules",
            {"cron": "0 3 * * *", "run": order | {"suite": ids["suite"]}},
        ),
        "scheduled data set": (
            "POST",
            "/api/v1/schedules",
            {"cron": "0 3 * * *", "dataset_run": on_rows | {"dataset_id": of_dataset}},
        ),
        "base of a schedule": (
            "POST",
            "/api/v1/schedules",
            {"cron": "0 3 * * *", "run": order, "gate": gate},
        ),
        "file of a batch": ("POST", "/v1/batches", batch | {"input_file_id": ids["file_id"]}),
        "tasks of rollouts": (
            "POST",
            "/api/v1/rollouts",
            {"suite": "mine", "models": [MODEL], "tasks_digest": ids["digest"]},
        ),
    }


def nowhere(site: Site) -> dict[str, str]:
    """Ids of the form of the project's."""
    return {name: site.unknown(each) for name, each in site.ids.items()} | {
        "job_id": str(uuid.uuid4()),
        "suite": "no-such-suite",
        "digest": "0" * 64,
    }


async def test_what_a_body_names_of_another_project_is_nowhere(site: Site, mine: Mapping[str, str]) -> None:
    theirs = requests(site.ids | {"suite": f"{WORD}-suite", "digest": "1" * 64}, mine)
    unknown, faults = requests(nowhere(site), mine), []
    for name, (method, path, body) in theirs.items():
        answer = await site.text("bob", method, path, json=body)
        expected = await site.text("bob", method, path, json=unknown[name][2])
        # What the request names itself may be repeated.
        shown = [each for each in site.shown(answer[1]) if each not in str(body)]
        if answer[0] != expected[0] or answer[0] < 400 or answer[0] >= 500 or shown:
            faults.append((name, answer, expected, shown))
    assert faults == []


async def test_a_member_who_views_orders_and_stores_nothing_by_any_body(site: Site) -> None:
    """With the rights to see all of it: each request would store something in the project."""
    run, project = site.ids["benchmark_id"], {"project_id": site.project_id}
    order = project | {"suite": SUITE, "config": CONFIG}
    attempts: dict[str, tuple[str, str, Any]] = {
        "judge": ("POST", f"{API}/judgements/{run}", {"model_id": MODEL}),
        "annotate": ("POST", f"{API}/annotations/{run}", {"sample": 0, "label": "yes"}),
        "contaminate": (
            "POST",
            f"{API}/contamination/{run}",
            {"kind": "canary", "corpus": "c", "found": 0, "searched": 1},
        ),
        "schedule": (
            "POST",
            "/api/v1/schedules",
            {"cron": "0 3 * * *", "run": order | {"name": "each night"}},
        ),
        "map": ("PUT", "/admin/datasets/mappings/mine", project | {"prompt": "{a}"}),
        "label": ("PATCH", f"{API}/results/{run}", {"name": "x"}),
        "mark": ("PUT", f"/admin/benchmarks/{run}/wrong", {"answers": [{"sample": 0, "rollout": 0}]}),
        "rename": ("PATCH", f"/api/v1/projects/{site.project_id}", {"name": "x"}),
        "join": ("PUT", f"/api/v1/projects/{site.project_id}/members", {"user": "vic", "role": "maintainer"}),
    }
    answers = {
        name: (await site.call("vic", method, path, json=body)).status
        for name, (method, path, body) in attempts.items()
    }
    assert {name: status for name, status in answers.items() if status not in (403, 404)} == {}


def with_text(text: str, run: str) -> dict[str, tuple[str, str, Any]]:
    """Requests of each new kind that have the text wherever they can."""
    order = {"project_id": 0, "suite": SUITE, "config": CONFIG}
    labels = {"name": text, "note": text, "tags": [text]}
    return {
        "labels": ("PATCH", f"{API}/results/{run}", labels),
        "order": ("POST", f"{API}/run", order | labels | {"limit": 1}),
        "suite": ("POST", f"{API}/run", order | {"suite": text}),
        "judge": (
            "POST",
            f"{API}/judgements/{run}",
            {"model_id": MODEL, "prompt": text, "document": text},
        ),
        "scale": (
            "POST",
            f"{API}/judgements/{run}",
            {"model_id": MODEL, "scale": f"labels:{text}=1,b=0"},
        ),
        "annotation": ("POST", f"{API}/annotations/{run}", {"sample": 0, "label": text, "comment": text}),
        "corpus": (
            "POST",
            f"{API}/contamination/{run}",
            {"kind": "canary", "corpus": text, "found": 0, "searched": 1},
        ),
        "cron": ("POST", "/api/v1/schedules", {"cron": text, "run": order}),
        "zone": ("POST", "/api/v1/schedules", {"cron": "0 3 * * *", "time_zone": text, "run": order}),
        "target": (
            "POST",
            "/api/v1/notices/targets",
            {"channel": "webhook", "address": f"https://a.example.org/{text}", "events": ["run_failed"]},
        ),
        "mapping": (
            "PUT",
            "/admin/datasets/mappings/odd",
            {"prompt": f"{{{{a}}}}{text}", "target": text},
        ),
        "project": ("POST", "/api/v1/projects", {"name": text, "note": text}),
        "key": ("POST", "/api/v1/keys", {"user": "bob", "note": text}),
    }


async def test_odd_texts_are_kept_or_refused_and_break_no_page(site: Site, mine: Mapping[str, str]) -> None:
    run, answers = mine["job_id"], {}
    for text in (ODD, "x" * 100_000, "\u0000", "\ud800", "<script>alert(1)</script>'\"`{{7*7}}"):
        attempts = with_text(text, run)
        for name, (method, path, body) in attempts.items():
            answers[name, text[:20]] = (await site.text("bob", method, path, json=body))[0]
    assert {each: status for each, status in answers.items() if status >= 500} == {}
    for path in (
        f"/runs/{run}",
        "/runs",
        "/schedules",
        "/settings/notices",
        f"/runs/{run}/annotations",
        "/audit",
    ):
        status, page = await site.text("bob", "GET", path, headers={"Accept": "text/html"})
        assert status in (200, 303, 403), (path, page)
        assert "<script>alert(1)" not in page, path
