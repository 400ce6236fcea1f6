"""What is in a declared project, at every door: members see it, and for others it is not there."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.common.grpc.permissions import METHODS, Permission
from services.gateway.auth.permissions import ROUTES, route_permission
from tests.e2e.harness.entry_points import API, proctor_with
from tests.e2e.harness.project_site import (
    KEYS,
    NAME,
    OWN_SUITE,
    PROJECTS,
    WORD,
    Site,
    rows,
    set_role,
)
from tests.fakes.eventually import eventually
from tests.harness.keyed_suite import SUITE
from tests.harness.stack_harness import MODEL

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROTOS = Path(__file__).parents[3] / "protos" / "proctor" / "v1"
THINGS = ("job", "benchmark", "dataset", "file", "batch", "project", "schedule", "target")
OF_PROJECT = {f"{thing}_id" for thing in THINGS}
# No member, and a member by a key that is bound to another project.
OUTSIDERS = ("bob", "elsewhere")
# They end a session, or show themselves.
COOKIES = {"/sign-in", "/sign-out", "/theme"}


def addresses(site: Site, *, sockets: bool = False) -> Iterator[tuple[str, str, bool]]:
    """Method and address of each route, with ids of the project; whether the path names any."""
    run = site.ids["benchmark_id"]
    values = {
        **site.ids,
        "suite": f"{WORD}-suite",
        "task": "only",
        "version": "1",
        "row": "0",
        "sample": "0",
        "rollout": "0",
        "execution": "one",
        "name": "log",
        "order_id": run,
        "project_id": str(site.project_id),
        "form": "csv",
        "path": "nothing",
        "key_id": "0" * 16,
    }
    queries = {
        "/compare": f"?run={run}&run={site.ids['job_id']}",
        "/compare/export.{form}": f"?run={run}&run={site.ids['job_id']}",
        "/runs/chosen": f"?run={run}",
        "/leaderboard": f"?suite={SUITE}&project={site.project_id}",
        f"{API}/leaderboard": f"?suite={SUITE}&project_id={site.project_id}",
        "/admin/benchmarks/side-by-side": f"?ids={run},{site.ids['job_id']}",
        "/admin/benchmarks/golden/export": f"?ids={run}",
        "/search": f"?q={WORD}",
        "/suites": f"?q={WORD}",
    }
    for method, path in ROUTES:
        if route_permission(method, path) is Permission.PUBLIC or path in COOKIES:
            continue
        if path.endswith("/socket") is not sockets:
            continue
        names = re.findall(r"{(\w+)[:}]", path)
        if "model" in names:
            filled = re.sub(r"{model:path}", "openai/fake", path)
        else:
            filled = re.sub(r"{(\w+)(?::\w+)?}", lambda found: values[found[1]], path)
        yield method, filled + queries.get(path, ""), bool(OF_PROJECT & {*names})


async def test_who_is_no_member_finds_nothing_at_any_address(site: Site) -> None:
    seen_by_ann, faults = 0, []
    for method, address, is_named in addresses(site):
        body: dict[str, Any] = {} if method == "GET" else {"json": {}}
        if method == "GET":
            seen_by_ann += bool(site.shown((await site.text("ann", method, address))[1]))
        for key in OUTSIDERS:
            status, text = await site.text(key, method, address, **body)
            # An address that was asked for may be repeated.
            shown = [each for each in site.shown(text) if each not in address]
            # As where there is no such thing.
            expected = (
                (await site.text(key, method, site.unknown(address), **body))[0] if is_named else status
            )
            if shown or status != expected:
                faults.append((key, method, address, status, expected, shown))
    assert faults == []
    # What the same walk shows to a member.
    assert seen_by_ann > 30


async def test_a_log_that_is_read_by_a_suite_of_a_project_stays_in_it(site: Site) -> None:
    """Its prompts are those of the suite."""
    export = f"{API}/results/{site.ids['own_job']}/export?format=lm_eval&task=only"
    status, log = await site.text("ann", "GET", export)
    assert status == 200, log
    address = f"/api/v1/imports?name=samples_only.jsonl&task=only&suite={WORD}-suite&model=hf/other/model"
    headers = {"Content-Type": "application/jsonl"}
    # Who does not see the suite cannot use it.
    refused = await site.call("bob", "POST", address, data=log.encode(), headers=headers)
    assert refused.status in (400, 404, 422), refused.body
    elsewhere = await site.call("ann", "POST", f"{address}&project_id=7", data=log.encode(), headers=headers)
    assert (elsewhere.status, elsewhere.body["reason"]) == (422, "INVALID_PARAMETER"), elsewhere.body
    made = await site.call("ann", "POST", address, data=log.encode(), headers=headers)
    assert made.status == 201, made.body
    result = f"{API}/results/{made.body['job']['job_id']}"
    assert (await site.call("vic", "GET", result)).status == 200
    assert (await site.call("bob", "GET", result)).status == 404


async def test_who_is_no_member_is_pushed_nothing_beside_a_member_who_watches(site: Site) -> None:
    seen_by_ann, faults = 0, []
    for _, address, _ in addresses(site, sockets=True):
        of_ann, *of_others = await asyncio.gather(*(site.pushed(key, address) for key in ("ann", *OUTSIDERS)))
        seen_by_ann += bool(site.shown(of_ann))
        shown = [each for text in of_others for each in site.shown(text) if each not in address]
        if shown:
            faults.append((address, shown))
    assert faults == []
    assert seen_by_ann > 5


def public_methods() -> Iterator[MethodDescriptor]:
    for each in sorted(PROTOS.glob("*_service.proto")):
        file = import_module(f"proctor.v1.{each.stem}_pb2").DESCRIPTOR
        for service in file.services_by_name.values():
            yield from (method for method in service.methods if method.name in METHODS)


def request_of(method: MethodDescriptor, ids: Mapping[str, Sequence[str]], project_id: int) -> Message:
    """A request that names things of the project wherever it can."""
    request = GetMessageClass(method.input_type)()
    for each in method.input_type.fields:
        if each.name in ids and each.message_type is None:
            if each.is_repeated:
                getattr(request, each.name).extend(ids[each.name])
            else:
                setattr(request, each.name, ids[each.name][0])
        elif each.name == "project_id":
            setattr(request, each.name, project_id)
    return request


async def test_who_is_no_member_finds_nothing_by_any_method(site: Site) -> None:
    run, other = site.ids["benchmark_id"], site.ids["job_id"]
    ids = {
        "run_id": [run],
        "base_run_id": [other],
        "first_run_id": [run],
        "second_run_id": [other],
        "run_ids": [run, other],
        "dataset_id": [site.ids["dataset_id"]],
        "file_id": [site.ids["file_id"]],
        "input_file_id": [site.ids["file_id"]],
        "batch_id": [site.ids["batch_id"]],
        "suite": [f"{WORD}-suite"],
        "task": ["rows"],
        "object_id": [run],
    }
    seen_by_ann, faults = 0, []
    async with grpc.aio.insecure_channel(site.stack.stack.gateway_grpc) as channel:
        for method in public_methods():
            request = request_of(method, ids, site.project_id)
            if METHODS[method.name] is Permission.READ:
                answer = await called(channel, method, request, site.keys["ann"])
                seen_by_ann += bool(site.shown(answer.decode(errors="replace")))
            named = request.SerializeToString().decode(errors="replace")
            for key in OUTSIDERS:
                answer = await called(channel, method, request, site.keys[key])
                shown = [each for each in site.shown(answer.decode(errors="replace")) if each not in named]
                if shown:
                    faults.append((key, method.name, shown))
    assert faults == []
    assert seen_by_ann > 15


async def called(channel: grpc.aio.Channel, method: MethodDescriptor, request: Message, key: str) -> bytes:
    """What it answers, or its error; of a stream the first message."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    metadata = (("x-api-key", key),)
    content = request.SerializeToString()
    try:
        if method.client_streaming:
            upload: Any = channel.stream_unary(path)
            return bytes(await upload(iter([content]), metadata=metadata, timeout=10))
        if method.server_streaming:
            watch: Any = channel.unary_stream(path)
            stream = watch(content, metadata=metadata, timeout=10)
            first = await stream.read()
            stream.cancel()
            return b"" if first is grpc.aio.EOF else bytes(first)
        call: Any = channel.unary_unary(path)
        return bytes(await call(content, metadata=metadata, timeout=10))
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.INTERNAL:
            pytest.fail(f"{method.name}: {error.details()}")
        return (error.details() or "").encode()


