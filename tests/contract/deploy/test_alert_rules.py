"""promtool evaluates each alert: over series for which it must fire, and over some for which it must not."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.contract.deploy.promtool import promtool
from tests.harness.helm import CHART

RULES = CHART / "files" / "rules" / "proctor.yaml"
ALERTS = [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
Series = Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """Series by name, each with a value a minute in the notation of promtool; the alert fires by `minutes`.

    Of another length of time, or of these other values, it does not.
    """

    minutes: int
    fires: Series
    does_not: Series


def buckets(name: str, upper: str) -> Series:
    """Ten observations a minute, all of them in one bucket."""
    bounds = ("10", "30", "60", "300", "600", "+Inf")
    is_above = [bound == "+Inf" or float(bound) >= float(upper) for bound in bounds]
    return {
        f'{name}_bucket{{le="{bound}"}}': f"0+{10 if above else 0}x120"
        for bound, above in zip(bounds, is_above, strict=True)
    }


DESIRED, READY = 'proctor_pool_workers_desired{pool="p"}', 'proctor_pool_workers{pool="p",state="ready"}'
LOADING = 'proctor_pool_workers{pool="p",state="loading"}'
ANSWERED = 'proctor_samples_total{pool="p",result="answered"}'
FAILED = 'proctor_samples_total{pool="p",result="timeout"}'
LIMITED = 'proctor_rate_limited_requests_total{pool="p"}'
OK, ERROR = (f'proctor_http_request_duration_seconds_count{{status="{status}"}}' for status in (200, 503))
OPEN, IDLE, LIMIT = (
    f'proctor_postgres_connections{{pod="s",purpose="scheduler",state="{state}"}}'
    for state in ("open", "idle", "limit")
)
BYTES, MAX_BYTES = 'proctor_stream_bytes{stream="OUTCOMES"}', 'proctor_stream_limit_bytes{stream="OUTCOMES"}'
WRITABLE = 'proctor_stream_writable{pod="a",stream="OUTCOMES"}'
DISK = 'proctor_disk_used_ratio{disk="the disk of Postgres",pod="a"}'
CASES: Mapping[str, Case] = {
    "ProctorWithoutLeader": Case(
        5,
        {'proctor_scheduler_leading{pod="a"}': "1 0x10", 'proctor_scheduler_leading{pod="b"}': "0x10"},
        # Another replica takes over.
        {'proctor_scheduler_leading{pod="a"}': "1 0x10", 'proctor_scheduler_leading{pod="b"}': "0 0 1x10"},
    ),
    "ProctorBackendNotReady": Case(
        5,
        {'proctor_backend_ready{backend="results",pod="a"}': "1 0x10"},
        {
            'proctor_backend_ready{backend="results",pod="a"}': "1 0x10",
            'proctor_backend_ready{backend="results",pod="b"}': "1x10",
        },
    ),
    "ProctorGatewayErrors": Case(30, {OK: "0+90x60", ERROR: "0+10x60"}, {OK: "0+99x60", ERROR: "0+1x60"}),
    "ProctorNatsDisconnected": Case(
        5, {'proctor_nats_connected{pod="w"}': "0x10"}, {'proctor_nats_connected{pod="w"}': "1x2 0 1x10"}
    ),
    "ProctorPostgresConnectionsUsedUp": Case(
        15, {OPEN: "8x30", IDLE: "0x30", LIMIT: "8x30"}, {OPEN: "8x30", IDLE: "1x30", LIMIT: "8x30"}
    ),
    "ProctorQueueWaitsLong": Case(
        10,
        {'proctor_queue_oldest_wait_seconds{priority="high"}': "4000x20"},
        {'proctor_queue_oldest_wait_seconds{priority="low"}': "4000x20"},
    ),
    "ProctorRunsFail": Case(
        60,
        {'proctor_runs_finished_total{state="failed",reason="R"}': "0x10 0+1x60"},
        {'proctor_runs_finished_total{state="completed",reason=""}': "0x10 0+1x60"},
    ),
    "ProctorPoolWithoutWorkers": Case(
        30,
        {DESIRED: "2x60", READY: "0x60", LOADING: "0x60"},
        {DESIRED: "2x60", READY: "0x60", LOADING: "1x60"},
    ),
    "ProctorPoolTooSmall": Case(
        90,
        {DESIRED: "4x120", READY: "2x120", LOADING: "1x120"},
        {DESIRED: "4x120", READY: "3x120", LOADING: "1x120"},
    ),
    "ProctorModelCannotLoad": Case(
        10,
        {'proctor_model_load_duration_seconds_count{pool="p",result="refused"}': "0x4 1x20"},
        {'proctor_model_load_duration_seconds_count{pool="p",result="loaded"}': "0x4 1x20"},
    ),
    "ProctorSamplesFail": Case(
        40, {ANSWERED: "0+90x60", FAILED: "0+10x60"}, {ANSWERED: "0+99x60", FAILED: "0+1x60"}
    ),
    "ProctorRateLimited": Case(
        60, {ANSWERED: "0+100x90", LIMITED: "0+30x90"}, {ANSWERED: "0+100x90", LIMITED: "0+9x90"}
    ),
    "ProctorShardsRedelivered": Case(
        30,
        {'proctor_shard_redeliveries_total{pool="p"}': "0+1x60"},
        {'proctor_shard_redeliveries_total{pool="p"}': "0x20 1x60"},
    ),
    "ProctorRecordingLags": Case(
        40, buckets("proctor_recording_lag_seconds", "60"), buckets("proctor_recording_lag_seconds", "10")
    ),
    "ProctorOutcomesNotRecorded": Case(
        20,
        {"proctor_outcome_messages_unrecorded_total": "0+12x30"},
        {"proctor_outcome_messages_unrecorded_total": "0x5 12x30"},
    ),
    "ProctorStreamFull": Case(10, {BYTES: "90x20", MAX_BYTES: "100x20"}, {BYTES: "90x20", MAX_BYTES: "0x20"}),
    "ProctorStreamRefusesWrites": Case(5, {WRITABLE: "0x10"}, {WRITABLE: "1x2 0 1x10"}),
    "ProctorDiskFills": Case(2, {DISK: "0.8x10"}, {DISK: "0.79x10"}),
    "ProctorClosingSlow": Case(
        60, buckets("proctor_close_duration_seconds", "600"), buckets("proctor_close_duration_seconds", "60")
    ),
}
# A leader is missing in most cases, which have no series of one.
LEADER = {'proctor_scheduler_leading{pod="leader"}': "1x150"}


def test_promtool_accepts_the_rules() -> None:
    done = run_promtool("check", "rules", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    assert list(CASES) == ALERTS


@pytest.mark.parametrize("alert", CASES)
def test_alert_fires_when_it_must_and_no_other_does(alert: str, tmp_path: Path) -> None:
    case = CASES[alert]
    expect(tmp_path, case, case.fires, alert, case.minutes)


@pytest.mark.parametrize("alert", CASES)
def test_alert_does_not_fire_otherwise(alert: str, tmp_path: Path) -> None:
    case = CASES[alert]
    expect(tmp_path, case, case.does_not, None, case.minutes)


def expect(folder: Path, case: Case, series: Series, alert: str | None, minutes: int) -> None:
    has_leader = any(name.startswith("proctor_scheduler_leading") for name in case.fires)
    given = series if has_leader else {**series, **LEADER}
    fired = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert else []
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in given.items()],
        "promql_expr_test": [
            {
                "expr": 'sum by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": f"{minutes}m",
                "exp_samples": fired,
            }
        ],
    }
    file = folder / "test.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]})
    )
    done = run_promtool("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def run_promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (str(promtool()), *arguments), capture_output=True, text=True, check=False, timeout=60
    )
