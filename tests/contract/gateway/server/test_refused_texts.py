"""A text or number that Postgres or protobuf cannot hold is refused where it arrives, in each parameter."""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from fastapi.dependencies.utils import get_flat_dependant

from services.gateway.server.app import served_routes
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness

ID = "00000000-0000-4000-8000-000000000000"
# What a description says of a text: it holds no NUL character.
NO_NUL = r"\x00"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as opened:
        yield opened


def texts(described: Mapping[str, Any], place: str) -> Iterator[tuple[str, str, str]]:
    """Method, path and name of each parameter whose text may hold no NUL."""
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            for each in operation.get("parameters", ()):
                if each["in"] == place and NO_NUL in json.dumps(each["schema"]).replace("\\\\", "\\"):
                    yield method, path, each["name"]


def filled(path: str, **values: str) -> str:
    path = path.replace("{benchmark_id}", f"bm_{ID.replace('-', '')}")
    return re.sub(r"{(\w+)(?::\w+)?}", lambda found: values.get(found[1], "1"), path)


async def described(harness: GatewayHarness, session: aiohttp.ClientSession) -> Mapping[str, Any]:
    async with session.get(f"{harness.http}/openapi.json") as response:
        found: Mapping[str, Any] = json.loads(await response.text())
    return found


async def test_a_nul_in_a_parameter_is_refused(harness: GatewayHarness) -> None:
    answered = {}
    # A body of its own type, so that nothing else is wrong with an upload.
    headers = {"Content-Type": "application/octet-stream"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for method, path, name in texts(await described(harness, session), "query"):
            url = f"{harness.http}{filled(path, job_id=ID)}?{name}=a%00b"
            async with session.request(method, url, data=b"{}" if method != "get" else None) as response:
                answered[method, path, name] = response.status
    assert ("post", "/admin/datasets/upload/preview", "target") in answered
    assert len(answered) > 40
    # 404: the run of the path is looked up first.
    assert {each: status for each, status in answered.items() if status not in (400, 404, 422)} == {}


def numbers() -> Iterator[tuple[str, str, str]]:
    """Method, path and name of each parameter of a route that is a whole number."""
    for route in served_routes():
        dependant = getattr(route, "dependant", None)
        for method in getattr(route, "methods", None) or ():
            for each in get_flat_dependant(dependant).query_params if dependant else ():
                if each.field_info.annotation in (int, int | None):
                    yield method, getattr(route, "path", ""), each.alias


async def test_a_number_that_no_contract_holds_is_refused(harness: GatewayHarness) -> None:
    answered = {}
    async with aiohttp.ClientSession(headers={"Origin": harness.http}) as session:
        for method, path, name in numbers():
            url = f"{harness.http}{filled(path, job_id=ID)}?{name}={'9' * 30}"
            async with session.request(method, url, allow_redirects=False) as response:
                answered[method, path, name] = response.status
    assert ("GET", "/datasets", "project_id") in answered
    # 404: the run of the path is looked up first. 415: so is the type of the body.
    assert {each: status for each, status in answered.items() if status not in (400, 404, 415, 422)} == {}


@pytest.mark.parametrize("text", [r'"a\u0000b"', r'"a\ud800b"'], ids=["nul", "half a character"])
async def test_what_is_not_storable_in_a_body_is_refused_by_its_field(
    harness: GatewayHarness, text: str
) -> None:
    answered = {}
    async with aiohttp.ClientSession(headers={"Content-Type": "application/json"}) as session:
        document = await described(harness, session)
        for method, path, name in texts_of_bodies(document):
            body = f'{{"{name}": {text}}}'
            url = f"{harness.http}{filled(path, job_id=ID)}"
            async with session.request(method, url, data=body.encode()) as response:
                problem = await response.json(content_type=None)
            answered[method, path, name] = (response.status, name in json.dumps(problem))
    assert len(answered) > 30
    named = ((422, True), (400, True))
    assert {each: found for each, found in answered.items() if found not in named} == {}


def texts_of_bodies(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Method, path and name of each text field of a body."""
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            for field, schema in schemas.get(name, {}).get("properties", {}).items():
                if schema.get("type") == "string" and NO_NUL in schema.get("pattern", ""):
                    yield method, path, field


def fields_of_bodies(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Method, path and name of each field of a body."""
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            for field in schemas.get(name, {}).get("properties", {}):
                yield method, path, field


async def test_null_is_taken_or_refused_in_each_field_of_a_body(harness: GatewayHarness) -> None:
    answered = {}
    async with aiohttp.ClientSession() as session:
        document = await described(harness, session)
        for method, path, name in fields_of_bodies(document):
            url = f"{harness.http}{filled(path, job_id=ID)}"
            async with session.request(method, url, json={name: None}) as response:
                text = await response.text()
            # No stand-in for the backend has it; the request was taken.
            is_passed_on = "Method not found!" in text
            answered[method, path, name] = 200 if is_passed_on else response.status
    assert ("post", "/api/v1/benchmarking/judgements/{job_id}", "project_id") in answered
    assert len(answered) > 100
    assert {each: status for each, status in answered.items() if status >= 500} == {}