async def test_nobody_but_members_with_the_role_store_anything(site: Site) -> None:
    config = {"provider": "openai", "model": "fake"}
    upload = f"/admin/datasets/upload?project_id={site.project_id}"
    order = {"project_id": site.project_id, "suite": SUITE, "config": config}
    for user in ("bob", "vic"):
        for answer in (
            await site.call(user, "POST", f"{API}/run", json=order),
            await site.call(user, "POST", upload, data=rows()),
            await site.call(
                user, "POST", "/v1/files", data=rows(purpose="batch", project_id=str(site.project_id))
            ),
            # Contents that are known are not stored again.
            await site.call(user, "POST", f"/api/v1/suites?project_id={site.project_id}", json=OWN_SUITE),
            await site.call(user, "POST", f"/api/v1/imports?name=a&project_id={site.project_id}", data=b"{}"),
        ):
            assert (answer.status, answer.body.get("reason", "PROJECT_NOT_FOUND")) == (
                404,
                "PROJECT_NOT_FOUND",
            ), (user, answer.body)
    run = site.ids["benchmark_id"]
    marks = {"answers": [{"sample": 1, "rollout": 0}]}
    assert (await site.call("vic", "PUT", f"/admin/benchmarks/{run}/golden", json=marks)).status == 404
    assert (await site.call("vic", "DELETE", f"/admin/benchmarks/{run}")).status == 404
    assert (await site.call("vic", "GET", f"/admin/benchmarks/{run}")).status == 200
    # A number that no project has.
    nowhere = {**order, "project_id": site.project_id + 1000}
    assert (await site.call("olga", "POST", f"{API}/run", json=nowhere)).status == 404


