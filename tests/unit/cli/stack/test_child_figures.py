"""Figures of the local stack's services, out of their metrics."""

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from proctor.cli.stack.child_figures import ChildFigures, read_figures
from proctor.stack.state import ChildState, StackState
from proctor.stack.supervision.addresses import choose_addresses


@pytest.fixture
def worker_address() -> Iterator[str]:
    """Metrics as a worker serves them."""
    registry = CollectorRegistry()
    Gauge("process_resident_memory_bytes", "-", ["pool"], registry=registry).labels("a").set(3 * 1024 * 1024)
    Gauge("proctor_worker_concurrency", "-", ["pool"], registry=registry).labels("a").set(8)
    samples = Counter("proctor_samples_total", "-", ["pool", "result"], registry=registry)
    for result, count in (("answered", 90), ("timeout", 7), ("engine", 3)):
        samples.labels("a", result).inc(count)
    Counter("proctor_rate_limited_requests_total", "-", ["pool"], registry=registry).labels("a").inc(2)
    [address] = choose_addresses(1)
    host, _, port = address.partition(":")
    server, thread = start_http_server(int(port), host, registry)
    yield address
    server.shutdown()
    server.server_close()
    thread.join(10)


async def test_figures_are_read_from_each_child_that_answers(worker_address: str) -> None:
    [silent] = choose_addresses(1)
    children = {
        "worker.a": ChildState(1, "ready", 0, "log", worker_address),
        "results": ChildState(2, "ready", 0, "log", silent),
        "nats": ChildState(3, "ready", 0, "log"),
    }
    found = await read_figures(StackState(1, "running", "", "", "", "", children=children))
    assert found == {"worker.a": ChildFigures(3 * 1024 * 1024, answered=90, failed=10, rate_limited=2)}
    assert found["worker.a"].text == "3 MiB, 90 samples, 10 failed, 2 rate limited"


def test_service_without_samples_shows_its_memory_alone() -> None:
    assert ChildFigures(5 * 1024 * 1024).text == "5 MiB"
    assert ChildFigures().text == ""
