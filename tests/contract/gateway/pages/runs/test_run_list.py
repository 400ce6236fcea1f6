"""The list of runs: figures, columns, what differs, files of it, and several runs at once."""

import csv
import io
import json
import re
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from proctor.v1 import leaderboard_pb2, rollout_pb2, run_pb2
from services.common.errors import ErrorKind
from services.scheduler.audit.audit_record import Outcome
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, Shown, running, show
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused

OTHER_ID = f"{RUN_ID[:-1]}2"
ALL_COLUMNS = "benchmark.state.score.differs.limit.failed.unparsed.duration.cost.user.created.project.note.id"


@pytest.fixture(autouse=True)
def kept(harness: GatewayHarness) -> None:
    """A closed run with a figure, and one that runs at another temperature."""
    closed, going = running(), running()
    closed.state = run_pb2.RUN_STATE_COMPLETED
    closed.order.params.temperature, closed.order.limit = 0.0, 50
    closed.started_at.FromSeconds(1_700_000_000)
    closed.finished_at.FromSeconds(1_700_000_090)
    going.run_id, going.order.params.temperature = OTHER_ID, 0.7
    going.labels.name, going.labels.note = HOSTILE, HOSTILE
    going.labels.tags.append("nightly")
    harness.scheduler.put(closed)
    harness.scheduler.put(going)
    entry = leaderboard_pb2.LeaderboardEntry(run_id=RUN_ID, model="vllm/a", unparsed_rate=0.25, answered=400)
    entry.figure.metric, entry.figure.mean, entry.figure.n = "acc", 0.823, 1000
    entry.figure.ci_low, entry.figure.ci_high, entry.figure.interval_method = 0.8, 0.846, "wilson"
    harness.results.entries.page.entries.append(entry)


def heads(shown: Shown) -> list[str]:
    """Labels of the cells of the first row."""
    labels = [str(a["data-label"]) for tag, a in shown.elements if tag == "td" and "data-label" in a]
    return list(dict.fromkeys(labels))


def form(harness: GatewayHarness) -> dict[str, Any]:
    headers = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    return {"method": "POST", "headers": headers}


async def test_a_run_of_the_tasks_own_solutions_is_not_shown_as_a_models(harness: GatewayHarness) -> None:
    check = running()
    check.run_id, check.order.agent_kind = f"{RUN_ID[:-1]}3", rollout_pb2.AGENT_KIND_ORACLE
    check.order.model = "openai/good-model"
    harness.scheduler.put(check)
    for path in ("/runs", "/"):
        shown = await show(harness, path)
        assert "the tasks&#39; own solutions" in shown.html, path
        assert "good-model" not in shown.html, path
    shown = await show(harness, f"/runs/{check.run_id}")
    assert "<title>the tasks&#39; own solutions on glue" in shown.html
    url = f"{harness.http}/api/v1/benchmarking/results"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        listed = await response.text()
    assert '"model_name":"the tasks\' own solutions"' in listed
    assert "good-model" not in listed
    # The model led to its workers, so it is in the command that repeats the run, and nowhere is it linked to.
    assert not [a["href"] for tag, a in shown.elements if tag == "a" and "/models/" in (a.get("href") or "")]


async def test_runs_have_their_figures_and_what_they_differ_in(harness: GatewayHarness) -> None:
    shown = await show(harness, "/runs?metric=acc")
    assert 'title="95 % interval by wilson, n = 1\u2009000"' in shown.html
    assert "25.0 %" in shown.html
    assert ">temperature</span> 0.7" in shown.html
    assert re.search(r">temperature</span> 0\s*[,<]", shown.html)
    [asked] = harness.results.entries.closed_asked
    assert ({*asked.run_ids}, asked.metric) == ({RUN_ID, OTHER_ID}, "acc")
    assert "img" not in [tag for tag, _ in shown.elements]


async def test_limits_that_differ_are_shown_once(harness: GatewayHarness) -> None:
    hidden = (await show(harness, "/runs")).html
    assert re.search(r">limit rows per task</span> 50\s*[,<]", hidden)
    shown = (await show(harness, f"/runs?columns={ALL_COLUMNS}")).html
    assert ">limit rows per task</span>" not in shown


async def test_one_run_differs_in_nothing(harness: GatewayHarness) -> None:
    del harness.scheduler.runs[OTHER_ID]
    assert ">temperature</span>" not in (await show(harness, "/runs")).html


async def test_runs_are_listed_while_figures_cannot_be_read(harness: GatewayHarness) -> None:
    harness.results.entries.refusal = refused(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "It is away.")
    shown = await show(harness, "/runs")
    assert (shown.status, "Figures cannot be read now" in shown.html) == (200, True)
    assert f'href="/runs/{RUN_ID}"' in shown.html
    assert (await show(harness, "/runs/export.csv")).status == 503