async def test_what_others_delete_takes_nothing_away_from_a_project(site: Site) -> None:
    path, content = "/admin/datasets/", site.ids["dataset_id"]
    before = await site.call("ann", "GET", f"{path}{content}/preview")
    # The same contents.
    copy = (await site.call("bob", "POST", f"{path}upload", data=rows())).body["dataset_id"]
    assert (await site.call("bob", "DELETE", path + copy)).status == 200
    after = await site.call("ann", "GET", f"{path}{content}/preview")
    assert (after.status, after.body) == (200, before.body)


async def test_who_is_removed_sees_nothing_any_more_and_open_calls_end(site: Site) -> None:
    await set_role(site, "bob", "viewer")
    run = f"{API}/results/{site.ids['job_id']}"
    assert (await site.call("bob", "GET", run)).status == 200
    members = f"{PROJECTS}/{site.project_id}/members"
    assert (await site.call("ann", "DELETE", f"{members}?user=bob")).status == 404
    socket = f"ws://{site.stack.stack.gateway_http}/runs/{site.ids['job_id']}/socket"
    async with aiohttp.ClientSession() as session:
        opened = await session.ws_connect(
            socket, headers={"X-API-Key": KEYS["bob"], "Origin": f"http://{site.stack.stack.gateway_http}"}
        )
        assert (await site.call("olga", "DELETE", f"{members}?user=bob")).status == 204

        async def is_hidden() -> bool:
            return (await site.call("bob", "GET", run)).status == 404

        await eventually(is_hidden, "the run is hidden", 10)
        with suppress(TimeoutError):
            while not opened.closed:
                await opened.receive(timeout=10)
        assert opened.closed


async def test_the_command_line_declares_projects_and_shows_members(site: Site) -> None:
    def line(user: str) -> dict[str, str]:
        return {"PROCTOR_GATEWAY": site.stack.stack.gateway_grpc, "PROCTOR_API_KEY": KEYS[user]}

    made = await proctor_with(line("olga"), "projects create 'other plans' --note later")
    number = re.search(r"number ([0-9]+)", made.out)
    assert number, made
    told = await proctor_with(line("olga"), f"projects set-member {number[1]} ann --role maintainer")
    assert "ann is a maintainer" in told.out, told

    async def is_listed() -> bool:
        return "other plans" in (await proctor_with(line("ann"), "projects list")).out

    await eventually(is_listed, "the gateway knows the member", 60)
    limits = "--max-open-runs 3 --max-cost 50"
    changed = await proctor_with(line("olga"), f"projects update 'other plans' {limits}")
    assert "Project other plans is changed" in changed.out, changed
    renamed = await proctor_with(line("ann"), "projects update 'other plans' --name 'new plans' --note now")
    assert "Project new plans is changed" in renamed.out, renamed
    shown = await proctor_with(line("ann"), "projects show 'new plans'")
    assert "maintainer" in shown.out
    assert "Open runs: 0 of at most 3" in shown.out
    assert "Cost: 0 of at most 50, this month 0" in shown.out
    refused = await proctor_with(line("ann"), "projects update 'new plans' --max-cost 0")
    assert refused.code != 0
    assert "other plans" not in (await proctor_with(line("bob"), "projects list")).out
    refused = await proctor_with(line("ann"), "projects create more")
    assert refused.code != 0


