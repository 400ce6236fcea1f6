"""Schemathesis against a real stack: no error of the server, and no answer that is not described.

Two users have things there, each in a declared project: one of them sends the calls, sees nothing of the
other's, and changes nothing of it.
`make test-api EXAMPLES=…` is the long form: so many cases per operation and phase.
`PROCTOR_TEST_API_SEED` draws others.
"""

import json
import logging
import os
from pathlib import Path

import pytest

from tests.e2e.harness.described_api import (
    Known,
    calls_of,
    describe_with,
    names_of_both,
    shown_of,
    things_to_name,
    walk,
)
from tests.e2e.harness.entry_points import API, http
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness

EXAMPLES = os.environ.get("PROCTOR_TEST_API_EXAMPLES", "1")
SECONDS = os.environ.get("PROCTOR_TEST_API_SECONDS", "60")
SEED = os.environ.get("PROCTOR_TEST_API_SEED", "20261122")
# Schemathesis ends the case that it is at, and the shrinking of one that failed.
WALK_LIMIT_SECONDS = float(SECONDS) + 240.0
LIMITS = "/api/v1/queue/limits"
PROJECTS = "/api/v1/projects"
KEYS = {name: f"the-key-of-{name}-0123456789" for name in ("ann", "bob", "operator")}
KEYED = {
    "PROCTOR_GATEWAY_API_KEYS": json.dumps(KEYS),
    "PROCTOR_GATEWAY_OPERATORS": '["operator"]',
}
# As many orders as come, and no limit of reads.
MANY = {
    "PROCTOR_SCHEDULER_MAX_READS_PER_MINUTE": "0",
    "PROCTOR_SCHEDULER_MAX_PENDING_RUNS_PER_USER": "1000",
}
# By what has the id in its path.
PATHS = {
    "job_id": f"{API}/results/",
    "dataset_id": "/admin/datasets/",
    "benchmark_id": "/admin/benchmarks/",
    "file_id": "/v1/files/",
    "batch_id": "/v1/batches/",
}


def headers_of(user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[user]}"}


async def lost_of(stack: StackHarness, known: Known, user: str) -> list[str]:
    """What is no longer there, or was cancelled."""
    lost = []
    for name, path in PATHS.items():
        for each in known[name]:
            answer = await http(stack, "GET", path + each, headers=headers_of(user))
            if answer.status != 200 or "cancel" in str(answer.body.get("status", "")).lower():
                lost.append(f"{path}{each}: {answer.status} {answer.body}"[:300])
    return lost


async def project_of(stack: StackHarness, user: str) -> int:
    """A new project whose only member is the user."""
    project = {"name": f"of {user}"}
    made = await http(stack, "POST", PROJECTS, json=project, headers=headers_of("operator"))
    member = {"user": user, "role": "maintainer"}
    members = f"{PROJECTS}/{made.body['project_id']}/members"
    assert (await http(stack, "PUT", members, json=member, headers=headers_of("operator"))).status == 200

    async def is_heard() -> bool:
        return bool((await http(stack, "GET", PROJECTS, headers=headers_of(user))).body["projects"])

    await eventually(is_heard, "the gateway knows the member", 10)
    return int(made.body["project_id"])


@pytest.mark.timeout(2 * WALK_LIMIT_SECONDS + 120.0)
async def test_every_answer_is_described_and_none_is_an_error_of_the_server(tmp_path: Path) -> None:
    order = StackOrder(rows=40, environment=SHORT_TIMEOUTS | MANY | KEYED)
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            description = tmp_path / "openapi.json"
            anns = await things_to_name(stack, headers_of("ann"), await project_of(stack, "ann"))
            bobs_project = await project_of(stack, "bob")
            bobs = await things_to_name(stack, headers_of("bob"), bobs_project)
            await describe_with(stack, names_of_both(anns, bobs), description)
            archive = tmp_path / "calls.har"
            drawn = ("--max-examples", EXAMPLES, "--seed", SEED)
            size = ("--max-time", SECONDS, "--exclude-path", LIMITS)
            kept = ("--report-har-path", str(archive))
            headers = headers_of("ann")
            found = await walk(stack, description, WALK_LIMIT_SECONDS, *drawn, *size, *kept, headers=headers)
            lost = await lost_of(stack, bobs, "bob")
            secrets = {each for name in PATHS for each in bobs[name]} | {str(bobs_project), "of bob"}
            calls = calls_of(archive)
            shown = shown_of(calls, secrets)
            # Last, because it changes the limits that the others go by.
            only = ("--include-path", LIMITS)
            of_limits = await walk(
                stack, description, WALK_LIMIT_SECONDS, *drawn, *only, headers=headers_of("operator")
            )
    errors = sum(call["response"]["status"] >= 500 for call in calls)
    logging.getLogger(__name__).info(
        "%d cases; %d of %d answers are errors of the server, %d show one of %d names of the other user",
        *(found.cases + of_limits.cases, errors, len(calls), len(shown), len(secrets)),
    )
    # How many there are, depends on the machine: the walk ends after SECONDS.
    assert found.cases > 10
    assert of_limits.cases > 10
    # First: what the other user loses or shows weighs more than an answer that is not described.
    assert (lost, shown) == ([], [])
    assert found.code == 0, found.report
    assert of_limits.code == 0, of_limits.report
