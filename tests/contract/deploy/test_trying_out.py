"""The example for trying out needs nothing but a small cluster and the images that the page has it load."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor.stack.vllm.installation import VLLM_VERSION
from tests.contract.deploy.rendered import containers, of_kind, pods
from tests.contract.deploy.settings import SETTINGS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operations" / "kubernetes.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
DOCKERFILE = (ROOT / "Dockerfile.vllm").read_text()
# What kind's own pods request of a node: the API server 250, controllers 200, and 100 each of etcd, the
# scheduler, kindnet and two of CoreDNS.
MILLICORES_OF_KIND = 950
MILLICORES = 2000


def images(name: str) -> set[str]:
    """Those of Proctor's own, without `proctor-` and tag."""
    named = {container["image"] for _, pod in pods(name) for container in containers(pod)}
    return {found[1] for each in named if (found := re.search(r"proctor-([a-z-]+)[:@]", each))}


def millicores(pod: dict[str, Any]) -> int:
    """What the pod requests: its init containers run before the others, one by one."""

    def of(container: dict[str, Any]) -> int:
        wanted = container["resources"]["requests"]["cpu"]
        return int(wanted[:-1]) if wanted.endswith("m") else 1000 * int(wanted)

    spec = pod["spec"]
    return max(sum(map(of, spec["containers"])), *map(of, spec.get("initContainers", [])), 0)


def replaced(name: str) -> Iterator[str]:
    """Deployments whose new pod starts before the old one ends."""
    for each in of_kind(name, "Deployment"):
        if each["spec"]["strategy"]["rollingUpdate"]["maxSurge"]:
            yield each["metadata"]["name"]


def test_all_pods_and_one_more_of_each_in_an_upgrade_fit_on_two_cores() -> None:
    wanted = {name: millicores(pod) for name, pod in pods("trying-out")}
    assert len(wanted) == 7
    more = [wanted[name] for name in replaced("trying-out")]
    assert len(more) == 4
    assert sum(wanted.values()) + sum(more) + MILLICORES_OF_KIND <= MILLICORES


def test_page_loads_exactly_the_images_that_it_needs() -> None:
    [built] = re.findall(r'^make images IMAGES="([a-z -]+)"$', PAGE, re.MULTILINE)
    assert set(built.split()) == images("trying-out")
    loaded = re.findall(r"proctor-\{([a-z,-]+)\}:0\.1\.0", PAGE)
    assert len(loaded) == 2  # kind and k3s
    assert {frozenset(each.split(",")) for each in loaded} == {frozenset(images("trying-out"))}


def test_a_model_on_the_cpu_is_not_given_the_image_that_needs_a_gpu() -> None:
    [worker] = [pod for name, pod in pods("trying-out") if name == "proctor-worker-cpu"]
    assert [re.sub(":.*", "", each["image"]) for each in containers(worker)] == [
        "proctor-worker-vllm-cpu",
        "proctor-worker-vllm-cpu",
    ]


@pytest.mark.parametrize("name", SETTINGS)
def test_images_of_examples_are_built(name: str) -> None:
    [built] = re.findall(r"^IMAGES \?= (.+)$", MAKEFILE, re.MULTILINE)
    # vLLM has images for other GPUs as well, which nobody needs who has none.
    assert images(name) - {"worker-vllm-rocm"} <= set(built.split())


def test_release_publishes_what_make_builds() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    entries = workflow["jobs"]["images"]["strategy"]["matrix"]["include"]
    [built] = re.findall(r"^IMAGES \?= (.+)$", MAKEFILE, re.MULTILINE)
    assert [each["name"].removeprefix("proctor-") for each in entries] == built.split()
    for each in entries:
        _, is_vllm, variant = each["name"].partition("worker-vllm")
        assert each["file"] == ("Dockerfile.vllm" if is_vllm else "Dockerfile")
        assert each.get("variant", "") == variant


def test_image_has_the_vllm_that_is_installed_elsewhere() -> None:
    assert f"ARG BASE=vllm/vllm-openai${{VARIANT}}:v{VLLM_VERSION}\n" in DOCKERFILE
