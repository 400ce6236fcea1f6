"""The request and the response of an answer on its page and in the file of the list."""

import html
import json
import re

import pytest

from proctor.v1 import run_pb2
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, show, summary_of
from tests.fakes.gateway.dataset_runs import recorded
from tests.fakes.gateway.gateway_harness import GatewayHarness

RESULTS = f"/runs/{RUN_ID}/results"


async def test_request_and_response_of_a_row_are_shown_as_they_were_sent(harness: GatewayHarness) -> None:
    run = running(tasks=1)
    run.order.params.temperature, run.order.params.max_tokens = 0.5, 9
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    row = recorded(0, task="task_0")
    row.request_json = json.dumps({"messages": [{"role": "user", "content": "<b>?"}], "temperature": 1.5})
    row.outcome.answer.body_json = json.dumps({"choices": [{"text": "</pre>"}], "id": "cmpl-1"})
    harness.results.outcomes[RUN_ID] = [row, recorded(1, task="task_0")]
    shown = (await show(harness, RESULTS)).html
    documents = re.compile(r"<summary>(?:Request|Response)</summary>\s*<pre[^>]*>(.*?)</pre>", re.DOTALL)
    request, response = documents.findall(shown)
    sent = json.loads(html.unescape(request))
    assert sent["messages"] == [{"role": "user", "content": "<b>?"}]
    # The row's own parameters override those of its run.
    assert (sent["temperature"], sent["max_tokens"]) == (1.5, 9)
    assert json.loads(html.unescape(response)) == {"choices": [{"text": "</pre>"}], "id": "cmpl-1"}
    assert "<summary>Request" not in (await show(harness, f"{RESULTS}?row=1.0")).html
    file = (await show(harness, f"{RESULTS}/export.jsonl")).html
    first, second = [json.loads(line) for line in file.splitlines()]
    assert json.loads(first["request"])["temperature"] == 1.5
    assert json.loads(first["response"])["id"] == "cmpl-1"
    assert (second["request"], second["response"]) == (None, None)


@pytest.mark.parametrize("method", ["GENERATE", "CONSTRAINED", "LOGLIKELIHOOD"])
async def test_choices_that_are_answered_in_words_have_the_prompt_that_was_sent(
    harness: GatewayHarness, method: str
) -> None:
    run = running(tasks=1)
    run.scoring_method = run_pb2.ScoringMethod.Value(f"SCORING_METHOD_{method}")
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    row = recorded(0, task="task_0", scores={"acc": 1.0}, choices=[" no", " yes"], prompt="Is it?")
    harness.results.outcomes[RUN_ID] = [row]
    shown = (await show(harness, f"{RESULTS}?row=0.0")).html
    is_in_words = method != "LOGLIKELIHOOD"
    assert ("Reply with the text of exactly one of these options" in shown) == is_in_words
