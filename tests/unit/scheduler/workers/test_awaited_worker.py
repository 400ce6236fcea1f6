"""Causes of a run's wait: a worker that answers for its model, a provider that takes no requests."""

from datetime import UTC, datetime

from services.scheduler.workers.worker import Worker, awaited_server, awaited_worker

MODELS = ("vllm/a", "vllm/b", "vllm/c")


def a_worker(loaded: str = "", loading: str = "", *, ready: tuple[str, ...] = ()) -> Worker:
    return Worker(
        "w", "local", "vllm", models=MODELS, loaded_model=loaded, loading_model=loading, ready_models=ready
    )


def test_nothing_is_awaited_where_a_worker_has_the_model_or_shares_its_engine() -> None:
    assert awaited_worker("vllm/a", "local", [a_worker("vllm/a")]) is None
    assert awaited_worker("vllm/b", "local", [a_worker("vllm/a", ready=("vllm/a", "vllm/b"))]) is None


def test_worker_without_a_list_of_models_answers_for_any() -> None:
    assert awaited_worker("openai/x", "remote", [Worker("w", "remote", "openai", "openai")]) is None


def test_model_that_is_being_loaded_is_named() -> None:
    assert awaited_worker("vllm/b", "local", [a_worker("vllm/a", "vllm/b")]) == "loading vllm/b"


def test_what_the_workers_have_instead_is_named() -> None:
    has_another = [a_worker("vllm/a")]
    assert awaited_worker("vllm/b", "local", has_another) == (
        "waiting for the worker of pool local, which has vllm/a loaded"
    )
    several = [a_worker("vllm/a"), a_worker("vllm/c"), a_worker("vllm/a", "vllm/c")]
    assert awaited_worker("vllm/b", "local", several) == (
        "waiting for one of 3 workers of pool local, which have vllm/a, vllm/c loaded"
    )


def test_workers_of_other_pools_do_not_help() -> None:
    assert awaited_worker("vllm/a", "large", [a_worker("vllm/a")]) == "waiting for a worker of pool large"
    assert awaited_worker("vllm/a", "local", [a_worker()]) == "waiting for a worker of pool local"


def test_server_that_said_to_come_back_later_is_named_with_the_time() -> None:
    soon, later = (datetime(2026, 1, 1, 12, 3, second, tzinfo=UTC) for second in (8, 10))
    registry = [
        Worker("w", "remote", "openai", "openai", throttled_servers=held)
        for held in ({"": soon}, {"": later}, {})
    ]
    assert awaited_server("", "remote", registry) == (
        "waiting for openai: it throttles requests, and is asked again at 12:03:10 UTC"
    )


def test_other_servers_and_other_pools_are_waited_for_by_their_own_runs() -> None:
    until, url = datetime(2026, 1, 1, 12, 3, 10, tzinfo=UTC), "http://one.test/v1"
    registry = [Worker("w", "remote", "openai", "openai", throttled_servers={url: until})]
    assert awaited_server(url, "remote", registry) == (
        f"waiting for {url}: it throttles requests, and is asked again at 12:03:10 UTC"
    )
    assert awaited_server("", "remote", registry) is None
    assert awaited_server(url, "local", registry) is None
