"""Keys that are bound to a project reach nothing outside of it, and names stand for numbers of projects."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e.harness.entry_points import API, proctor_with
from tests.e2e.harness.project_site import ELSEWHERE, KEYS, NAME, PROJECTS, Site, bind_key, rows
from tests.harness.keyed_suite import SUITE

pytestmark = pytest.mark.asyncio(loop_scope="session")

ORDER = {"suite": SUITE, "config": {"provider": "openai", "model": "fake"}, "limit": 1}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bound(site: Site) -> AsyncIterator[Site]:
    """The key "within" is one of ann's, bound to the project; a run of hers is in no project."""
    await bind_key(site, "within", "ann", NAME)
    made = await site.call("ann", "POST", f"{API}/run", json={"project_id": 7, **ORDER})
    assert made.status == 200, made.body
    site.ids.setdefault("open_job", made.body["job_id"])
    yield site
    del site.ids["open_job"]


async def test_a_bound_key_sees_its_project_and_nothing_else(bound: Site) -> None:
    open_run, run = bound.ids["open_job"], bound.ids["job_id"]
    for key, path, status in (
        ("ann", open_run, 200),
        ("within", open_run, 404),
        ("elsewhere", open_run, 404),
        ("within", run, 200),
        ("elsewhere", run, 404),
    ):
        assert (await bound.call(key, "GET", f"{API}/results/{path}")).status == status, (key, path)
    for path in ("/runs", "/", "/queue", f"{API}/results", f"{API}/history", "/api/v1/queue"):
        assert open_run not in (await bound.text("within", "GET", path))[1], path
    listed = await bound.call("within", "GET", f"{API}/results?limit=500")
    assert run in [each["job_id"] for each in listed.body["results"]]
    assert {each.get("project_name") for each in listed.body["results"]} == {NAME}
    projects = (await bound.call("within", "GET", PROJECTS)).body["projects"]
    assert [each["name"] for each in projects] == [NAME]
    # The leaderboard of all projects is none of the key's: it gets that of its own.
    for board in ("leaderboard", "ratings"):
        of_all = await bound.call("within", "GET", f"{API}/{board}?suite={SUITE}")
        assert of_all.status == 200, of_all.body
        assert (await bound.call("within", "GET", f"{API}/{board}?suite={SUITE}&project_id=7")).status == 404


async def test_a_bound_key_stores_in_its_project_alone(bound: Site) -> None:
    for project in (7, ELSEWHERE):
        for answer in (
            await bound.call("within", "POST", f"{API}/run", json={"project_id": project, **ORDER}),
            await bound.call("within", "POST", f"/admin/datasets/upload?project_id={project}", data=rows()),
        ):
            assert (answer.status, answer.body["reason"]) == (404, "PROJECT_NOT_FOUND"), answer.body
        order = {"project_id": project, **ORDER}
        estimate = await bound.call("within", "POST", f"{API}/estimate", json=order)
        assert (estimate.status, estimate.body["reason"]) == (404, "PROJECT_NOT_FOUND"), estimate.body
    made = await bound.call("within", "POST", f"{API}/run", json={"project_id": NAME, **ORDER})
    assert made.status == 200, made.body
    estimate = await bound.call("within", "POST", f"{API}/estimate", json={"project_id": NAME, **ORDER})
    assert estimate.status == 200, estimate.body
    # Notices of own runs are of those in other projects too.
    hook = {"channel": "webhook", "address": "https://example.org", "events": ["run_failed"]}
    told = await bound.call("within", "POST", "/api/v1/notices/targets", json={**hook, "scope": "own"})
    assert (told.status, told.body["detail"][:12]) == (422, "scope is own"), told.body
    # What is of the same user and in no project is not its to change.
    assert (await bound.call("within", "POST", f"{API}/cancel/{bound.ids['open_job']}")).status == 404


async def test_a_request_id_of_a_bound_key_is_none_of_other_projects(bound: Site) -> None:
    """The user made the first with another key: neither a refusal nor a repetition shows it."""
    again = {"headers": {"Idempotency-Key": "nightly"}}
    in_no_project = await bound.call("ann", "POST", f"{API}/run", json={"project_id": 7, **ORDER}, **again)
    order = {"project_id": NAME, **ORDER}
    made = [await bound.call("within", "POST", f"{API}/run", json=order, **again) for _ in range(2)]
    assert [each.status for each in (in_no_project, *made)] == [200, 200, 200], made[0].body
    assert made[0].body["job_id"] == made[1].body["job_id"] != in_no_project.body["job_id"]
    taken = await bound.call("within", "POST", f"{API}/run", json={**order, "limit": 2}, **again)
    assert (taken.status, taken.body["reason"]) == (409, "REQUEST_ID_TAKEN"), taken.body
    assert in_no_project.body["job_id"] not in str(taken.body)
    uploads = "/admin/datasets/upload?name=rows.jsonl&project_id="
    stored = [
        await bound.call(user, "POST", f"{uploads}{project}", data=rows(), **again)
        for user, project in (("ann", 7), ("within", bound.project_id))
    ]
    assert [each.status for each in stored] == [200, 200], stored[1].body
    assert stored[0].body["dataset_id"] != stored[1].body["dataset_id"]


