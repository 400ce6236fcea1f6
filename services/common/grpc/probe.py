"""Asks a gRPC server for its health: `python -m services.common.grpc.probe 127.0.0.1:8082` ends with 0 or 1.

For health checks by a command in the image, as those of compose. Kubernetes asks by itself.
"""

import sys

import grpc
from grpc_health.v1 import health_pb2

TIMEOUT_SECONDS = 5.0
_PATH = "/grpc.health.v1.Health/Check"


def problem_of(address: str) -> str:
    """Why the server takes no work, in one sentence; "" where it does. `address`: host:port without TLS."""
    with grpc.insecure_channel(address) as channel:
        check: grpc.UnaryUnaryMultiCallable[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse]
        check = channel.unary_unary(
            _PATH,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_SECONDS)
        except grpc.RpcError as error:
            return f"{address} does not answer: {error.code().name}."
    name = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    is_serving = answer.status == health_pb2.HealthCheckResponse.SERVING
    return "" if is_serving else f"{address} takes no work: {name}."


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("Give one address, host:port.\n")
        return 2
    problem = problem_of(arguments[0])
    if problem:
        sys.stderr.write(f"{problem}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