async def test_columns_of_the_form_are_remembered_and_those_of_an_address_are_not(
    harness: GatewayHarness,
) -> None:
    assert heads(await show(harness, "/runs")) == [
        *(
            "Benchmark",
            "State",
            "Score",
            "Differs in",
            "Failed",
            "Unparsed",
            "Took",
            "Cost",
            "User",
            "Created",
        )
    ]
    chosen = await show(harness, "/runs?column=id&column=score&column=none")
    assert heads(chosen) == ["Score", "Id"]
    [cookie] = chosen.headers.getall("Set-Cookie")
    assert cookie.startswith("run_columns=score.id;")
    remembered = {"Cookie": cookie.partition(";")[0]}
    again = await show(harness, "/runs?tag=x", headers=remembered)
    assert heads(again) == ["Score", "Id"]
    assert "/runs/socket?tag=x&amp;columns=score.id" in again.html
    sent = await show(harness, f"/runs?columns={ALL_COLUMNS}", headers=remembered)
    assert (len(heads(sent)), "Set-Cookie" in sent.headers) == (14, False)


async def test_share_of_completed_runs_is_said_on_the_first_page(harness: GatewayHarness) -> None:
    harness.scheduler.completed = 1
    assert "50 % completed" in (await show(harness, "/runs")).html
    assert "% completed" not in (await show(harness, "/runs?after=token")).html


async def test_a_few_runs_are_compared_by_one_link_once_all_are_completed(harness: GatewayHarness) -> None:
    assert "Compare them" not in (await show(harness, "/runs")).html
    other = harness.scheduler.runs[OTHER_ID]
    other.state = run_pb2.RUN_STATE_COMPLETED
    link = re.search(r'href="/compare\?([^"]*)">Compare them', (await show(harness, "/runs")).html)
    assert link
    assert {*link[1].split("&amp;")} == {f"run={RUN_ID}", f"run={OTHER_ID}"}
    other.order.suite = "another"
    assert "Compare them" not in (await show(harness, "/runs")).html


async def test_file_of_the_list_has_its_filters_and_all_pages(harness: GatewayHarness) -> None:
    harness.scheduler.next_tokens = ["second", ""]
    shown = await show(harness, "/runs/export.csv?tag=nightly&after=ignored")
    rows = [*csv.DictReader(io.StringIO(shown.html))]
    assert [row["run_id"] for row in rows] == [RUN_ID, OTHER_ID] * 2
    assert (rows[0]["score"], rows[0]["limit"], rows[0]["answered"]) == ("0.823", "50", "400")
    assert json.loads(rows[1]["parameters"])["Temperature"] == "0.7"
    assert rows[1]["tags"] == "nightly"
    assert [(each.tag, each.page_token) for each in harness.scheduler.listed] == [
        ("nightly", ""),
        ("nightly", "second"),
    ]


async def test_chosen_runs_are_shown_exported_and_tagged(harness: GatewayHarness) -> None:
    shown = await show(harness, f"/runs/chosen?run={RUN_ID}&run={OTHER_ID}&run={RUN_ID}&run=x")
    assert "2 runs chosen" in shown.html
    assert "in 1 min 30 s" in shown.html
    links = [str(a.get("href")) for tag, a in shown.elements if tag == "a"]
    assert f"/runs/export.jsonl?run={RUN_ID}&run={OTHER_ID}" in links
    harness.scheduler.next_tokens = [""]
    harness.scheduler.runs[RUN_ID].labels.note = "one\u2028line"
    exported = await show(harness, f"/runs/export.jsonl?run={RUN_ID}")
    first = json.loads(exported.html.splitlines()[0])
    assert (first["run_id"], first["note"]) == (RUN_ID, "one\u2028line")
    assert [*harness.scheduler.listed[-1].run_ids] == [RUN_ID]
    body = urlencode([("run", RUN_ID), ("run", OTHER_ID), ("added", "a, b"), ("removed", "nightly")])
    tagged = await show(harness, "/runs/chosen/tags", body=body, **form(harness))
    assert tagged.headers["Location"] == f"/runs/chosen?run={RUN_ID}&run={OTHER_ID}"
    assert [[*run.labels.tags] for run in harness.scheduler.runs.values()] == [["a", "b"]] * 2
    assert "No run is chosen" in (await show(harness, "/runs/chosen")).html


async def test_chosen_runs_are_deleted_once_it_is_confirmed(harness: GatewayHarness) -> None:
    asked = await show(harness, f"/runs/chosen?run={RUN_ID}&run={OTHER_ID}&ask=delete")
    assert "Delete 2 runs?" in asked.html
    body = urlencode([("run", RUN_ID), ("run", OTHER_ID)])
    deleted = await show(harness, "/runs/chosen/delete", body=body, **form(harness))
    # The other one still runs, and is shown again.
    assert deleted.headers["Location"] == f"/runs/chosen?run={OTHER_ID}"
    assert [*harness.scheduler.runs] == [OTHER_ID]


async def test_runs_of_others_among_the_chosen_leave_refusals_in_the_audit(harness: GatewayHarness) -> None:
    harness.scheduler.refusal = refused(ErrorKind.FORBIDDEN, "PERMISSION_DENIED", "It belongs to another.")
    body = urlencode([("run", RUN_ID), ("run", OTHER_ID), ("added", "a")])
    for action in ("tags", "delete"):
        shown = await show(harness, f"/runs/chosen/{action}", body=body, **form(harness))
        assert shown.status == 303
    assert harness.gateway
    await harness.gateway.drain()
    assert {(each.action, each.object_id, each.outcome) for each in harness.scheduler.audit.added} == {
        (action, run_id, Outcome.REFUSED) for action in ("label", "delete") for run_id in (RUN_ID, OTHER_ID)
    }
