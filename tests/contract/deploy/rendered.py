"""Objects that the chart makes of the settings of these tests, by kind."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.contract.deploy.settings import SETTINGS
from tests.harness.helm import render

Document = dict[str, Any]


@cache
def objects(name: str) -> list[Document]:
    return render(SETTINGS[name])


def of_kind(name: str, *kinds: str) -> list[Document]:
    return [each for each in objects(name) if each["kind"] in kinds]


def pods(name: str) -> Iterator[tuple[str, Document]]:
    for each in objects(name):
        spec = each.get("spec") or {}
        if each["kind"] == "Pod":
            yield each["metadata"]["name"], each
        elif each["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield each["metadata"]["name"], spec["template"]
        elif each["kind"] == "CronJob":
            yield each["metadata"]["name"], spec["jobTemplate"]["spec"]["template"]
        elif each["kind"] == "LeaderWorkerSet":
            for part in ("leaderTemplate", "workerTemplate"):
                yield f"{each['metadata']['name']} {part}", spec["leaderWorkerTemplate"][part]


def containers(pod: Document) -> list[Document]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


def egress(name: str, component: str) -> list[Document]:
    [policy] = [
        each for each in of_kind(name, "NetworkPolicy") if each["metadata"]["name"] == f"proctor-{component}"
    ]
    rules: list[Document] = policy["spec"]["egress"]
    return rules
