"""A target by the command line, over REST and on its page; the end of a run reaches it, signed."""

import json
import re

import aiohttp
import pytest

from proctor.v1 import run_pb2
from services.gateway.http.paths import NOTICE_TARGETS, NOTICES
from tests.e2e.harness.entry_points import http, proctor
from tests.e2e.harness.run_ends import ended
from tests.fakes.eventually import eventually
from tests.fakes.notices.receivers import http_receiver, is_signed
from tests.harness.keyed_suite import SUITE
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_end_of_a_run_reaches_a_webhook(stack: StackHarness) -> None:
    async with http_receiver() as receiver:
        added = await proctor(stack, f"notices add webhook {receiver.url} --on run_ended --json")
        assert added.code == 0, added
        target = json.loads(added.out)
        secret, target_id = target["secret"], target["target"]["target_id"]
        assert receiver.url not in added.out.replace(secret, "")
        run = await ended(stack, await stack.submit(run_pb2.RunOrder(suite=SUITE, model=MODEL, limit=2)))

        def mine() -> list[int]:
            return [at for at, body in enumerate(receiver.bodies) if run.run_id.encode() in body]

        async def is_told() -> bool:
            return bool(mine())

        await eventually(is_told, "the end of the run is told", 30)
        [at] = mine()
        assert is_signed(secret, receiver.headers[at], receiver.bodies[at])
        told = json.loads(receiver.bodies[at])
        assert told["data"]["state"] == "completed"

        async def is_noted() -> bool:
            listed = (await http(stack, "GET", f"{NOTICES}?target_id={target_id}")).body["notices"]
            return [
                each["delivered_at"] is not None for each in listed if each["notice_id"] == told["id"]
            ] == [True]

        await eventually(is_noted, "the notice is stored as delivered", 30)
        [listed] = (await http(stack, "GET", NOTICE_TARGETS)).body["targets"]
        assert (listed["target_id"], listed["events"], listed["scope"]) == (target_id, ["run_ended"], "own")
        assert target_id in (await proctor(stack, "notices list")).out.replace("\n", "")
        shown = await page(stack)
        assert target_id in shown
        assert receiver.url not in shown
        assert "completed" in (await proctor(stack, "notices sent")).out
        assert (await proctor(stack, f"notices delete {target_id}")).code == 0
        assert (await http(stack, "GET", NOTICE_TARGETS)).body["targets"] == []


async def page(stack: StackHarness) -> str:
    url = f"http://{stack.stack.gateway_http}/settings/notices"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.text()


async def test_page_adds_a_target_and_shows_its_key_once(stack: StackHarness) -> None:
    site = f"http://{stack.stack.gateway_http}"
    form = {"channel": "webhook", "address": "https://example.org/x", "events": "run_failed", "scope": "own"}
    async with aiohttp.ClientSession(headers={"Origin": site}) as session:
        async with session.post(f"{site}/settings/notices", data=form) as answer:
            html = await answer.text()
            assert answer.status == 201, html
        [secret] = re.findall(r"whsec_[\w+/=]+", html)
        assert secret not in await page(stack)
        wrong = {**form, "address": "nothing"}
        async with session.post(f"{site}/settings/notices", data=wrong) as answer:
            assert answer.status == 422
            assert 'id="fault-address"' in await answer.text()
        [target_id] = re.findall(r"/settings/notices/([0-9a-f-]{36})/test", await page(stack))
        async with session.post(f"{site}/settings/notices/{target_id}/delete") as answer:
            assert answer.status == 200
    assert "No target yet." in await page(stack)


@pytest.mark.parametrize(
    "body",
    [
        {"channel": "email", "address": "ann@example.org", "events": ["run_ended"]},
        {"channel": "webhook", "address": "https://example.org", "events": []},
        {"channel": "pigeon", "address": "https://example.org", "events": ["run_ended"]},
    ],
)
async def test_target_that_cannot_be_is_refused(stack: StackHarness, body: dict[str, object]) -> None:
    refused = await http(stack, "POST", NOTICE_TARGETS, json=body)
    assert refused.status == 422, refused.body
