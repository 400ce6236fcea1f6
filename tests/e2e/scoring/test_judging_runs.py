"""A model judges the answers of a run: ordered at every door, recorded once, shown beside what it judges."""

import io
import json
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
import pytest_asyncio

from proctor.client.datasets import Upload
from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from tests.e2e.harness.entry_points import API, http, proctor
from tests.e2e.harness.run_ends import all_outcomes, completed, ended
from tests.fakes.eventually import eventually
from tests.fakes.providers.judge_verdicts import UNDECIDED
from tests.harness.browser import Look, chromium, tab
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

JUDGE = "openai/other"
COUNT, HARD = 30, 3


def row(number: int) -> dict[str, Any]:
    """Every third target is another one, and the last questions are hard."""
    hard = f"{UNDECIDED} " if number >= COUNT - HARD else ""
    target = "elsewhere" if number % 3 == 0 else f"w{number}"
    return {"id": f"r{number}", "prompt": f"{hard}Say it. KEY=w{number}", "target": target}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def judged(stack: StackHarness) -> str:
    file = b"".join(json.dumps(row(number)).encode() + b"\n" for number in range(COUNT))
    dataset = (await stack.client.upload_dataset(Upload(io.BytesIO(file), "rows.jsonl"))).dataset
    return await completed(stack, run_pb2.RunOrder(dataset_id=dataset.dataset_id, model=MODEL, project_id=7))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def judging(stack: StackHarness, judged: str) -> dict[str, Any]:
    """What the command line says of a judging run that it has followed."""
    done = await proctor(stack, f"judge {judged} --model {JUDGE} --prompt correctness --json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


async def test_verdicts_are_the_samples_of_a_run(
    stack: StackHarness, judged: str, judging: dict[str, Any]
) -> None:
    run = await stack.client.run(judging["run"]["run_id"])
    judge = run.order.judge
    assert (judge.run_id, judge.prompt, judge.version, judge.scale) == (judged, "correctness", "1", "yes-no")
    assert (run.order.project_id, run.dataset_name) == (7, f"correctness of {MODEL} on rows.jsonl")
    outcomes = await all_outcomes(stack, run.run_id)
    assert [outcome.row_id for outcome in outcomes] == [f"{at}.0" for at in range(COUNT)]
    for number, outcome in enumerate(outcomes):
        assert f"[[target {outcome.prompt.split('[[target ')[1][:16]}]]" in outcome.prompt
        if number >= COUNT - HARD:
            assert outcome.status == outcome_pb2.OUTCOME_STATUS_UNPARSED
            assert not outcome.scores
        else:
            right = number % 3 != 0
            assert (outcome.prediction, outcome.scores["verdict"]) == ("yes" if right else "no", right)
            assert "The answer says" in outcome.outcome.answer.text
    request = results_pb2.GetSummaryRequest(run_id=run.run_id)
    [task] = (await stack.client.outcomes.GetSummary(request)).summary.tasks
    assert (task.task, task.answered, task.unparsed, task.failed) == ("correctness", COUNT, HARD, 0)
    [figure] = task.metrics
    assert (figure.metric, figure.n) == ("verdict", COUNT - HARD)
    assert figure.mean == pytest.approx(18 / 27)
    assert figure.ci_low < figure.mean < figure.ci_high


async def test_verdicts_are_scored_again_on_another_scale(
    stack: StackHarness, judging: dict[str, Any]
) -> None:
    metric = {"metric": "verdict", "labels": {"yes": 0.5, "no": 0.25}}
    path = f"{API}/rescore/{judging['run']['run_id']}"
    answer = await http(stack, "POST", path, json={"task": "correctness", "metrics": [metric]})
    assert answer.status == 200, answer.body
    figure = answer.body["figures"]["verdict"]
    assert (figure["n"], figure["mean"]) == (COUNT - HARD, pytest.approx((18 * 0.5 + 9 * 0.25) / 27))


async def test_rest_orders_a_judge_once_and_lists_the_judges(stack: StackHarness, judged: str) -> None:
    path = f"{API}/judgements/{judged}"
    body = {"model_id": JUDGE, "prompt": "helpfulness", "scale": "yes-no", "limit": 5, "repetitions": 2}
    headers = {"Idempotency-Key": str(uuid4())}
    started = [await http(stack, "POST", path, json=body, headers=headers) for _ in range(2)]
    assert [answer.status for answer in started] == [200, 200], started[0].body
    assert started[0].body["job_id"] == started[1].body["job_id"]
    run = await ended(stack, started[0].body["job_id"])
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    assert run.progress.total == 10
    listed = (await http(stack, "GET", path)).body
    [own] = [each for each in listed["judged_by"] if each["job_id"] == run.run_id]
    shown = {name: own[name] for name in ("model_id", "prompt", "scale", "repetitions", "status")}
    assert shown == {
        "model_id": JUDGE,
        "prompt": "helpfulness",
        "scale": "yes-no",
        "repetitions": 2,
        "status": "completed",
    }
    assert (own["verdicts"], own["unparsed_rate"], own["failed_rate"]) == (10, 0.0, 0.0)
    calibrated = own["calibrated"]
    assert (calibrated["samples"], calibrated["marks"], calibrated["mean"]) == (5, 0, None)
    assert calibrated["advice"].startswith("Uncalibrated: 30 more marks")
    for either in (judged, run.run_id):
        told = " ".join((await proctor(stack, f"results {either}")).out.split())
        assert f"as it is, run {run.run_id}. Uncalibrated: 30 more marks" in told
        scripted = json.loads((await proctor(stack, f"results {either} --json")).out)
        [judge] = [each for each in scripted["judges"] if each["run_id"] == run.run_id]
        assert int(judge["calibrated"]["samples"]) == 5
    assert own["usage"]["completion_tokens"] == run.progress.usage.completion_tokens > 0
    job = (await http(stack, "GET", f"{API}/results/{run.run_id}")).body
    again = await http(stack, "POST", path, json=job["order"])
    assert again.status == 200, again.body


async def test_two_runs_are_compared_in_both_orders(stack: StackHarness) -> None:
    """Eight answers differ, four are the same, and of two hard questions the judge takes the first answer."""
    keys = ["WHO"] * 8 + [f"w{number}" for number in range(4)] + ["WHO"] * 2
    rows = [{"id": f"r{at}", "prompt": f"Say {at}. KEY={key}"} for at, key in enumerate(keys)]
    for row_of_both in rows[-2:]:
        row_of_both["prompt"] = f"{UNDECIDED} {row_of_both['prompt']}"
    file = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
    dataset = (await stack.client.upload_dataset(Upload(io.BytesIO(file), "pairs.jsonl"))).dataset
    other, fake = [
        await completed(stack, run_pb2.RunOrder(dataset_id=dataset.dataset_id, model=model))
        for model in (JUDGE, MODEL)
    ]
    path = f"{API}/judgements/{other}"
    body = {"model_id": JUDGE, "prompt": "preference", "against": fake}
    started = await http(stack, "POST", path, json=body)
    assert started.status == 200, started.body
    run = await ended(stack, started.body["job_id"])
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    [shown] = (await http(stack, "GET", path)).body["judged_by"]
    assert (shown["against"], shown["scale"], shown["verdicts"]) == (fake, "first-second-tie", 28)
    assert shown["figure"]["mean"] == pytest.approx((8 + 4 / 2 + 2 / 2) / 14)
    assert shown["first_place"]["mean"] == pytest.approx((12 / 2 + 2) / 14)
    url = f"http://{stack.stack.gateway_http}/runs/{other}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert "shown first" in await response.text()
    rated = await proctor(stack, f"ratings {dataset.dataset_id} --json")
    assert rated.document["judging_run_ids"] == [run.run_id]
    assert rated.document["matches"] == 14
    counts = {one["model"]: (one.get("wins", 0), one.get("losses", 0)) for one in rated.document["models"]}
    assert counts == {JUDGE: (8, 0), MODEL: (0, 8)}


async def test_answers_are_compared_with_the_golden_answers_of_their_rows(stack: StackHarness) -> None:
    """Six answers are their targets, which are ties; the judge prefers the other four to theirs."""
    targets = [f"The answer is w{at}." if at < 6 else "fake" for at in range(10)]
    rows = [
        {"id": f"r{at}", "prompt": f"Say {at}. KEY=w{at}", "target": target}
        for at, target in enumerate(targets)
    ]
    file = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
    dataset = (await stack.client.upload_dataset(Upload(io.BytesIO(file), "golden.jsonl"))).dataset
    run_id = await completed(stack, run_pb2.RunOrder(dataset_id=dataset.dataset_id, model=MODEL))
    line = f"judge {run_id} --model {JUDGE} --prompt preference --against-target --json"
    done = await proctor(stack, line)
    assert done.code == 0, done.err
    assert done.document["run"]["dataset_name"] == f"preference of {MODEL} against targets on golden.jsonl"
    [shown] = (await http(stack, "GET", f"{API}/judgements/{run_id}")).body["judged_by"]
    assert (shown["against"], shown["against_target"], shown["verdicts"]) == (None, True, 20)
    assert shown["calibrated"] is None
    body = {"model_id": JUDGE, "prompt": "preference", "against_target": True}
    again = await http(stack, "POST", f"{API}/judgements/{run_id}", json=body)
    assert again.status == 200, again.body
    second = await ended(stack, again.body["job_id"])
    assert second.state == run_pb2.RUN_STATE_COMPLETED, second.error
    both = (await http(stack, "GET", f"{API}/judgements/{run_id}")).body["judged_by"]
    assert [each["figure"]["mean"] for each in both] == pytest.approx([0.7, 0.7])
    repeated = (await http(stack, "GET", f"{API}/results/{second.run_id}")).body["order"]
    assert repeated["against_target"] is True
    url = f"http://{stack.stack.gateway_http}/runs/{run_id}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert "the targets" in await response.text()


async def test_pages_show_the_judges_and_their_verdicts(
    stack: StackHarness, judged: str, judging: dict[str, Any]
) -> None:
    judging_id = judging["run"]["run_id"]
    pages = {}
    async with aiohttp.ClientSession(f"http://{stack.stack.gateway_http}") as session:
        for path in (f"/runs/{judged}", f"/runs/{judging_id}", f"/runs/{judging_id}/results"):
            async with session.get(path) as response:
                assert response.status == 200, await response.text()
                pages[path] = await response.text()
    assert f'href="/runs/{judging_id}"' in pages[f"/runs/{judged}"]
    assert "Judged by" in pages[f"/runs/{judged}"]
    assert "Uncalibrated: 30 more marks" in pages[f"/runs/{judged}"]
    assert f'href="/runs/{judged}"' in pages[f"/runs/{judging_id}"]
    assert f"proctor judge {judged} --model {JUDGE} --prompt correctness" in pages[f"/runs/{judging_id}"]
    assert "The answer says" in pages[f"/runs/{judging_id}/results"]


async def test_all_columns_of_judges_are_in_sight(
    stack: StackHarness, judged: str, judging: dict[str, Any]
) -> None:
    assert judging["run"]["run_id"]
    async with chromium() as browser, tab(browser, f"http://{stack.stack.gateway_http}") as opened:
        await opened.look(Look(1280))
        await opened.open(f"/runs/{judged}")
        table = opened.page.locator(".scroll").filter(has_text="Verdicts cost")
        assert await table.evaluate("box => box.scrollWidth - box.clientWidth") <= 0


async def annotated_on_its_page(stack: StackHarness, judging_id: str, earlier: int) -> int:
    """The number of one more answer; the page is in the other order then."""
    url, site = f"/runs/{judging_id}/annotations", f"http://{stack.stack.gateway_http}"
    async with aiohttp.ClientSession(site, headers={"Origin": site}) as session:
        async with session.get(url) as response:
            page = await response.text()
        assert (response.status, "1 of 30 answers annotated, 1 by you" in " ".join(page.split())) == (
            200,
            True,
        )
        sample = int(page.split('name="sample" value="')[1].split('"')[0])
        assert sample != earlier
        form = {"sample": str(sample), "label": "no", "order": "disagreement"}
        async with session.post(url, data=form) as response:
            page = await response.text()
        assert (response.status, response.url.path_qs) == (200, f"{url}?order=disagreement")
        assert "Random order" in page
        async with session.get(f"{url}/export.csv") as response:
            lines = (await response.text()).splitlines()
    assert len(lines) == 3
    assert "'=good" in "".join(lines)
    return sample


async def test_people_annotate_the_answers_of_a_judge_over_rest_and_pages(
    stack: StackHarness, judged: str, judging: dict[str, Any]
) -> None:
    judging_id = judging["run"]["run_id"]
    path = f"{API}/annotations/{judging_id}"
    first = (await http(stack, "GET", f"{path}/next")).body
    assert first["question"] == {
        "job_id": judged,
        "name": "correctness",
        "labels": [{"label": "yes", "score": 1.0}, {"label": "no", "score": 0.0}],
    }
    assert f"KEY=w{first['sample']}" in first["prompt"]
    assert first["answer"]
    said = {"sample": first["sample"], "label": "yes", "comment": "=good"}
    assert (await http(stack, "POST", path, json=said)).status == 200
    refused = await http(stack, "POST", path, json=said | {"label": "maybe"})
    assert (refused.status, refused.body["detail"]) == (422, "label must be yes, no, or empty.")
    [own] = (await http(stack, "GET", path)).body["annotations"]
    assert (own["sample"], own["label"], own["score"], own["comment"]) == (
        first["sample"],
        "yes",
        1.0,
        "=good",
    )
    samples = [first["sample"], await annotated_on_its_page(stack, judging_id, first["sample"])]
    panel = (await http(stack, "GET", f"{API}/judgements/{judging_id}/panel")).body
    [alone] = panel["judges"]
    assert (alone["job_id"], alone["model_id"], panel["alpha"]) == (judging_id, JUDGE, None)
    found = (await http(stack, "GET", f"{path}/agreement")).body
    counts = ("answers", "annotated", "own", "annotated_twice", "measure", "value")
    assert [found[name] for name in counts] == [COUNT, 2, 2, 0, None, None]
    [judge] = [
        each
        for each in (await http(stack, "GET", f"{API}/judgements/{judged}")).body["judged_by"]
        if each["job_id"] == judging_id
    ]
    # The judge says nothing that can be read of the last ones.
    assert judge["calibrated"]["marks"] == sum(sample < COUNT - HARD for sample in samples)
    assert found["drawn"] == 2


@pytest.mark.parametrize("changes", [{"prompt": "none"}, {"scale": "1-99"}, {"document": "judge: ["}])
async def test_a_judge_that_cannot_be_asked_is_refused(
    stack: StackHarness, judged: str, changes: dict[str, str]
) -> None:
    body = {"model_id": JUDGE, "prompt": "correctness", **changes}
    answer = await http(stack, "POST", f"{API}/judgements/{judged}", json=body)
    assert (answer.status, answer.body["reason"]) == (422, "INVALID_PARAMETER"), answer.body


async def test_a_run_is_not_compared_with_itself(stack: StackHarness, judged: str) -> None:
    body = {"model_id": JUDGE, "prompt": "preference", "against": judged}
    answer = await http(stack, "POST", f"{API}/judgements/{judged}", json=body)
    assert (answer.status, "with itself" in answer.body["detail"]) == (422, True), answer.body


async def test_a_run_that_is_not_there_is_not_judged(stack: StackHarness) -> None:
    answer = await http(
        stack, "POST", f"{API}/judgements/{uuid4()}", json={"model_id": JUDGE, "prompt": "style"}
    )
    assert answer.status == 404


async def test_a_judge_that_an_order_names_starts_by_itself(stack: StackHarness) -> None:
    file = b"".join(json.dumps(row(number)).encode() + b"\n" for number in range(6))
    dataset = (await stack.client.upload_dataset(Upload(io.BytesIO(file), "named.jsonl"))).dataset
    line = f"run --model {MODEL} --dataset {dataset.dataset_id} --judge"
    refused = await proctor(stack, f"{line} {JUDGE}:none --detach")
    assert (refused.code, "There is no judge prompt 'none'" in refused.err) == (2, True), refused.err
    done = await proctor(stack, f"{line} {JUDGE} --judge {MODEL}:correctness --json")
    assert done.code == 0, done.err
    run_id = json.loads(done.out)["run"]["run_id"]

    async def judged_twice() -> bool:
        found = (await http(stack, "GET", path)).body["judged_by"]
        return [each["status"] for each in found] == ["completed"] * 2

    path = f"{API}/judgements/{run_id}"
    await eventually(judged_twice, "both judges have judged the run")
    found = (await http(stack, "GET", path)).body["judged_by"]
    assert [each["prompt"] for each in found] == ["correctness"] * 2
    assert {each["model_id"] for each in found} == {JUDGE, MODEL}
    order = (await http(stack, "GET", f"{API}/results/{run_id}")).body["order"]
    assert order["judges"] == [{"model_id": JUDGE}, {"model_id": MODEL, "prompt": "correctness"}]
    url = f"http://{stack.stack.gateway_http}/runs/{run_id}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        page = " ".join((await response.text()).split())
    assert "Panel of 2 judges on correctness:" in page
    assert f"--judge {JUDGE} --judge {MODEL}:correctness" in page
