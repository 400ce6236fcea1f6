"""Channels to other services: patient with restarts, with the same message limits as the servers."""

import json

import grpc

from services.common.grpc_errors import remote_error
from services.common.grpc_server import MAX_MESSAGE_BYTES

__all__ = ["open_channel", "remote_error"]

_RETRY_UNAVAILABLE = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}


def open_channel(address: str) -> grpc.aio.Channel:
    """A channel to `host:port`; every call of our services can be repeated, so UNAVAILABLE is retried."""
    return grpc.aio.insecure_channel(
        address,
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.service_config", json.dumps(_RETRY_UNAVAILABLE)),
        ],
    )
