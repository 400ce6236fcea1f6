"""Runs over providers with APIs of their own, through the whole stack; what they cannot do is reported."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from proctor.client import errors as client_errors
from proctor.stack.options import remote_pool
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.providers.pool import Pool, Provider
from tests.e2e.harness.entry_points import API, http, proctor
from tests.e2e.harness.run_ends import all_outcomes, completed, ended
from tests.fakes.eventually import eventually
from tests.fakes.providers import key_echoing_server as leaky_provider
from tests.fakes.providers.model_server import Fault, answer_text
from tests.fakes.providers.provider_server import SECRET, ProviderServer, serving
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.fakes.thorough_cases import first_cases
from tests.fakes.worker.provider_engines import ANTHROPIC, GEMINI, OLLAMA, Native
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, keyed_order, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = 12
WRONG_SECRET = "wrong/key+that-was-planted-by-a-test"
# What all forms of both keys have.
PLANTED = "that-was-planted-by-a-test"
NATIVES = (OLLAMA, GEMINI, ANTHROPIC)
HANGS = "hangs"
ERRORS = (307, 400, 401, 403, 404, 500)


async def say(request: web.Request) -> web.Response:
    """As a server behind the OpenAI protocol answers chats."""
    question = (await request.json())["messages"][-1]["content"]
    message = {"role": "assistant", "content": answer_text(question)}
    return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


# A server that no pool knows, for orders that name it.
ELSEWHERE = ProviderServer()
ELSEWHERE_ROUTES = (web.post("/v1/chat/completions", say),)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    async with AsyncExitStack() as opened:
        pools = []
        for native in NATIVES:
            address = await opened.enter_async_context(serving(ProviderServer(), native.routes))
            pools.append(pool_of(native, address, native.name, "GOOD_KEY"))
            if native is GEMINI:
                pools.append(pool_of(native, address, "wrong", "WRONG_KEY"))
                pools.append(pool_of(native, address, "keyless", "GOOGLE_API_KEY"))
        dripping = ProviderServer(fault=Fault("drip", seconds=1.0))
        address = await opened.enter_async_context(serving(dripping, OLLAMA.routes))
        pools.append(pool_of(OLLAMA, address, HANGS, ""))
        leaky = await opened.enter_async_context(serving(ProviderServer(), leaky_provider.ROUTES))
        pools.append(pool_of(GEMINI, leaky, "leaky", "WRONG_KEY"))
        pools.append(remote_pool(Provider("openai", leaky, "GOOD_KEY"), concurrency=8))
        elsewhere = await opened.enter_async_context(serving(ELSEWHERE, ELSEWHERE_ROUTES))
        state_dir = opened.enter_context(temporary_state_dir())
        secret = state_dir.parent / "mounted-secret"
        secret.write_text(f"{WRONG_SECRET}\n")
        environment = {**SHORT_TIMEOUTS, "GOOD_KEY": f"{SECRET}\n", "WRONG_KEY_FILE": str(secret)}
        environment |= {"PROCTOR_WORKER_LIST_MODELS_TIMEOUT_SECONDS": "3", "PROCTOR_WORKER_MAX_TRIES": "1"}
        environment["PROCTOR_ALLOWED_BASE_URLS"] = f"{elsewhere}/v1"
        order = StackOrder(rows=ROWS, environment=environment, pools=tuple(pools))
        yield await opened.enter_async_context(stack_harness(state_dir.parent, order))


def pool_of(native: Native, address: str, provider: str, api_key_env: str) -> Pool:
    called = Provider(provider, address, api_key_env)
    return remote_pool(called, name=provider, engine=native.name, concurrency=8)


@pytest.mark.parametrize("provider", ["ollama", "gemini", "anthropic"])
async def test_run_over_a_native_provider_answers_every_sample(stack: StackHarness, provider: str) -> None:
    run_id = await completed(stack, keyed_order(model=f"{provider}/fake"))
    outcomes = await all_outcomes(stack, run_id)
    assert len(outcomes) == ROWS
    run = await stack.client.run(run_id)
    assert dict(run.environment)["engine"] == provider


async def test_models_are_listed_live_and_a_provider_that_hangs_is_shown_as_such(
    stack: StackHarness,
) -> None:
    async def are_reported() -> bool:
        return known_pools(await listed(stack)) == {"leaky", *(native.name for native in NATIVES)}

    await eventually(are_reported, "the pools that can tell their models have done so")
    body = await listed(stack)
    assert [model["model"] for model in body["models"]] == [
        *(f"{native.name}/fake" for native in (ANTHROPIC, GEMINI)),
        "leaky/given-***",
        "ollama/fake",
    ]
    problems = {source["pool"]: source["problem"] for source in body["sources"]}
    assert "No answer within 2 s" in problems[HANGS] or "took longer" in problems[HANGS]
    assert "check the API key in WRONG_KEY" in problems["wrong"]
    assert "API key not configured for Gemini" in problems["keyless"]
    shown = await proctor(stack, "models")
    assert "ollama/fake" in shown.out
    assert PLANTED not in f"{body} {shown.out}"
    assert "pool wrong (wrong): " in shown.out
    [ollama] = (await proctor(stack, "models --provider ollama --json")).document["models"]
    assert (ollama["size_bytes"], ollama["quantization"]) == (1_321_098_329, "Q4_K_M")
    admin = (await http(stack, "GET", "/admin/models")).body["models"]
    assert {model["id"]: model["size_text"] for model in admin}["ollama/fake"] == "1.3 GB"
    assert (await http(stack, "GET", "/api/v1/models?provider=olama")).status == 400


async def listed(stack: StackHarness) -> Any:
    return (await http(stack, "GET", "/api/v1/models")).body


def known_pools(body: Any) -> set[str]:
    return {source["pool"] for source in body["sources"] if source["listed_at"]}


async def test_provider_that_hangs_is_given_up_in_the_end(stack: StackHarness) -> None:
    async def is_given_up() -> bool:
        [source] = (
            await stack.client.runs.ListModels(scheduler_pb2.ListModelsRequest(provider=HANGS))
        ).sources
        return "took longer than 3 s" in source.problem

    await eventually(is_given_up, "the worker gives the list up", 30.0)


@pytest.mark.parametrize(
    ("provider", "sentence"),
    [
        (
            "keyless",
            "API key not configured for Gemini: set GOOGLE_API_KEY where the worker runs (https://aistudio.",
        ),
        ("wrong", "check the API key in WRONG_KEY"),
    ],
)
async def test_key_that_is_missing_or_wrong_fails_the_run_and_says_so(
    stack: StackHarness, provider: str, sentence: str
) -> None:
    run = await ended(stack, await stack.submit(keyed_order(model=f"{provider}/fake")))
    assert (run.state, run.error.reason) == (run_pb2.RUN_STATE_FAILED, "PROVIDER_REFUSED")
    assert run.error.message.startswith("AI provider error: ")
    assert sentence in run.error.message
    assert await all_outcomes(stack, run.run_id) == []


async def test_server_that_an_order_names_is_asked_without_the_key_of_the_pool(stack: StackHarness) -> None:
    allowed = stack.stack.options.environment["PROCTOR_ALLOWED_BASE_URLS"]
    order = keyed_order(model="openai/any", base_url=allowed, prompt_form=run_pb2.PROMPT_FORM_CHAT)
    run_id = await completed(stack, order)
    assert len(await all_outcomes(stack, run_id)) == ROWS == len(ELSEWHERE.asked)
    assert not any("Authorization" in asked.headers or SECRET in str(asked) for asked in ELSEWHERE.asked)
    run = await stack.client.run(run_id)
    assert (run.order.base_url, run.environment["base_url"]) == (allowed, allowed)
    order.base_url = allowed.removesuffix("/v1")
    with pytest.raises(client_errors.Refused, match="is not allowed"):
        await stack.submit(order)


@first_cases(
    2,
    ("model", "sentence"),
    [
        *((f"error-{status}", f"answered {status} and said: I was given ***") for status in ERRORS),
        ("midway-400", "broke off its answer with 400 and said: I was given ***"),
        ("reason", "broke off its answer (***)"),
    ],
)
async def test_key_that_a_provider_repeats_in_an_error_is_reported_by_no_api(
    stack: StackHarness, model: str, sentence: str
) -> None:
    """What the stack keeps of it is looked through below."""
    order = keyed_order(model=f"leaky/{model}", limit=2, stream_answers="midway" in model)
    run = await ended(stack, await stack.submit(order))
    assert run.state == run_pb2.RUN_STATE_FAILED
    reported = await reported_by_all_apis(stack, run.run_id)
    assert sentence in reported
    assert PLANTED not in reported


@pytest.mark.parametrize("way", ["whole", "streamed"])
async def test_key_that_a_provider_repeats_in_an_answer_is_reported_by_no_api(
    stack: StackHarness, way: str
) -> None:
    order = keyed_order(model="leaky/answer", limit=2, stream_answers=way == "streamed")
    reported = await reported_by_all_apis(stack, await completed(stack, order))
    assert reported.count("I was given ***.") >= 4, "in outcomes and in the export"
    assert PLANTED not in reported


async def reported_by_all_apis(stack: StackHarness, run_id: str) -> str:
    shown = await http(stack, "GET", f"{API}/results/{run_id}")
    exported = await http(stack, "GET", f"{API}/results/{run_id}/export?format=json")
    end = await proctor(stack, f"watch {run_id}")
    outcomes = await all_outcomes(stack, run_id)
    run = await stack.client.run(run_id)
    return f"{run} {shown.body} {exported.body} {end.out} {end.err} {outcomes}"


async def test_order_with_a_key_is_refused_by_every_api_and_not_repeated(stack: StackHarness) -> None:
    params = {"extra_body": {"X-Api-Key": SECRET}}
    order = keyed_order()
    order.params.provider_params.update(params)
    with pytest.raises(client_errors.Refused, match=r"names a secret \(apikey\)") as refusal:
        await stack.submit(order)
    end = await proctor(stack, f"run --suite keyed --model openai/fake --param api_key={SECRET}")
    assert "names a secret (apikey)" in end.err
    config = {"provider": "openai", "model": "fake"}
    body = {"project_id": 1, "suite": "keyed", "config": config}
    in_params = await http(stack, "POST", f"{API}/run", json={**body, "params": params})
    in_config = await http(
        stack, "POST", f"{API}/run", json={**body, "config": {**config, "api_key": SECRET}}
    )
    assert (end.code != 0, in_params.status, in_config.status) == (True, 422, 422)
    assert PLANTED not in f"{refusal.value!r} {end.out} {end.err} {in_params.body} {in_config.body}"


async def test_planted_keys_are_in_no_log_row_or_message_of_the_stack(stack: StackHarness) -> None:
    """Servers repeated them in answers, errors, headers and lists of models; orders had one as well."""
    await ended(stack, await stack.submit(keyed_order(model="wrong/fake")))
    await completed(stack, keyed_order(model="gemini/fake"))
    files = [path for path in stack.stack.options.state_dir.rglob("*") if path.is_file()]
    assert files_with(files, b"check the API key in WRONG_KEY"), "what was recorded is found there"
    kept = b"\n".join([*map(content_of, files), (await rows_of(stack)).encode()])
    assert PLANTED.encode() not in kept


async def rows_of(stack: StackHarness) -> str:
    """Every row of every table: the files of Postgres may hold them compressed."""
    async with stack.database() as database:
        tables = await database.fetch(
            "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        rows = [
            row["text"]
            for table in tables
            for row in await database.fetch(f"SELECT kept::text AS text FROM {table['name']} AS kept")
        ]
    assert any("check the API key in WRONG_KEY" in row for row in rows)
    return "\n".join(rows)


def files_with(files: Sequence[Path], words: bytes) -> list[Path]:
    return [path for path in files if words in content_of(path)]


def content_of(path: Path) -> bytes:
    """Of a file that is gone by now, nothing: servers delete what they need no longer."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


async def test_what_a_provider_cannot_do_is_refused_when_it_is_ordered(stack: StackHarness) -> None:
    order = keyed_order(model="anthropic/fake", prompt_form=run_pb2.PROMPT_FORM_COMPLETION)
    with pytest.raises(client_errors.Refused) as refused:
        await stack.submit(order)
    assert refused.value.reason == "UNSUPPORTED"
    assert refused.value.facts["engine"] == "anthropic"
