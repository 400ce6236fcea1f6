"""A stack with a declared project, in which a user has one of everything."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from services.gateway.pages.asset_files import Assets
from tests.e2e.harness.entry_points import API, HttpAnswer, http
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.keyed_suite import SUITE
from tests.harness.stack_harness import MODEL, SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness

KEYS = {name: f"the-key-of-{name}-0123456789" for name in ("ann", "bob", "vic", "olga")}
KEYED = {"PROCTOR_GATEWAY_API_KEYS": json.dumps(KEYS), "PROCTOR_GATEWAY_OPERATORS": '["olga"]'}
PROJECTS = "/api/v1/projects"
NAME, WORD, ELSEWHERE = "secret plans", "xylophone", "elsewhere"
_DOCUMENT = f"""
suite: {WORD}-suite
description: {WORD}
tasks:
  - task: only
    version: "1"
    dataset: {{file: rows.jsonl}}
    output_type: generate_until
    doc_to_text: "{WORD} {{{{question}}}}"
    doc_to_target: answer
    metric_list: [{{metric: exact_match}}]
    metadata: {{license: Apache-2.0}}
"""
OWN_SUITE = {
    "document": _DOCUMENT,
    "files": {"rows.jsonl": '{"question": "Which?", "answer": "this"}\n'},
}


@dataclass
class Site:
    """A stack with a project: ann runs in it, vic views it, bob is no member, olga is an operator."""

    stack: StackHarness
    project_id: int
    ids: dict[str, str] = field(default_factory=dict)
    # Those of users, and further ones by names of their own.
    keys: dict[str, str] = field(default_factory=lambda: dict(KEYS))

    @property
    def secrets(self) -> Sequence[str]:
        """What nobody but members is shown."""
        return (*self.ids.values(), str(self.project_id), NAME, WORD)

    def unknown(self, address: str) -> str:
        """The address with ids of the same form that nothing has."""
        for each in (*self.ids.values(), str(self.project_id)):
            last = "1" if each.endswith("0") else "0"
            address = address.replace(each, each[:-1] + last)
        return address

    async def call(self, user: str, method: str, path: str, **more: Any) -> HttpAnswer:
        headers = {"Authorization": f"Bearer {self.keys[user]}", **more.pop("headers", {})}
        return await http(self.stack, method, path, headers=headers, **more)

    async def text(self, user: str, method: str, path: str, **more: Any) -> tuple[int, str]:
        url = f"http://{self.stack.stack.gateway_http}{path}"
        headers = {"Authorization": f"Bearer {self.keys[user]}", **more.pop("headers", {})}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, url, allow_redirects=False, **more) as response,
        ):
            return response.status, (await response.read()).decode(errors="replace")

    async def pushed(self, user: str, address: str) -> str:
        """What a socket sends first; nothing where it is refused."""
        url = f"http://{self.stack.stack.gateway_http}"
        headers = {"X-API-Key": self.keys[user], "Origin": url}
        path = f"{address}?build={Assets.load().digest}"
        with suppress(aiohttp.WSServerHandshakeError, TimeoutError):
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(url + path, headers=headers) as one,
            ):
                return str((await one.receive(timeout=30)).data)
        return ""

    def shown(self, text: str) -> list[str]:
        return [secret for secret in self.secrets if secret in text]


async def declare(site: Site, name: str) -> int:
    made = await site.call("olga", "POST", PROJECTS, json={"name": name})
    assert made.status == 201, made.body
    return int(made.body["project_id"])


async def bind_key(site: Site, key: str, user: str, project: str) -> str:
    """Makes the key of this name, which is bound to a project. Returns its id."""
    made = await site.call("olga", "POST", "/api/v1/keys", json={"user": user, "project_id": project})
    assert made.status == 201, made.body
    site.keys[key] = made.body["secret"]
    return str(made.body["key"]["key_id"])


async def set_role(site: Site, user: str, role: str, project_id: int = 0) -> None:
    wanted = project_id or site.project_id
    path = f"{PROJECTS}/{wanted}/members"
    answer = await site.call("olga", "PUT", path, json={"user": user, "role": role})
    assert answer.status == 200, answer.body

    async def is_heard() -> bool:
        listed = (await site.call(user, "GET", PROJECTS)).body["projects"]
        return role in [each["role"] for each in listed if each["project_id"] == wanted]

    await eventually(is_heard, f"the gateway knows that {user} is a {role}", 10)


@asynccontextmanager
async def filled_site() -> AsyncIterator[Site]:
    """The key "elsewhere" is one of ann, who may run in the project: it is bound to another one."""
    with temporary_state_dir() as state_dir:
        order = StackOrder(rows=20, environment=SHORT_TIMEOUTS | KEYED)
        async with stack_harness(state_dir.parent, order) as stack:
            site = Site(stack, 0)
            site.project_id = await declare(site, NAME)
            for user, role in (("ann", "runner"), ("vic", "viewer")):
                await set_role(site, user, role)
            await fill(site)
            await set_role(site, "ann", "maintainer", await declare(site, ELSEWHERE))
            await bind_key(site, "elsewhere", "ann", ELSEWHERE)
            yield site


async def fill(site: Site) -> None:
    """Things of ann in the project: a run of each kind, a data set, files, a batch, a suite, marks."""

    async def made(path: str, name: str, **more: Any) -> str:
        answer = await site.call("ann", "POST", path, **more)
        assert answer.status in (200, 201), (path, answer.body)
        return str(answer.body[name])

    project = {"project_id": site.project_id}
    config = {"provider": "openai", "model": "fake"}
    order = {"config": config, "suite": SUITE}
    site.ids["job_id"] = await made(f"{API}/run", "job_id", json=project | order)
    upload = f"/admin/datasets/upload?project_id={site.project_id}"
    site.ids["dataset_id"] = await made(upload, "dataset_id", data=rows())
    # It names no project: that of its data set is its own.
    run = {"model_id": MODEL, "dataset_id": site.ids["dataset_id"]}
    site.ids["benchmark_id"] = await made("/admin/benchmarks/run", "benchmark_id", json=run)
    form = rows(purpose="batch", project_id=str(site.project_id))
    site.ids["file_id"] = await made("/v1/files", "id", data=form)
    batch = {
        "input_file_id": site.ids["file_id"],
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    site.ids["batch_id"] = await made("/v1/batches", "id", json=batch)
    await made(f"/api/v1/suites?project_id={site.project_id}", "suite", json=OWN_SUITE)
    order["suite"] = f"{WORD}-suite"
    site.ids["own_job"] = await made(f"{API}/run", "job_id", json={"project_id": 0} | order)
    for name in ("job_id", "own_job"):
        await ended(site, f"{API}/results/{site.ids[name]}")
    await ended(site, f"/admin/benchmarks/{site.ids['benchmark_id']}")
    await ended(site, f"/v1/batches/{site.ids['batch_id']}")
    site.ids["output_file"] = (await site.call("ann", "GET", f"/v1/batches/{site.ids['batch_id']}")).body[
        "output_file_id"
    ]
    schedule = {"cron": "0 3 * * *", "run": project | order | {"name": f"{WORD} nightly"}}
    site.ids["schedule_id"] = await made("/api/v1/schedules", "schedule_id", json=schedule)
    hook = {"channel": "webhook", "address": f"https://{WORD}.example.org"}
    target = {**hook, "events": ["run_failed"], "scope": "project", **project}
    site.ids["target_id"] = await made("/api/v1/notices/targets", "target_id", json=target)
    # One that waits, so that the queue has something to show.
    await site.stack.model_server.control(latency_seconds=30)
    site.ids["paused_job"] = await made(f"{API}/run", "job_id", json=project | order)
    assert (await site.call("ann", "POST", f"{API}/pause/{site.ids['paused_job']}")).status == 200
    await site.stack.model_server.control(latency_seconds=0)
    marks = {"answers": [{"sample": 0, "rollout": 0}]}
    golden = f"/admin/benchmarks/{site.ids['benchmark_id']}/golden"
    assert (await site.call("ann", "PUT", golden, json=marks)).status == 200


async def ended(site: Site, path: str, user: str = "ann") -> None:
    async def is_over() -> bool:
        return str((await site.call(user, "GET", path)).body["status"]) == "completed"

    await eventually(is_over, f"{path} is completed", 60)


def rows(**fields: str) -> aiohttp.FormData:
    form = aiohttp.FormData(fields)
    lines = []
    for row in range(3):
        messages = [{"role": "user", "content": f"{WORD} {row}. KEY=k{row}"}]
        body = {"model": MODEL, "messages": messages}
        lines.append(
            json.dumps(
                {"custom_id": f"row-{row}", "method": "POST", "url": "/v1/chat/completions", "body": body}
            )
        )
    form.add_field("file", "\n".join(lines), filename=f"{WORD}.jsonl")
    return form