async def test_a_shared_project_is_read_by_everybody_and_changed_by_its_members(site: Site) -> None:
    path, run = f"{PROJECTS}/{site.project_id}", f"{API}/results/{site.ids['job_id']}"
    assert (await site.call("ann", "PATCH", path, json={"is_shared": True})).status == 404
    assert (await site.call("olga", "PATCH", path, json={"is_shared": True})).body["is_shared"]

    async def is_read() -> bool:
        return (await site.call("bob", "GET", run)).status == 200

    await eventually(is_read, "bob reads a run of the shared project", 10)
    listed = (await site.call("bob", "GET", PROJECTS)).body["projects"]
    assert [(each["name"], each["role"]) for each in listed] == [(NAME, "viewer")]
    order = {"project_id": site.project_id, "suite": SUITE, "config": {"provider": "openai", "model": "fake"}}
    assert (await site.call("bob", "POST", f"{API}/run", json=order)).status == 404
    assert (await site.call("bob", "DELETE", f"/admin/benchmarks/{site.ids['benchmark_id']}")).status == 404
    # Its members keep their own roles.
    assert (await site.call("ann", "GET", path)).body["role"] == "runner"
    assert (await site.call("olga", "PATCH", path, json={"is_shared": False})).status == 200

    async def is_hidden() -> bool:
        return (await site.call("bob", "GET", run)).status == 404

    await eventually(is_hidden, "it is hidden again", 10)


async def test_pages_show_projects_and_offer_what_the_role_allows(site: Site) -> None:
    page = f"/settings/projects/{site.project_id}"
    status, listed = await site.text("ann", "GET", "/settings/projects")
    assert (status, f'href="{page}"' in listed, "Declare the project" in listed) == (200, True, False)
    assert NAME not in (await site.text("bob", "GET", "/settings/projects"))[1]
    _, of_ann = await site.text("ann", "GET", page)
    assert (">vic<" in of_ann, "Give the role" in of_ann, "Change the project" in of_ann) == (
        True,
        False,
        False,
    )
    _, of_olga = await site.text("olga", "GET", page)
    assert "Budget a month" in of_olga

    own = {"Origin": f"http://{site.stack.stack.gateway_http}"}

    async def post(by: str, path: str, **form: str) -> tuple[int, str]:
        return await site.text(by, "POST", page + path, data=form, headers=own)

    assert (await post("olga", "/members", user="mia", role="maintainer"))[0] == 303
    assert (await post("ann", "/members", user="bob"))[0] == 404
    assert "Remove the member" in (await site.text("olga", "GET", f"{page}?ask=mia"))[1]
    limits = {"has_limits": "yes", "max_open_runs": "", "max_cost": "12.5", "max_cost_per_month": ""}
    assert (await post("olga", "", name=NAME, note="kept", **limits))[0] == 303
    _, changed = await site.text("ann", "GET", page)
    assert "of at most 12.5" in changed
    status, refused = await post("olga", "", name=NAME, max_cost="-1", note="another")
    assert (status, "More than 0." in refused, 'value="another"' in refused) == (422, True, True)
    assert (await post("olga", "", **{**limits, "max_cost": ""}))[0] == 303
    assert "of at most" not in (await site.text("ann", "GET", page))[1]
    assert (await post("olga", "/members/remove?user=mia"))[0] == 303
    assert ">mia<" not in (await site.text("ann", "GET", page))[1]
    status, made = await site.text("olga", "POST", "/settings/projects", data={"name": NAME}, headers=own)
    assert (status, "Another project has the name" in made) == (422, True)


async def test_commands_order_in_the_project_of_the_environment(site: Site) -> None:
    environment = {
        "PROCTOR_GATEWAY": site.stack.stack.gateway_grpc,
        "PROCTOR_API_KEY": KEYS["ann"],
        "PROCTOR_PROJECT": str(site.project_id),
    }
    ordered = await proctor_with(environment, f"run --suite {SUITE} --model {MODEL} --limit 1 --json")
    assert ordered.code == 0, ordered
    run_id = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", ordered.out)[0]
    assert (await site.call("vic", "GET", f"{API}/results/{run_id}")).status == 200
    assert (await site.call("bob", "GET", f"{API}/results/{run_id}")).status == 404
