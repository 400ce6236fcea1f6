"""What is said beside a comparison at every door: noise of repetitions, and judges under other conditions."""

import json

import aiohttp
import pytest

from proctor.v1 import answer_service_pb2 as answer_pb2
from services.gateway.http.paths import BENCHMARKING
from tests.e2e.harness.entry_points import http, proctor
from tests.harness.keyed_suite import SUITE
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

OTHER = "openai/other"
SCALES = ("1-5", "1-7")
MARKED = 32


async def test_noise_floor_and_other_judges_are_named_beside_a_comparison(stack: StackHarness) -> None:
    runs = []
    for model, scale in zip((MODEL, OTHER), SCALES, strict=True):
        order = f"run --model {model} --suite {SUITE} --limit 6 --rollouts 2 --temperature 1 --json"
        done = await proctor(stack, order)
        assert done.code == 0, done.err
        runs.append(json.loads(done.out)["run"]["run_id"])
        judge = f"judge {runs[-1]} --model {MODEL} --prompt helpfulness --scale {scale} --json"
        assert (await proctor(stack, judge)).code == 0
    body = {"model_ids": runs}
    compared = (await http(stack, "POST", f"{BENCHMARKING}/compare", json=body)).body["comparison"]
    floors = {each["job_id"]: each for each in compared["noise_floors"]}
    assert floors.keys() == {*runs}
    assert {(each["runs"], each["rollouts"]) for each in floors.values()} == {(1, 2)}
    # The fake server answers alike each time.
    assert {each["noise_floor"] for each in floors.values()} == {0.0}
    [warning] = [each for each in compared["warnings"] if "judged under other conditions" in each]
    assert all(scale in warning for scale in SCALES)

    shown = await proctor(stack, f"compare {' '.join(runs)}")
    text = " ".join(shown.out.split())
    assert "must differ by 0.0000 here" in text, shown
    assert "judged under other conditions" in text

    url = f"http://{stack.stack.gateway_http}/compare?run={runs[0]}&run={runs[1]}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        page = " ".join((await response.text()).split())
    assert "must differ by" in page
    assert "judged under other conditions" in page


async def test_runs_are_compared_by_a_judge_of_both_once_people_have_marked_both(stack: StackHarness) -> None:
    runs = []
    for model in (MODEL, OTHER):
        done = await proctor(stack, f"run --model {model} --suite {SUITE} --limit {MARKED} --json")
        runs.append(json.loads(done.out)["run"]["run_id"])
        judge = f"judge {runs[-1]} --model {MODEL} --prompt correctness --json"
        assert (await proctor(stack, judge)).code == 0
    body = {"model_ids": runs}
    compared = (await http(stack, "POST", f"{BENCHMARKING}/compare", json=body)).body["comparison"]
    assert compared["judged_differences"] == []
    for run_id in runs:
        for samples, is_golden in ((range(20), True), (range(20, MARKED), False)):
            keys = [answer_pb2.AnswerKey(sample=sample) for sample in samples]
            mark = answer_pb2.MarkAnswersRequest(
                run_id=run_id, answers=keys, is_golden=is_golden, is_marked_wrong=not is_golden
            )
            await stack.client.answers.MarkAnswers(mark)
    compared = (await http(stack, "POST", f"{BENCHMARKING}/compare", json=body)).body["comparison"]
    [sentence] = compared["judged_differences"]
    assert "corrected for its error by marks of people" in sentence
    assert f"{MARKED} samples" in sentence
    shown = await proctor(stack, f"compare {' '.join(runs)}")
    assert sentence.split(":")[0] in " ".join(shown.out.split())
    url = f"http://{stack.stack.gateway_http}/compare?run={runs[0]}&run={runs[1]}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert "corrected for its error by marks of people" in " ".join((await response.text()).split())
