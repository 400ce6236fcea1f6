"""Runs over providers with APIs of their own, through the whole stack; what they cannot do is told."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from proctor import client_errors
from proctor.stack.stack_options import RemotePool
from proctor.v1 import outcome_pb2, run_pb2
from tests.e2e.run_ends import all_outcomes, completed, ended
from tests.fakes.provider_engines import ANTHROPIC, GEMINI, OLLAMA, Native
from tests.fakes.provider_server import SECRET, ProviderServer, serving
from tests.fakes.state_dir import temporary_state_dir
from tests.whole_stack import IMPATIENT, StackOrder, WholeStack, keyed_order, whole_stack

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = 12
WRONG_SECRET = "wrong-key-that-was-planted-by-a-test"
NATIVES = (OLLAMA, GEMINI, ANTHROPIC)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing() -> AsyncIterator[WholeStack]:
    async with AsyncExitStack() as opened:
        pools = []
        for native in NATIVES:
            address = await opened.enter_async_context(serving(ProviderServer(), native.routes))
            pools.append(pool_of(native, address, native.name, "GOOD_KEY"))
            if native is GEMINI:
                pools.append(pool_of(native, address, "wrong", "WRONG_KEY"))
                pools.append(pool_of(native, address, "keyless", "GOOGLE_API_KEY"))
        environment = {**IMPATIENT, "GOOD_KEY": f"{SECRET}\n", "WRONG_KEY": WRONG_SECRET}
        state_dir = opened.enter_context(temporary_state_dir())
        order = StackOrder(rows=ROWS, environment=environment, pools=tuple(pools))
        yield await opened.enter_async_context(whole_stack(state_dir.parent, order))


def pool_of(native: Native, address: str, provider: str, key_variable: str) -> RemotePool:
    return RemotePool(
        address, name=provider, engine=native.name, provider=provider, api_key_env=key_variable, concurrency=8
    )


@pytest.mark.parametrize("provider", ["ollama", "gemini", "anthropic"])
async def test_run_over_a_native_provider_answers_every_sample(standing: WholeStack, provider: str) -> None:
    run_id = await completed(standing, keyed_order(model=f"{provider}/fake"))
    outcomes = await all_outcomes(standing, run_id)
    assert len(outcomes) == ROWS
    run = await standing.client.get_run(run_id)
    assert dict(run.environment)["engine"] == provider


@pytest.mark.parametrize(
    ("provider", "sentence"),
    [
        ("keyless", "API key not configured for Gemini: set GOOGLE_API_KEY where the worker runs."),
        ("wrong", "check the API key in WRONG_KEY"),
    ],
)
async def test_key_that_is_missing_or_wrong_fails_the_run_and_says_so(
    standing: WholeStack, provider: str, sentence: str
) -> None:
    run = await ended(standing, await standing.submit(keyed_order(model=f"{provider}/fake")))
    assert run.state == run_pb2.RUN_STATE_FAILED
    assert sentence in run.error.message
    outcomes = await all_outcomes(standing, run.run_id)
    assert {outcome.outcome.failure.failure_class for outcome in outcomes} == {
        outcome_pb2.FAILURE_CLASS_REFUSED
    }


async def test_planted_keys_are_in_no_log_row_or_message_of_the_stack(standing: WholeStack) -> None:
    """The server repeats the wrong one in its errors."""
    await ended(standing, await standing.submit(keyed_order(model="wrong/fake")))
    await completed(standing, keyed_order(model="gemini/fake"))
    files = [path for path in standing.stack.options.state_dir.rglob("*") if path.is_file()]
    assert files_with(files, b"check the API key in WRONG_KEY"), "what was recorded is found there"
    assert files_with(files, SECRET.encode()) == []
    assert files_with(files, WRONG_SECRET.encode()) == []


def files_with(files: Sequence[Path], words: bytes) -> list[Path]:
    return [path for path in files if words in path.read_bytes()]


async def test_what_a_provider_cannot_do_is_refused_when_it_is_ordered(standing: WholeStack) -> None:
    order = keyed_order(model="anthropic/fake", prompt_form=run_pb2.PROMPT_FORM_COMPLETION)
    with pytest.raises(client_errors.Refused, match="anthropic only chats"):
        await standing.submit(order)
