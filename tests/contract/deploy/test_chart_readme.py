"""The README of the chart lists every value as values.yaml has it, and the schema knows each of them."""

import json
import subprocess
import sys
from typing import Any

import yaml

from tests.harness.helm import CHART


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
