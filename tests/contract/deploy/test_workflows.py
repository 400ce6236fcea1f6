"""Workflows: actions pinned by commit, no permission that a job does not name, no job that waits for none."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOWS = sorted((Path(__file__).parents[3] / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w-]+(?:/[\w-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def jobs_of(workflow: Path) -> dict[str, dict[str, Any]]:
    return dict(yaml.safe_load(workflow.read_text())["jobs"])


def used_actions(workflow: Path) -> Iterator[str]:
    for line in workflow.read_text().splitlines():
        _, is_use, action = line.partition("uses: ")
        if is_use:
            yield action


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_with_their_version(workflow: Path) -> None:
    actions = list(used_actions(workflow))
    assert actions
    assert [action for action in actions if not PINNED.fullmatch(action)] == []


def test_one_action_is_one_commit_in_all_workflows() -> None:
    commits: dict[str, set[str]] = {}
    for workflow in WORKFLOWS:
        for action in used_actions(workflow):
            name, _, commit = action.partition("@")
            commits.setdefault(name, set()).add(commit)
    assert {name: found for name, found in commits.items() if len(found) > 1} == {}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_have_a_limit_and_only_the_permissions_that_they_name(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text())["permissions"] == {}
    for name, job in jobs_of(workflow).items():
        assert job["timeout-minutes"] <= 120, name
        assert "permissions" in job, name


def test_nothing_is_published_before_it_was_checked() -> None:
    jobs = jobs_of(next(path for path in WORKFLOWS if path.name == "release.yml"))

    def waits_for(name: str) -> set[str]:
        needs = jobs[name].get("needs", [])
        named = {needs} if isinstance(needs, str) else set(needs)
        return named.union(*map(waits_for, named))

    assert any("make release-check" in str(step.get("run")) for step in jobs["check"]["steps"])
    assert all("check" in waits_for(name) for name in jobs if name != "check")
    assert waits_for("release") == set(jobs) - {"release"}
