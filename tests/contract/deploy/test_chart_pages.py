"""The pages on the chart.

What the one on Kubernetes has an operator apply is what a cluster and the chart take. The README lists every
value as values.yaml has it, and the schema knows each of them.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness import kubernetes_schemas as schemas
from tests.harness.helm import CHART, EXAMPLES, Setting, render

PAGE = (Path(__file__).parents[3] / "docs" / "operations" / "kubernetes.md").read_text()


def job(service: str) -> dict[str, Any]:
    [text] = re.findall(r"<<END\n(.*?)\nEND\n", PAGE, re.DOTALL)
    return dict(yaml.safe_load(text.replace("$service", service)))


@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_job_that_migrates_is_valid_and_may_run_where_only_restricted_pods_may(version: str) -> None:
    schemas.validate_own(job("scheduler"), version)
    pod = job("scheduler")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    [container] = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"]


def test_job_that_migrates_has_a_folder_for_temporary_files() -> None:
    """A service does not start without one, and its root is read-only."""
    pod = job("results")["spec"]["template"]["spec"]
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]
    assert pod["volumes"] == [{"name": "tmp", "emptyDir": {}}]


def test_secret_of_passwords_has_one_for_each_user_of_the_example() -> None:
    [command] = re.findall(r"create secret generic proctor-nats .*?\n```", PAGE, re.DOTALL)
    users = set(re.findall(r"--from-literal=([\w-]+)=", command))
    wanted = {
        reference["key"]
        for each in render(Setting((EXAMPLES["production"],)))
        for container in each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ())
        for variable in container.get("env", ())
        if (reference := variable.get("valueFrom", {}).get("secretKeyRef", {})).get("name") == "proctor-nats"
    }
    assert users == wanted
    of_nats = yaml.safe_load((CHART.parent / "nats-values.yaml").read_text())["container"]["env"]
    assert {each["valueFrom"]["secretKeyRef"]["key"] for each in of_nats.values()} == wanted


def test_values_of_the_page_are_values_of_the_chart() -> None:
    [text] = re.findall(r"```yaml\n(scheduler: &verified\n.*?)```", PAGE, re.DOTALL)
    render(Setting((EXAMPLES["remote-only"],), yaml.safe_load(text)))
    named = set(re.findall(r"`([a-z][A-Za-z]+(?:\.[A-Za-z]+)+)(?:[:=][^`]*)?`", PAGE))
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    # Keys of secrets have names of files.
    tops = {
        name
        for name in named
        if name.partition(".")[0] in values and not name.endswith((".crt", ".key", ".creds"))
    }
    assert len(tops) > 20
    assert [name for name in sorted(tops) if not exists(values, name.split("."))] == []


def exists(values: Any, path: list[str]) -> bool:
    """A map without defaults takes any name."""
    for name in path:
        if values == {}:
            return True
        if not isinstance(values, dict) or name not in values:
            return False
        values = values[name]
    return True


def test_readme_lists_the_values_that_there_are() -> None:
    script = str(CHART.parent / "values_reference.py")
    done = subprocess.run(
        (sys.executable, script, "--check"), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_schema_knows_every_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def check(values: dict[str, Any], part: dict[str, Any], path: str) -> None:
        assert part.get("additionalProperties") is False, path
        for name, value in values.items():
            assert name in part["properties"], f"{path}.{name}"
            inner = part["properties"][name]
            if isinstance(value, dict) and "properties" in inner:
                check(value, inner, f"{path}.{name}")

    check(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "values")


def test_readme_explains_every_field_of_a_pool() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    text = (CHART / "README.md").read_text()
    missing = [name for name in schema["$defs"]["pool"]["properties"] if f"| `{name}` |" not in text]
    assert missing == []
