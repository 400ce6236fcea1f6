"""Addresses of pages: what renews itself is not a step back, and what was chosen or entered is not lost."""

from urllib.parse import quote, urlencode

import pytest

from proctor.v1 import run_pb2
from services.common.errors import ErrorKind
from tests.contract.gateway.pages.shown_pages import RUN_ID, Shown, running, show, summary_of
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import session_cookie
from tests.fakes.refusals import refused

PART = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture(autouse=True)
def run(harness: GatewayHarness) -> run_pb2.Run:
    run = running()
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    return run


def hidden(shown: Shown, name: str) -> list[str | None]:
    return [a.get("value") for tag, a in shown.elements if tag == "input" and a.get("name") == name]


def checked(shown: Shown) -> list[str | None]:
    return [a.get("value") for tag, a in shown.elements if tag == "input" and "checked" in a]


async def test_runs_that_are_renewed_are_no_step_back(harness: GatewayHarness) -> None:
    here = PART | {"HX-Current-URL": f"{harness.http}/runs?state=running"}
    assert "HX-Push-Url" not in (await show(harness, "/runs?state=running", headers=here)).headers
    assert (await show(harness, "/runs", headers=here)).headers["HX-Push-Url"] == "/runs"


async def test_the_page_of_a_script_may_be_any_text(harness: GatewayHarness) -> None:
    shown = await show(harness, "/runs?state=running", headers=PART | {"HX-Current-URL": "http://["})
    assert shown.status == 200


async def test_a_run_that_is_renewed_by_requests_loads_its_figures_at_the_end(
    harness: GatewayHarness, run: run_pb2.Run
) -> None:
    path = f"/runs/{RUN_ID}?every=1"
    assert 'hx-trigger="load"' not in (await show(harness, path, headers=PART)).html
    run.state = run_pb2.RUN_STATE_COMPLETED
    harness.scheduler.put(run)
    assert 'hx-trigger="load" hx-target="#main"' in (await show(harness, path, headers=PART)).html
    assert 'hx-trigger="load"' not in (await show(harness, path)).html


async def test_the_theme_is_changed_on_the_page_with_its_filters(harness: GatewayHarness) -> None:
    shown = await show(harness, "/runs?suite=glue&tag=x")
    assert hidden(shown, "back") == ["/runs?suite=glue&tag=x"]
    form = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    own = form | {"Referer": f"{harness.http}/queue?x=1"}
    posted = await show(harness, "/queue/limits", method="POST", headers=own, body="max_running_runs=x")
    assert (posted.status, hidden(posted, "back")) == (422, ["/queue?x=1"])
    other = form | {"Referer": "http://evil.example/queue"}
    posted = await show(harness, "/queue/limits", method="POST", headers=other, body="max_running_runs=x")
    assert hidden(posted, "back") == ["/"]


@pytest.mark.parametrize(
    ("referer", "followed"),
    [
        # A filter has changed the address since the page was loaded.
        ("{own}/runs?state=failed", "/runs?state=failed"),
        # A page that answers a form has the address of the form.
        ("{own}/queue/limits", "/runs?suite=glue"),
        ("http://evil.example/runs?state=failed", "/runs?suite=glue"),
        ("http://[", "/runs?suite=glue"),
        ("", "/runs?suite=glue"),
    ],
)
async def test_the_theme_leads_back_to_the_address_as_it_is_now(
    harness: GatewayHarness, referer: str, followed: str
) -> None:
    headers = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    headers["Referer"] = referer.format(own=harness.http)
    body = urlencode({"theme": "dark", "back": "/runs?suite=glue"})
    done = await show(harness, "/theme", method="POST", headers=headers, body=body)
    assert (done.status, done.headers["Location"]) == (303, followed)


async def test_an_address_that_is_none_is_not_followed(harness: GatewayHarness) -> None:
    own = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode({"theme": "dark", "back": "http://[evil"})
    done = await show(harness, "/theme", method="POST", headers=own, body=body)
    assert (done.status, done.headers["Location"]) == (303, "/")
    assert (await show(harness, f"/sign-in?next={quote('http://[' + 5000 * 'x')}")).status == 200


