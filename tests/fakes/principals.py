"""Callers that tests name: an operator, and the metadata of the gateway's calls for one."""

from proctor.values.run import Principal
from services.common.grpc.principal import principal_metadata

OPERATOR = Principal("operator", is_operator=True)
OPERATOR_METADATA = principal_metadata(OPERATOR)
