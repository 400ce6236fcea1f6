"""Writes the Grafana dashboards of the chart: overview, run, pool and provider."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "proctor" / "files" / "dashboards"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT = 8, 8
COLUMNS = 24 // WIDTH
Document = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """A chart over time, of queries with their legends; a `stat` shows the last value alone."""

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    meaning: str = ""
    kind: str = "timeseries"


def rate(counter: str, by: str, where: str = "") -> str:
    selector = f"{{{where}}}" if where else ""
    return f"sum by ({by}) (rate({counter}{selector}[$__rate_interval]))"


def highest(gauge: str, by: str, where: str = "") -> str:
    """Every replica of the scheduler shows the same."""
    selector = f"{{{where}}}" if where else ""
    return f"max by ({by}) ({gauge}{selector})"


def quantiles(histogram: str, where: str = "") -> list[tuple[str, str]]:
    selector = f"{{{where}}}" if where else ""
    inside = f"sum by (le) (rate({histogram}_bucket{selector}[$__rate_interval]))"
    return [(f"histogram_quantile({share}, {inside})", f"p{share * 100:g}") for share in (0.5, 0.9, 0.99)]


OVERVIEW = (
    Panel("Leaders", [("sum(proctor_scheduler_leading)", "leading")], kind="stat", meaning="Always 1."),
    Panel("Slots", [("max(proctor_run_slots)", "slots")], kind="stat"),
    Panel(
        "Samples per second", [("sum(rate(proctor_samples_total[$__rate_interval]))", "samples")], kind="stat"
    ),
    Panel("Runs", [(highest("proctor_queue_runs", "state, priority"), "{{state}} {{priority}}")]),
    Panel("Oldest wait", [(highest("proctor_queue_oldest_wait_seconds", "priority"), "{{priority}}")], "s"),
    Panel(
        "Wait for a slot (90 % of runs)",
        [
            (
                f"histogram_quantile(0.9, {rate('proctor_queue_wait_seconds_bucket', 'le, priority')})",
                "{{priority}}",
            )
        ],
        "s",
    ),
    Panel(
        "Finished runs",
        [(rate("proctor_runs_finished_total", "state, reason"), "{{state}} {{reason}}")],
        "ops",
    ),
    Panel(
        "HTTP requests",
        [(rate("proctor_http_request_duration_seconds_count", "status"), "{{status}}")],
        "reqps",
    ),
    Panel("Time of HTTP requests", quantiles("proctor_http_request_duration_seconds"), "s"),
    Panel("HTTP requests in progress", [("sum by (pod) (proctor_http_requests_in_progress)", "{{pod}}")]),
    Panel("Time of gRPC calls", quantiles("proctor_rpc_duration_seconds"), "s"),
    Panel(
        "gRPC calls that failed",
        [(rate("proctor_rpc_duration_seconds_count", "code", 'code!="OK"'), "{{code}}")],
    ),
    Panel(
        "Connections to Postgres in use",
        [
            (
                (
                    'sum by (pod, purpose) (proctor_postgres_connections{state="open"}) - '
                    'sum by (pod, purpose) (proctor_postgres_connections{state="idle"})'
                ),
                "{{pod}} {{purpose}}",
            )
        ],
    ),
    Panel("Memory", [('sum by (pod) (process_resident_memory_bytes{pod=~".+"})', "{{pod}}")], "bytes"),
    Panel("CPU", [(rate("process_cpu_seconds_total", "pod"), "{{pod}}")], "percentunit"),
    Panel("Releases", [("count by (service, release) (proctor_build_info)", "{{service}} {{release}}")]),
)
RUN = (
    Panel("Samples", [(rate("proctor_samples_total", "result"), "{{result}}")], "ops"),
    Panel("Shards sent", [(rate("proctor_dispatched_shards_total", "pool"), "{{pool}}")], "ops"),
    Panel("Shards by their end", [(rate("proctor_shards_total", "disposition"), "{{disposition}}")], "ops"),
    Panel("Time of a shard", quantiles("proctor_shard_duration_seconds"), "s"),
    Panel(
        "Shards again",
        [
            (rate("proctor_shard_redeliveries_total", "pool"), "redelivered {{pool}}"),
            ("sum(rate(proctor_reconciled_shards_total[$__rate_interval]))", "lost messages"),
        ],
        "ops",
        "After a worker or an engine has died, and after messages were lost.",
    ),
    Panel("Outcomes", [(rate("proctor_outcomes_total", "result"), "{{result}}")], "ops"),
    Panel("Recording lag", quantiles("proctor_recording_lag_seconds"), "s"),
    Panel("Time to record a batch", quantiles("proctor_recording_duration_seconds"), "s"),
    Panel(
        "Outcomes again",
        [("sum(rate(proctor_outcome_redeliveries_total[$__rate_interval]))", "messages")],
        "ops",
    ),
    Panel("Messages in streams", [(highest("proctor_stream_messages", "stream"), "{{stream}}")]),
    Panel(
        "Use of streams",
        [
            (
                (
                    f"{highest('proctor_stream_bytes', 'stream')} / "
                    f"{highest('proctor_stream_limit_bytes', 'stream')}"
                ),
                "{{stream}}",
            )
        ],
        "percentunit",
    ),
    Panel("Time to close a run", quantiles("proctor_close_duration_seconds"), "s"),
)
_POOL = 'pool=~"$pool"'
POOL = (
    Panel(
        "Workers",
        [
            (highest("proctor_pool_workers_desired", "pool", _POOL), "{{pool}} needed"),
            (highest("proctor_pool_workers", "pool, state", _POOL), "{{pool}} {{state}}"),
        ],
    ),
    Panel(
        "Backlog",
        [(highest("proctor_pool_backlog_seconds", "pool, model", _POOL), "{{pool}} {{model}}")],
        "s",
        "Time that one worker needs for it.",
    ),
    Panel(
        "Samples left",
        [(highest("proctor_pool_backlog_samples", "pool, model", _POOL), "{{pool}} {{model}}")],
    ),
    Panel(
        "Samples in flight",
        [
            (highest("proctor_pool_samples_in_flight", "pool", _POOL), "{{pool}}"),
            (highest("proctor_pool_concurrency", "pool", _POOL), "{{pool}} most"),
        ],
    ),
    Panel("Samples per second", [(rate("proctor_samples_total", "pool", _POOL), "{{pool}}")], "ops"),
    Panel(
        "Tokens per second", [(rate("proctor_tokens_total", "pool, kind", _POOL), "{{pool}} {{kind}}")], "ops"
    ),
    Panel("Time to the first token", quantiles("proctor_first_token_seconds", _POOL), "s"),
    Panel("Time between tokens", quantiles("proctor_between_tokens_seconds", _POOL), "s"),
    Panel("Time of an answer", quantiles("proctor_answer_duration_seconds", _POOL), "s"),
    Panel("KV cache", [(f"proctor_engine_kv_cache_usage_ratio{{{_POOL}}}", "{{pod}}")], "percentunit"),
    Panel(
        "GPU memory",
        [(f"sum by (pod, gpu, state) (proctor_gpu_memory_bytes{{{_POOL}}})", "{{pod}} {{gpu}} {{state}}")],
        "bytes",
    ),
    Panel(
        "Requests in engines",
        [(f"sum by (pool, state) (proctor_engine_requests{{{_POOL}}})", "{{pool}} {{state}}")],
    ),
    Panel("Time to load a model", quantiles("proctor_model_load_duration_seconds", _POOL), "s"),
)
PROVIDER = (
    Panel("429", [(rate("proctor_rate_limited_requests_total", "pool", _POOL), "{{pool}}")], "reqps"),
    Panel(
        "Requests that wait for their rate limit",
        [(f"sum by (pool) (proctor_worker_requests_waiting_for_quota{{{_POOL}}})", "{{pool}}")],
    ),
    Panel("Request retries", [(rate("proctor_request_retries_total", "pool", _POOL), "{{pool}}")], "reqps"),
    Panel(
        "Failed samples",
        [
            (
                rate("proctor_samples_total", "pool, result", f'{_POOL}, result!="answered"'),
                "{{pool}} {{result}}",
            )
        ],
        "ops",
    ),
    Panel("Time of an answer", quantiles("proctor_answer_duration_seconds", _POOL), "s"),
    Panel(
        "Cost of finished runs per day",
        [
            (
                f"sum by (pool, currency) (increase(proctor_run_cost_total{{{_POOL}}}[1d]))",
                "{{pool}} {{currency}}",
            )
        ],
    ),
)
DASHBOARDS = {
    "overview": ("Proctor overview", OVERVIEW),
    "run": ("Proctor runs", RUN),
    "pool": ("Proctor pools", POOL),
    "provider": ("Proctor providers", PROVIDER),
}


def dashboard(name: str) -> Document:
    title, panels = DASHBOARDS[name]
    has_pools = any("$pool" in query for panel in panels for query, _ in panel.queries)
    return {
        "uid": f"proctor-{name}",
        "title": title,
        "tags": ["proctor"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_source(), *([_pools()] if has_pools else [])]},
        "panels": [_panel(number, panel) for number, panel in enumerate(panels)],
    }


def _source() -> Document:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}


def _pools() -> Document:
    query = "label_values(proctor_pool_workers, pool)"
    return {
        "name": "pool",
        "type": "query",
        "label": "Pool",
        "datasource": SOURCE,
        "query": {"query": query, "refId": "pools"},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(number: int, panel: Panel) -> Document:
    targets = [
        {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
        for index, (expression, legend) in enumerate(panel.queries)
    ]
    row, column = divmod(number, COLUMNS)
    return {
        "id": number + 1,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.meaning,
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def text_of(name: str) -> str:
    return json.dumps(dashboard(name), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed files")
    paths = {name: FOLDER / f"{name}.json" for name in DASHBOARDS}
    if parser.parse_args().check:
        stale = [
            name for name, path in paths.items() if not path.exists() or path.read_text() != text_of(name)
        ]
        if stale:
            print(f"The dashboards are not current: {', '.join(stale)}. Run `make docs`.")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, path in paths.items():
        path.write_text(text_of(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
