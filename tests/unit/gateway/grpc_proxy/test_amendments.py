"""A request that names its user has the user that the gateway has found, whatever it said."""

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.user import Caller
from services.gateway.grpc_proxy.amendments import AMENDMENTS
from services.gateway.grpc_proxy.forwarded_services import RESULTS_FILES, SCHEDULER_FILES
from services.gateway.http.errors import SuiteVersionNamed

# Of any user, whom the request chooses: what one stores, and the keys of one.
OF_ANY_USER = {
    "GetStorage",
    "CreateKey",
    "ListKeys",
    "ListAuditRecords",
    "ListMappings",
    "ListSchedules",
    "SetProjectMember",
    "RemoveProjectMember",
}


def names_its_user(method: MethodDescriptor) -> bool:
    fields = method.input_type.fields_by_name
    header = fields["header"].message_type if "header" in fields else None
    return "user" in fields or (header is not None and "user" in header.fields_by_name)


METHODS = [
    method
    for file in (*SCHEDULER_FILES, *RESULTS_FILES)
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]


def test_every_request_that_names_its_user_is_amended() -> None:
    methods = {method.name for method in METHODS if names_its_user(method)}
    assert methods >= {"SubmitRun", "EstimateRun", "UploadTasks"}
    assert methods - OF_ANY_USER <= set(AMENDMENTS)


def test_a_verified_name_replaces_the_one_that_an_estimate_gives() -> None:
    request = scheduler_pb2.EstimateRunRequest(user="eve").SerializeToString()
    amended = AMENDMENTS["EstimateRun"](request, Caller("ann", is_verified=True))
    assert scheduler_pb2.EstimateRunRequest.FromString(amended).user == "ann"


def test_every_request_that_names_a_benchmark_is_of_all_its_versions() -> None:
    """As over REST, where a name with a version is refused too."""
    methods = [method for method in METHODS if "benchmark" in method.input_type.fields_by_name]
    assert {method.name for method in methods} >= {"CompareRuns", "PlanSize"}
    for method in methods:
        request = GetMessageClass(method.input_type)(benchmark="mine@2").SerializeToString()
        with pytest.raises(SuiteVersionNamed):
            AMENDMENTS[method.name](request, Caller("ann", is_verified=True))