async def test_a_project_has_no_name_that_looks_like_another(bound: Site) -> None:
    for twin in (NAME.upper(), NAME.replace("e", "е"), f"{NAME[:6]}  {NAME[7:]}", "ｓecret plans"):
        refused = await bound.call("olga", "POST", PROJECTS, json={"name": twin})
        assert (refused.status, refused.body["reason"]) == (409, "PROJECT_NAME_TAKEN"), refused.body
    made = await bound.call("olga", "POST", PROJECTS, json={"name": "unlike plans"})
    path = f"{PROJECTS}/{made.body['project_id']}"
    renamed = await bound.call("olga", "PATCH", path, json={"name": NAME.title()})
    assert (renamed.status, renamed.body["reason"]) == (409, "PROJECT_NAME_TAKEN"), renamed.body
    # Its own name in another look is no other project's.
    renamed = await bound.call("olga", "PATCH", path, json={"name": "Unlike Plans"})
    assert renamed.status == 200, renamed.body


async def test_a_key_is_bound_where_its_user_has_a_role(bound: Site) -> None:
    for body, reason in (
        ({"user": "bob", "project_id": NAME}, "INVALID_PARAMETER"),
        ({"user": "ann", "project_id": 7}, "INVALID_PARAMETER"),
        ({"user": "ann", "project_id": NAME, "role": "operator"}, "INVALID_PARAMETER"),
        ({"user": "ann", "project_id": "no such project"}, "PROJECT_NOT_FOUND"),
    ):
        refused = await bound.call("olga", "POST", "/api/v1/keys", json=body)
        assert refused.body["reason"] == reason, (body, refused.body)


async def test_names_of_projects_are_taken_from_who_sees_them(bound: Site) -> None:
    filtered = await bound.call("ann", "GET", f"{API}/results?project_id={ELSEWHERE}")
    assert (filtered.status, filtered.body["results"]) == (200, [])
    assert (await bound.call("ann", "GET", f"{API}/results?project_id={NAME}")).body["results"]
    for user in ("bob", "elsewhere"):
        hidden = await bound.call(user, "GET", f"{API}/results?project_id={NAME}")
        assert (hidden.status, hidden.body["reason"]) == (404, "PROJECT_NOT_FOUND")


async def test_the_command_line_binds_keys_and_takes_names(bound: Site) -> None:
    line = {"PROCTOR_GATEWAY": bound.stack.stack.gateway_grpc}
    made = await proctor_with(
        {**line, "PROCTOR_API_KEY": KEYS["olga"]}, f"keys create ann --project '{NAME}' --note ci"
    )
    assert f"runner's key of ann in project {NAME} only" in made.out, made
    [secret] = re.findall(r"proctor_[0-9a-f]{16}_[0-9a-f]{64}", made.out)
    listed = await proctor_with({**line, "PROCTOR_API_KEY": secret}, f"runs --project '{NAME}'")
    assert bound.ids["job_id"] in listed.out, listed
    assert NAME in listed.out, listed
    unknown = await proctor_with({**line, "PROCTOR_API_KEY": secret}, f"runs --project {ELSEWHERE}")
    assert unknown.code == 4, unknown


async def test_pages_offer_what_the_role_in_the_project_allows(bound: Site) -> None:
    run = f"/runs/{bound.ids['paused_job']}"
    _, of_ann = await bound.text("ann", "GET", run)
    _, of_vic = await bound.text("vic", "GET", run)
    for shown, may_change in ((of_ann, True), (of_vic, False)):
        assert ('class="reader"' in shown, 'class="readonly"' in shown) == (not may_change, not may_change)
        assert ("ask-cancel" in shown, "Only ann, maintainers of the project and operators" in shown) == (
            True,
            not may_change,
        )
    assert NAME in of_vic
    for path in (f"/datasets/{bound.ids['dataset_id']}", f"/schedules/{bound.ids['schedule_id']}"):
        assert "Delete" in (await bound.text("ann", "GET", path))[1], path
        assert "Delete" not in (await bound.text("vic", "GET", path))[1], path
    # What is vic's own elsewhere is still vic's to order.
    assert 'class="reader"' not in (await bound.text("vic", "GET", "/runs"))[1]


async def test_forms_store_in_the_project_of_the_key(bound: Site) -> None:
    headers = {"Origin": f"http://{bound.stack.stack.gateway_http}"}
    sent = await bound.text("within", "POST", "/datasets", data=rows(), headers=headers)
    assert sent[0] in (200, 303), sent
    stored = (await bound.call("within", "GET", "/admin/datasets")).body["datasets"]
    assert {each["project_name"] for each in stored} == {NAME}
    assert len(stored) > 1


async def test_the_list_of_runs_is_filtered_by_the_name_of_a_project(bound: Site) -> None:
    _, shown = await bound.text("ann", "GET", f"/runs?project={NAME.replace(' ', '+')}&columns=project")
    assert f'<option value="{NAME}" selected>' in shown
    assert bound.ids["job_id"] in shown
    assert bound.ids["open_job"] not in shown
    assert f"<option>{NAME}" not in (await bound.text("bob", "GET", "/runs"))[1]
