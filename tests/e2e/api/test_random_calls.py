"""Random messages to each public method of gRPC, on a real stack: no call ends with an error of the server.

`PROCTOR_TEST_CALLS` is how many of each.
"""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor

from proctor.wire.uploads import send_chunks
from services.gateway.grpc_proxy.forwarded_services import RESULTS_FILES, SCHEDULER_FILES
from tests.e2e.harness.described_api import things_to_name
from tests.e2e.harness.random_messages import RandomMessages
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackOrder, stack_harness

CALLS = int(os.environ.get("PROCTOR_TEST_CALLS", "20"))
AT_A_TIME = 8
CALL_SECONDS = 60.0
# A watch goes on until its run ends.
WATCH_SECONDS = 0.5
MANY = {
    "PROCTOR_SCHEDULER_MAX_READS_PER_MINUTE": "0",
    "PROCTOR_SCHEDULER_MAX_REQUESTS_PER_MINUTE": "1000000",
    "PROCTOR_SCHEDULER_MAX_PENDING_RUNS_PER_USER": "1000",
}
ERRORS_OF_A_SERVER = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS}


def public_methods() -> Sequence[MethodDescriptor]:
    files = (*SCHEDULER_FILES, *RESULTS_FILES)
    services = [service for file in files for service in file.DESCRIPTOR.services_by_name.values()]
    # Last, because it changes the limits that the others go by.
    return sorted(
        (method for service in services for method in service.methods),
        key=lambda method: method.name == "SetLimits",
    )


async def twice(content: bytes) -> AsyncIterator[bytes]:
    yield content
    yield content


async def end_of(channel: Any, method: MethodDescriptor, content: bytes) -> tuple[grpc.StatusCode, str]:
    path = f"/{method.containing_service.full_name}/{method.name}"
    try:
        if method.client_streaming:
            await send_chunks(channel.stream_unary(path)(timeout=CALL_SECONDS), twice(content))
        elif method.server_streaming:
            seconds = WATCH_SECONDS if method.name == "WatchRun" else CALL_SECONDS
            async for _ in channel.unary_stream(path)(content, timeout=seconds):
                pass
        else:
            await channel.unary_unary(path)(content, timeout=CALL_SECONDS)
    except grpc.aio.AioRpcError as error:
        return error.code(), str(error.details())
    return grpc.StatusCode.OK, ""


@pytest.mark.thorough
@pytest.mark.timeout(1800.0)
async def test_no_message_of_a_user_is_an_error_of_the_server() -> None:
    found: Counter[grpc.StatusCode] = Counter()
    faults: dict[str, str] = {}
    slots = asyncio.Semaphore(AT_A_TIME)
    with temporary_state_dir() as state_dir:
        order = StackOrder(rows=40, environment=SHORT_TIMEOUTS | MANY)
        async with (
            stack_harness(state_dir.parent, order) as stack,
            grpc.aio.insecure_channel(stack.stack.gateway_grpc) as channel,
        ):
            known = [each for things in (await things_to_name(stack)).values() for each in things]

            async def call(method: MethodDescriptor, content: bytes) -> None:
                async with slots:
                    code, details = await end_of(channel, method, content)
                found[code] += 1
                if code in ERRORS_OF_A_SERVER:
                    faults.setdefault(f"{method.name}: {details}"[:200], content.hex()[:2000])

            for number, method in enumerate(public_methods()):
                messages = RandomMessages(number, known)
                contents = [
                    messages.message(method.input_type).SerializePartialToString() for _ in range(CALLS)
                ]
                await asyncio.gather(*(call(method, content) for content in contents))
    logging.getLogger(__name__).info("%s", found)
    assert faults == {}
    assert sum(found.values()) > CALLS
