"""The contract of external scalers is KEDA's: its package, its methods and its field numbers."""

from proctor.keda import externalscaler_pb2

FILE = externalscaler_pb2.DESCRIPTOR
# As published with KEDA 2.20 (pkg/scalers/externalscaler/externalscaler.proto).
FIELDS = {
    "ScaledObjectRef": {"name": 1, "namespace": 2, "scalerMetadata": 3},
    "IsActiveResponse": {"result": 1},
    "GetMetricSpecResponse": {"metricSpecs": 1},
    "MetricSpec": {"metricName": 1, "targetSize": 2, "targetSizeFloat": 3},
    "GetMetricsRequest": {"scaledObjectRef": 1, "metricName": 2},
    "GetMetricsResponse": {"metricValues": 1},
    "MetricValue": {"metricName": 1, "metricValue": 2, "metricValueFloat": 3},
}
METHODS = {
    "IsActive": ("ScaledObjectRef", "IsActiveResponse", False),
    "StreamIsActive": ("ScaledObjectRef", "IsActiveResponse", True),
    "GetMetricSpec": ("ScaledObjectRef", "GetMetricSpecResponse", False),
    "GetMetrics": ("GetMetricsRequest", "GetMetricsResponse", False),
}


def test_messages_have_the_published_numbers() -> None:
    assert FILE.package == "externalscaler"
    assert {
        name: {field.name: field.number for field in message.fields}
        for name, message in FILE.message_types_by_name.items()
    } == FIELDS


def test_service_has_the_published_methods() -> None:
    service = FILE.services_by_name["ExternalScaler"]
    assert service.full_name == "externalscaler.ExternalScaler"
    assert {
        method.name: (method.input_type.name, method.output_type.name, method.server_streaming)
        for method in service.methods
    } == METHODS


def test_a_message_of_keda_is_read_as_it_is_on_the_wire() -> None:
    """GetMetricsRequest of the pool `gpu`, encoded by hand from the numbers."""
    entry = b"\x0a\x04pool\x12\x03gpu"
    reference = b"\x0a\x01w\x12\x01n\x1a" + bytes([len(entry)]) + entry
    wire = b"\x0a" + bytes([len(reference)]) + reference + b"\x12\x07workers"
    request = externalscaler_pb2.GetMetricsRequest.FromString(wire)
    assert request.metricName == "workers"
    assert dict(request.scaledObjectRef.scalerMetadata) == {"pool": "gpu"}
