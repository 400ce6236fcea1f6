"""Channels to other services: over all replicas, patient with restarts, with the limits of servers."""

import json
from collections.abc import Sequence
from typing import Any

import grpc

from services.common.grpc.server import MAX_MESSAGE_BYTES
from services.common.traces import TRACEPARENT, current_trace, is_tracing

_RETRY_UNAVAILABLE = {
    "name": [{}],
    "retryPolicy": {
        # gRPC takes no more than 5, and treats a larger number as 5.
        "maxAttempts": 5,
        "initialBackoff": "0.1s",
        # Four pauses of at most 0.1 to 0.8 s: the caller's own deadline still decides.
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    },
}


class TracedCalls(grpc.aio.UnaryUnaryClientInterceptor):
    """Sends the trace context with each unary call, where there is one."""

    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:  # the library's own signature
        trace = current_trace()
        if trace:
            metadata = grpc.aio.Metadata(*(client_call_details.metadata or ()), (TRACEPARENT, trace))
            client_call_details = client_call_details._replace(metadata=metadata)
        return await continuation(client_call_details, request)


def open_channel(address: str, *, sent_once: Sequence[str] = ()) -> grpc.aio.Channel:
    """A channel to `host:port` that retries UNAVAILABLE, which may mean that only the answer was lost.

    The addresses of a name are called in turn. When a connection ends, the name is resolved again.

    `sent_once` are calls, as "package.Service/Method", that must not be sent a second time.
    """
    return grpc.aio.insecure_channel(
        address,
        interceptors=[TracedCalls()] if is_tracing() else None,
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            # gRPC waits for 30 s by default, and a rolling update replaces all replicas within that time.
            ("grpc.dns_min_time_between_resolutions_ms", 1000),
            # A local stack and a rolling update are back within a second; the usual backoff grows to minutes.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
            # A machine that vanishes or hangs ends no connection. Its calls fail after some 10 s, and go to
            # other replicas. By default gRPC waits a minute for the answer to a ping.
            ("grpc.keepalive_time_ms", 10_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.http2.ping_timeout_ms", 10_000),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.service_config", json.dumps(_service_config(sent_once))),
        ],
    )


def _service_config(sent_once: Sequence[str]) -> dict[str, object]:
    # The most specific name counts, and a method without a policy is not retried.
    names = [dict(zip(("service", "method"), call.split("/"), strict=True)) for call in sent_once]
    once = [{"name": names}] if names else []
    return {"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [*once, _RETRY_UNAVAILABLE]}
