"""Pages offer changes only to those who may make them: owners and operators."""

from collections.abc import AsyncIterator

import pytest

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import run_pb2
from tests.contract.gateway.pages.shown_pages import RUN_ID, Shown, running, show, summary_of
from tests.fakes.gateway.dataset_runs import DATASET
from tests.fakes.gateway.dataset_service import stored_dataset
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import session_cookie

KEYS = {"alice": "secret-key-of-alice", "bob": "secret-key-of-bob", "olga": "secret-key-of-olga"}
BATCH = f"batch_{0:032x}"


@pytest.fixture
async def keyed() -> AsyncIterator[GatewayHarness]:
    """Everything belongs to alice; olga is an operator."""
    async with gateway_harness(api_keys=KEYS, operators=["olga"]) as harness:
        run = running()
        run.user = "alice"
        harness.scheduler.put(run)
        harness.results.summaries[RUN_ID] = summary_of(run)
        dataset = stored_dataset(DATASET, name="rows.jsonl", user="alice")
        harness.scheduler.datasets.kept[DATASET] = dataset
        harness.scheduler.datasets.rows[DATASET] = []
        batch = batch_pb2.Batch(batch_id=BATCH, user="alice", state=batch_pb2.BATCH_STATE_IN_PROGRESS)
        harness.scheduler.batches.kept[BATCH] = batch
        harness.scheduler.files.put("in.jsonl", b"x", file_pb2.FILE_PURPOSE_BATCH).user = "alice"
        yield harness


async def as_user(harness: GatewayHarness, user: str, path: str) -> Shown:
    shown = await show(harness, path, headers={"Cookie": await session_cookie(harness, KEYS[user])})
    assert shown.status == 200
    return shown


@pytest.mark.parametrize(("user", "is_offered"), [("alice", True), ("bob", False), ("olga", True)])
async def test_run_and_batch_offer_their_changes(
    keyed: GatewayHarness, user: str, *, is_offered: bool
) -> None:
    for path in (f"/runs/{RUN_ID}", f"/runs/{RUN_ID}?every=5", f"/batches/{BATCH}"):
        shown = await as_user(keyed, user, path)
        # Pushed fragments are the same for all; the style sheet hides what is not theirs.
        assert ('class="readonly"' not in shown.html) is is_offered
        assert ('<dialog id="ask-cancel"' in shown.html) is is_offered


async def test_figures_that_are_missing_are_computed_by_operators(keyed: GatewayHarness) -> None:
    keyed.scheduler.runs[RUN_ID].state = run_pb2.RUN_STATE_COMPLETED
    button = f'action="/runs/{RUN_ID}/reclose"'
    assert button not in (await as_user(keyed, "olga", f"/runs/{RUN_ID}")).html, "nothing is missing"
    keyed.results.summaries[RUN_ID].problems.append("Figures were not computed: it failed 3 times.")
    assert button not in (await as_user(keyed, "alice", f"/runs/{RUN_ID}")).html
    assert button in (await as_user(keyed, "olga", f"/runs/{RUN_ID}")).html
    headers = {"Cookie": await session_cookie(keyed, KEYS["olga"]), "Origin": keyed.http}
    done = await show(keyed, f"/runs/{RUN_ID}/reclose", method="POST", headers=headers)
    assert (done.headers["Location"], keyed.results.reclosed) == (f"/runs/{RUN_ID}", [RUN_ID])


@pytest.mark.parametrize(("user", "is_offered"), [("alice", True), ("bob", False), ("olga", True)])
async def test_data_set_and_file_offer_their_deletion(
    keyed: GatewayHarness, user: str, *, is_offered: bool
) -> None:
    assert ("ask=delete" in (await as_user(keyed, user, f"/datasets/{DATASET}")).html) is is_offered
    assert (">Delete</a>" in (await as_user(keyed, user, "/batches/files")).html) is is_offered
    [file_id] = keyed.scheduler.files.kept
    asking = await as_user(keyed, user, f"/batches/files?ask={file_id}")
    assert ('<dialog id="ask-delete"' in asking.html) is is_offered


@pytest.mark.parametrize(("user", "is_offered"), [("alice", True), ("bob", False), ("olga", True)])
async def test_suite_has_its_owner_and_offers_its_deletion(
    keyed: GatewayHarness, user: str, *, is_offered: bool
) -> None:
    shown = await as_user(keyed, user, "/suites/mine?ask=delete")
    assert "version 2, added by alice" in shown.html
    assert ('<dialog id="ask-delete"' in shown.html) is is_offered
    assert "alice" in (await as_user(keyed, user, "/suites")).html
    assert "ask=delete" not in (await as_user(keyed, user, "/suites/starter")).html


@pytest.mark.parametrize(("user", "is_offered"), [("alice", False), ("olga", True)])
async def test_operators_alone_are_offered_the_limits(
    keyed: GatewayHarness, user: str, *, is_offered: bool
) -> None:
    shown = await as_user(keyed, user, "/queue")
    assert ("Change the limits" in shown.html) is is_offered
    assert any(tag == "fieldset" and "disabled" in a for tag, a in shown.elements) is not is_offered


@pytest.mark.parametrize("user", ["alice", "olga"])
async def test_settings_list_members_and_never_their_keys(keyed: GatewayHarness, user: str) -> None:
    shown = await as_user(keyed, user, "/settings")
    assert [name for name in KEYS if f'<th scope="row">{name}' in shown.html] == sorted(KEYS)
    assert shown.html.count("an operator</td>") == 1
    assert f'{user} <span class="muted">you</span>' in shown.html
    assert not [key for key in KEYS.values() if key in shown.html]


async def test_without_keys_settings_say_that_all_callers_are_operators(harness: GatewayHarness) -> None:
    shown = await show(harness, "/settings")
    assert "no users are listed" in shown.html


@pytest.mark.parametrize(
    ("has_key", "shown"),
    [
        (True, '<span class="outcome right">set</span> <span class="muted">never shown</span>'),
        (False, "no key: set <code>MY_GEMINI_KEY</code>"),
        (None, '<span class="muted">not known now</span> <code>MY_GEMINI_KEY</code>'),
    ],
)
async def test_settings_say_which_keys_are_set(
    harness: GatewayHarness, *, has_key: bool | None, shown: str
) -> None:
    harness.scheduler.has_gemini_key = has_key
    rows = (await show(harness, "/settings")).html.split("<tr>")
    [gemini] = [row for row in rows if 'Provider">gemini</td>' in row]
    assert shown in gemini
    # A known provider without a pool is listed too.
    [grok] = [row for row in rows if 'Provider">grok</td>' in row]
    assert "no pool" in grok
    assert "no key: set <code>GROK_API_KEY or XAI_API_KEY</code>" in grok