@pytest.mark.parametrize("length", [3000, 4500])
async def test_long_addresses_are_carried_by_the_forms_of_a_page(length: int) -> None:
    custom = quote('{"type":"/"}' * (length // 24), safe=":/")
    address = f"/runs/new?custom={custom}"
    expected = address if len(address) <= 4000 else "/runs/new"
    async with gateway_harness(api_keys={"alice": "secret-key-of-alice"}) as keyed:
        own = {"Origin": keyed.http, "Content-Type": "application/x-www-form-urlencoded"}
        asked = await show(keyed, f"/sign-in?next={quote(address)}")
        assert hidden(asked, "next") == [expected]
        body = urlencode({"key": "secret-key-of-alice", "next": expected})
        done = await show(keyed, "/sign-in", method="POST", headers=own, body=body)
        assert (done.status, done.headers["Location"]) == (303, expected)
        cookie = await session_cookie(keyed, "secret-key-of-alice")
        page = await show(keyed, address, headers={"Cookie": cookie})
        assert hidden(page, "back") == [expected]
        body = urlencode({"theme": "dark", "back": expected})
        done = await show(keyed, "/theme", method="POST", headers=own, body=body)
        assert (done.status, done.headers["Location"]) == (303, expected)


async def test_an_error_leads_back_to_the_whole_address(harness: GatewayHarness) -> None:
    harness.scheduler.refusal = refused(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "Away.")
    shown = await show(harness, "/runs?state=failed")
    [again] = [a["href"] for tag, a in shown.elements if tag == "a" and a.get("class") == "button"]
    assert (shown.status, again) == (503, "/runs?state=failed")


async def test_signing_in_leads_to_the_page_that_was_asked_for() -> None:
    async with gateway_harness(api_keys={"alice": "secret-key-of-alice"}) as keyed:
        refusal = await show(keyed, "/runs?state=failed")
        assert "/sign-in?next=/runs%3Fstate%3Dfailed" in refusal.html
        asked = await show(keyed, "/sign-in?next=/runs%3Fstate%3Dfailed")
        assert hidden(asked, "next") == ["/runs?state=failed"]
        own = {"Origin": keyed.http, "Content-Type": "application/x-www-form-urlencoded"}
        for given, followed in (("/runs%3Fstate%3Dfailed", "/runs?state=failed"), ("//evil.example", "/")):
            body = f"key=secret-key-of-alice&next={given}"
            done = await show(keyed, "/sign-in", method="POST", headers=own, body=body)
            assert (done.status, done.headers["Location"]) == (303, followed)


async def test_an_order_is_in_the_address_after_every_change(harness: GatewayHarness) -> None:
    whole = {"HX-Request": "true", "HX-Request-Type": "full", "HX-Target": "section#estimate"}
    shown = await show(harness, "/runs/new?model=vllm/starter&limit=7", headers=whole)
    assert shown.headers["HX-Replace-Url"] == "/runs/new?model=vllm%2Fstarter&limit=7"


async def test_what_is_chosen_for_a_comparison_stays_chosen_on_every_page(harness: GatewayHarness) -> None:
    page = harness.results.entries.page
    page.entries.add(run_id=f"{RUN_ID[:-1]}7", model="vllm/a", benchmark="glue")
    page.next_page_token = "older"
    shown = await show(harness, f"/compare?run={RUN_ID}&q=vllm/a&choose=token")
    # The run is not among those of this page.
    assert checked(shown) == [RUN_ID]
    asked = harness.results.entries.pages_asked[-1]
    assert (asked.model, asked.page_token) == ("vllm/a", "token")
    assert 'name="choose" value="older"' in shown.html
    # A filter of the selection is not a comparison, however many are chosen.
    choosing = PART | {"HX-Target": "form#selection"}
    other = f"{RUN_ID[:-1]}7"
    part = await show(harness, f"/compare?run={RUN_ID}&run={other}&suite=glue", headers=choosing)
    assert (part.status, '<form id="selection"' in part.html) == (200, True)


async def test_the_filters_of_the_overview_go_with_its_part_and_its_files(harness: GatewayHarness) -> None:
    shown = await show(harness, "/?suite=glue&metric=f1&days=7", headers=PART)
    links = [a.get("href") for tag, a in shown.elements if tag == "a"]
    assert "/export.parquet?suite=glue&metric=f1&days=7" in links
    selected = [a.get("value") for tag, a in shown.elements if tag == "option" and "selected" in a]
    assert len(selected) == 2
    assert ">f1</option>" in shown.html


async def test_a_limit_that_was_not_changed_is_not_set(harness: GatewayHarness) -> None:
    form = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    path = "/queue/limits"
    body = "max_running_runs=3&was_max_running_runs=3&min_run_time_seconds=9&was_min_run_time_seconds=60"
    done = await show(harness, path, method="POST", headers=form, body=body)
    assert done.status == 303
    [asked] = harness.scheduler.queue.changes
    assert not asked.limits.max_running_runs
    assert asked.limits.min_run_time.seconds == 9
    unchanged = await show(
        harness, path, method="POST", headers=form, body="max_running_runs=3&was_max_running_runs=3"
    )
    assert (unchanged.status, len(harness.scheduler.queue.changes)) == (303, 1)


@pytest.mark.parametrize(("entered", "reset"), [("0", []), ("", ["max_stored_bytes_per_project"])])
async def test_no_limit_is_entered_as_0_and_the_setting_as_nothing(
    harness: GatewayHarness, entered: str, reset: list[str]
) -> None:
    form = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    name = "max_stored_bytes_per_project"
    body = f"{name}={entered}&was_{name}=9"
    assert (await show(harness, "/queue/limits", method="POST", headers=form, body=body)).status == 303
    [asked] = harness.scheduler.queue.changes
    assert (asked.limits.HasField("max_stored_bytes_per_project"), list(asked.reset)) == (not reset, reset)


async def test_undo_of_a_limit_can_be_undone(harness: GatewayHarness) -> None:
    queue = harness.scheduler.queue
    # What the form was filled with is older than what holds: it was changed meanwhile.
    queue.queue.limits.max_running_runs = 8
    own = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    path, body = "/queue/limits", "max_running_runs=16&was_max_running_runs=6"
    for value, undone in ((16, 8), (8, 16), (16, 8)):
        done = await show(harness, path, method="POST", headers=own, body=body)
        assert done.status == 303
        assert queue.changes[-1].limits.max_running_runs == value
        queue.queue.limits.max_running_runs = value
        page = await show(harness, "/queue", headers={"Cookie": notice_of(done)})
        [path] = [a["action"] or "" for tag, a in page.elements if tag == "form" and "limits?" in str(a)]
        assert path == f"/queue/limits?max_running_runs={undone}"
        body = ""


def notice_of(done: Shown) -> str:
    return done.headers["Set-Cookie"].partition(";")[0]


@pytest.mark.parametrize("tasks", [1, 3])
async def test_ended_run_offers_a_file_of_lm_eval_for_each_task(harness: GatewayHarness, tasks: int) -> None:
    run = running(tasks)
    run.state = run_pb2.RUN_STATE_COMPLETED
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    file = f"/api/v1/benchmarking/results/{RUN_ID}/export?format=lm_eval&task="
    offered = [
        str(a.get("href")) for tag, a in (await show(harness, f"/runs/{RUN_ID}")).elements if tag == "a"
    ]
    assert [each for each in offered if "lm_eval" in each] == [
        f"{file}task_{index}" for index in range(tasks)
    ]
    # Rows of a data set are not a task of lm-eval.
    run.order.dataset_id = "ds_0123456789abcdef"
    harness.scheduler.put(run)
    assert "lm_eval" not in (await show(harness, f"/runs/{RUN_ID}")).html
