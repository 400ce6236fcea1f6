"""Alerts and dashboards ask for metrics that exist, and each alert has its page."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from proctor.cli.commands import PANELS
from tests.contract.deploy.settings import SETTINGS
from tests.harness.helm import CHART, render

ROOT = Path(__file__).parents[3]
RUNBOOKS = ROOT / "docs" / "operations" / "runbooks"
REFERENCE_FOLDER = ROOT / "docs" / "reference"
REFERENCE = (REFERENCE_FOLDER / "metrics.md").read_text(encoding="utf-8")
# What a line in backticks begins with, if it is a command.
PROGRAMS = ("kubectl", "nats", "openssl", "proctor")
RULES = [
    rule
    for file in sorted((CHART / "files" / "rules").glob("*.yaml"))
    for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
DASHBOARDS = {
    file.stem: json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((CHART / "files" / "dashboards").glob("*.json"))
}
# Metrics of the process itself, which prometheus_client adds.
PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
# What Prometheus and its operator add to every metric.
TARGET_LABELS = {"pod", "namespace", "instance", "le"}


def documented() -> Mapping[str, tuple[str, set[str]]]:
    """Name to type and labels."""
    rows = re.findall(r"^\| `(proctor_\w+)` \| (\w+) \| ([^|]*) \|", REFERENCE, re.MULTILINE)
    of_workers = set(
        re.findall(r"`(proctor_\w+)`", REFERENCE.partition("## Worker")[2].partition("\n## ")[0])
    )
    return {
        name: (kind, set(re.findall(r"`(\w+)`", labels)) | ({"pool"} if name in of_workers else set()))
        for name, kind, labels in rows
    }


METRICS = documented()


def expressions() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for name, dashboard in DASHBOARDS.items():
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield f"{name}: {panel['title']}", target["expr"].replace("$__rate_interval", "5m")


def selectors(expression: Any) -> Iterator[Any]:
    """The vector selectors of a parsed expression."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression
    elif isinstance(expression, promql_parser.MatrixSelector):
        yield expression.vector_selector
    else:
        parts = [getattr(expression, name, None) for name in ("expr", "lhs", "rhs", "param")]
        arguments: Sequence[Any] = getattr(expression, "args", ())
        for part in (*parts, *arguments):
            if part is not None:
                yield from selectors(part)


def base_name(name: str) -> str:
    """A histogram is asked for by its buckets, its sum and its count."""
    return name if name in METRICS else re.sub(r"_(bucket|sum|count)$", "", name)


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_expression_asks_for_metrics_and_labels_that_exist(where: str, expression: str) -> None:
    parsed = promql_parser.parse(expression)
    found = list(selectors(parsed))
    assert found or "vector(" in expression, where
    known: set[str] = set(TARGET_LABELS)
    for selector in found:
        if selector.name in PROCESS:
            continue
        kind, labels = METRICS[base_name(selector.name)]
        assert (base_name(selector.name) != selector.name) is (kind == "histogram"), selector.name
        known |= labels
        assert {matcher.name for matcher in selector.matchers.matchers} <= labels | TARGET_LABELS
        if kind == "counter":
            assert re.search(rf"(rate|increase)\({selector.name}", expression), (
                "a counter is shown by its rate"
            )
    grouped = {
        label.strip()
        for group in re.findall(r"(?:by|on) \(([^)]*)\)", expression)
        for label in group.split(",")
    }
    assert grouped <= known, where


def test_every_alert_has_its_page_and_every_page_its_alert() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names))
    assert set(names) == {path.stem for path in RUNBOOKS.glob("*.md")}
    for rule in RULES:
        assert rule["annotations"]["runbook_url"] == f"docs/operations/runbooks/{rule['alert']}.md"
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"].endswith(".")


def test_labels_in_the_sentences_of_alerts_are_those_of_their_expressions() -> None:
    for rule in RULES:
        named = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        assert named <= set(re.findall(r"\w+", rule["expr"])), rule["alert"]


def test_commands_in_runbooks_exist() -> None:
    named = {
        name
        for page in RUNBOOKS.glob("*.md")
        for name in re.findall(r"`proctor ([a-z-]+)", page.read_text(encoding="utf-8"))
    }
    assert named
    assert named <= {name for places in PANELS.values() for name in places}


def test_settings_lines_of_logs_and_reasons_in_runbooks_exist() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "services").rglob("*.py"))
    settings = set(re.findall(r"^\| `(\w+)`", (REFERENCE_FOLDER / "settings.md").read_text(), re.MULTILINE))
    reasons = set(re.findall(r"`([A-Z_]+)`", (REFERENCE_FOLDER / "errors.md").read_text()))
    for page in RUNBOOKS.glob("*.md"):
        quoted = re.findall(r"`([^`]+)`", " ".join(page.read_text(encoding="utf-8").split()))
        for text in quoted:
            if text.startswith("PROCTOR_"):
                assert text in settings, page.name
            elif re.fullmatch(r"[A-Z]+(_[A-Z]+)+", text) and text not in ("WORK_POOL", "HF_TOKEN"):
                assert text in reasons, page.name
            elif re.fullmatch(r"[a-z]+( [a-z]+)+", text) and text.split()[0] not in PROGRAMS:
                assert f'"{text}"' in code, f"{page.name}: {text}"


def test_metrics_that_users_look_at_are_on_a_dashboard() -> None:
    shown = {
        base_name(selector.name)
        for _, text in expressions()
        for selector in selectors(promql_parser.parse(text))
    }
    # Shown per pool by the scheduler, or by an alert alone.
    beside = {
        *("proctor_backend_ready", "proctor_nats_connected", "proctor_nats_reconnects_total"),
        *("proctor_postgres_retries_total", "proctor_worker_concurrency", "proctor_worker_model_loading"),
        "proctor_worker_samples_in_flight",
    }
    assert set(METRICS) - shown <= beside


def test_dashboards_are_generated_and_can_be_imported() -> None:
    check = [sys.executable, str(ROOT / "deploy" / "helm" / "dashboards.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert set(DASHBOARDS) == {"overview", "run", "pool", "provider"}
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == len(DASHBOARDS)
    for dashboard in DASHBOARDS.values():
        assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
        positions = [tuple(panel["gridPos"].values())[:2] for panel in dashboard["panels"]]
        assert len(set(positions)) == len(positions)
        assert all(panel["datasource"]["uid"] == "${datasource}" for panel in dashboard["panels"])


def test_chart_installs_them_where_they_are_asked_for() -> None:
    objects = render(SETTINGS["production"])
    [rules] = [each for each in objects if each["kind"] == "PrometheusRule"]
    assert [rule["alert"] for group in rules["spec"]["groups"] for rule in group["rules"]] == [
        rule["alert"] for rule in RULES
    ]
    maps = {
        each["metadata"]["name"]: each
        for each in objects
        if each["kind"] == "ConfigMap" and "-dashboard-" in each["metadata"]["name"]
    }
    assert set(maps) == {f"proctor-dashboard-{name}" for name in DASHBOARDS}
    for name, dashboard in DASHBOARDS.items():
        assert json.loads(maps[f"proctor-dashboard-{name}"]["data"][f"{name}.json"]) == dashboard
        assert maps[f"proctor-dashboard-{name}"]["metadata"]["labels"]["grafana_dashboard"] == "1"
