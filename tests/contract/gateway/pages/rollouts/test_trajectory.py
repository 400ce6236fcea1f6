"""Steps of a rollout on its page: when each was, and which commands failed."""

import json
import re

import pytest

from proctor.v1 import rollout_service_pb2
from tests.contract.gateway.pages.rollouts.shown_rollouts import FIRST, put_rollouts, record
from tests.contract.gateway.pages.shown_pages import show
from tests.fakes.gateway.gateway_harness import GatewayHarness


@pytest.fixture(autouse=True)
def order(harness: GatewayHarness) -> rollout_service_pb2.RolloutsOrder:
    return put_rollouts(harness)


async def test_a_trajectory_leads_to_commands_that_failed_and_says_when(harness: GatewayHarness) -> None:
    known = json.loads(record(steps=60))
    steps = known["trajectory"]["steps"]
    for place in (1, 55):
        steps[place]["observation"]["results"][0]["content"] = "Exit code: 127\n[output]\nsh: no pytest"
    steps[1]["timestamp"] = "2026-11-23T06:01:05.5+00:00"
    harness.results.outcomes[FIRST][0].outcome.answer.body_json = json.dumps(known)
    path = f"/runs/{FIRST}/rollouts/0/0"
    shown = await show(harness, path)
    links = {attributes.get("href") for tag, attributes in shown.elements if tag == "a"}
    assert {"#step-2", f"{path}?step=56#trajectory"} <= links
    assert "1 min 05 s after the first step" in shown.html
    assert 'datetime="2026-11-23T06:01:05+00:00" data-local="exact"' in shown.html
    # The step before is a moment after the first.
    assert "+1 min 05 s" in shown.html
    assert shown.html.count("command failed") == 1
    assert len(re.findall(r"<details open><summary data-sample", shown.html)) == 50
    present = re.search(r'<a href="([^"]*)"[^>]*aria-current="page"', shown.html)
    assert present
    assert present[1] == "/rollouts"
