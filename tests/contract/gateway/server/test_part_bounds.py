"""Nine thousand of everything to every route and method: refused before it is routed, parsed or converted."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor import MethodDescriptor

from proctor.v1 import answer_service_pb2 as answer_pb2
from services.common.grpc.errors import remote_error
from services.gateway.grpc_proxy.forwarded_services import MAX_PARTS, RESULTS_FILES, SCHEDULER_FILES
from services.gateway.server.app import served_routes
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.harness.messages.many_items import Path, filled, is_map, lists_in

MANY = 9_000
JSON_TYPE = "application/json"
URL_FORM = "application/x-www-form-urlencoded"
# Some of the routes that read such a body.
BODIES = {"/api/v1/benchmarking/run", "/api/v1/queue/limits", "/v1/batches"}
FORMS = {"/runs/new", "/queue/limits", "/sign-in"}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as opened:
        yield opened


def routes() -> Iterator[tuple[str, str]]:
    """Method and a path of each route."""
    for route in served_routes():
        path = re.sub(r"\{[^}]*\}", "00000000-0000-4000-8000-000000000000", getattr(route, "path", ""))
        for method in getattr(route, "methods", None) or ("GET",):
            yield method, path


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("&".join(f"{i:x}" for i in range(1_600)), {}, 414),
        ("q=" + "a" * MANY, {}, 414),
        (";".join(f"{i:x}=" for i in range(101)), {}, 414),
        ("", {f"x{i:x}": "1" for i in range(3_000)}, 431),
        ("", {"Cookie": ";".join(f"{i:x}=1" for i in range(5_000))}, 431),
        ("", {"Cookie": 'a="' + '\\"' * 101 + '"'}, 431),
    ],
    ids=["parameters", "query", "semicolons", "headers", "cookies", "escapes"],
)
async def test_many_parts_of_a_head_are_refused_by_every_route(
    harness: GatewayHarness, query: str, headers: dict[str, str], status: int
) -> None:
    answered = {}
    async with aiohttp.ClientSession() as session:
        for method, path in routes():
            url = f"{harness.http}{path}?{query}" if query else f"{harness.http}{path}"
            async with session.request(method, url, headers=headers) as response:
                answered[method, path] = response.status
    assert len(answered) > 100
    assert set(answered.values()) == {status}


async def test_a_hundred_parts_are_few_enough(harness: GatewayHarness) -> None:
    query = "&".join(f"{i:x}" for i in range(100))
    headers = {"Cookie": ";".join(f"{i:x}=1" for i in range(100)), **{f"x{i:x}": "1" for i in range(90)}}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{harness.http}/healthz?{query}", headers=headers) as response,
    ):
        assert response.status == 200


@pytest.mark.parametrize(
    ("media_type", "content", "expected"),
    [
        (JSON_TYPE, b"[" + b"{}," * 25_000 + b"{}]", BODIES),
        (JSON_TYPE, b'{"tasks": [' + b'"",' * 25_000 + b'""]}', BODIES),
        (JSON_TYPE, b"{" + b",".join(b'"%d":0' % i for i in range(25_000)) + b"}", BODIES),
        (URL_FORM, b"&".join(b"%d=1" % i for i in range(MANY)), FORMS),
    ],
    ids=["objects", "texts", "keys", "fields"],
)
async def test_many_parts_of_a_body_are_refused_by_every_route_that_reads_one(
    harness: GatewayHarness, media_type: str, content: bytes, expected: set[str]
) -> None:
    answered, largest = {}, 0
    async with aiohttp.ClientSession() as session:
        for method, path in routes():
            if method in ("GET", "HEAD"):
                continue
            headers = {"Content-Type": media_type, "Origin": harness.http}
            async with session.request(
                method, harness.http + path, data=content, headers=headers, allow_redirects=False
            ) as response:
                answered[method, path] = response.status
                largest = max(largest, len(await response.read()))
    assert len(answered) > 40
    # Routes that read no body, or not of this kind, do what they do: nothing of it is parsed.
    refusing = {path for (_, path), status in answered.items() if status == 413}
    assert expected <= refusing
    assert largest < 16_384


async def test_json_in_other_letters_hides_no_values(harness: GatewayHarness) -> None:
    """A parser reads UTF-16 as well, where half of a letter looks like the end of a text."""
    content = ('{"task": "\u2230", "metrics": [' + "{}," * 25_000 + "{}]}").encode("utf-16-le")
    answered = {}
    async with aiohttp.ClientSession() as session:
        for method, path in routes():
            if method in ("GET", "HEAD"):
                continue
            headers = {"Content-Type": JSON_TYPE, "Origin": harness.http}
            async with session.request(
                method, harness.http + path, data=content, headers=headers, allow_redirects=False
            ) as response:
                answered[path] = (response.status, await response.text())
    refusing = {path for path, (status, text) in answered.items() if status == 400 and "UTF-8" in text}
    assert refusing >= BODIES


async def test_a_form_with_parts_of_any_kind_has_few(harness: GatewayHarness) -> None:
    """Parts are told by their boundary: a parser looks at no more of them."""
    for disposition in ("form-data", "Form-Data", "x"):
        part = f'--B\r\nContent-Disposition: {disposition}; name="a"\r\n\r\n1\r\n'
        content = (part * MANY + "--B--\r\n").encode()
        headers = {"Content-Type": "multipart/form-data; boundary=B", "Origin": harness.http}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{harness.http}/queue/limits", data=content, headers=headers) as response,
        ):
            assert response.status == 413, await response.text()


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("custom", '{"a": [VALUES]}'),
        ("metric", '{"metric": "f1", "a": [VALUES]}'),
        ("judges", '{"model": "openai/fake", "params": [VALUES]}'),
    ],
)
@pytest.mark.parametrize("values", ["{}," * 2_000 + "{}", "[" * 5_000], ids=["many", "deep"])
async def test_json_in_a_form_has_few_values_that_are_not_deep(
    harness: GatewayHarness, field: str, text: str, values: str
) -> None:
    form = {"model": "openai/fake", "benchmark": "dataset:ds_1", field: text.replace("VALUES", values)}
    headers = {"Origin": harness.http, "Accept": "text/html"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{harness.http}/runs/new", data=form, headers=headers) as response,
    ):
        shown = await response.text()
    assert (response.status, response.headers.get("HX-Replace-Url")) == (422, None)
    assert "within too many lists" in shown or "more than 1000 values" in shown


async def test_the_form_of_an_order_is_small(harness: GatewayHarness) -> None:
    """All that is entered comes back in several links."""
    form = {"model": "openai/fake", "benchmark": "suite:starter", "custom": "x" * 70_000}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{harness.http}/runs/new", data=form, headers={"Origin": harness.http}) as response,
    ):
        assert response.status == 413


async def test_a_fault_of_each_value_is_not_written_for_each(harness: GatewayHarness) -> None:
    body = {"task": "rows", "metrics": [{"metric": ""}] * 100}
    path = "/api/v1/benchmarking/rescore/00000000-0000-4000-8000-000000000000"
    async with aiohttp.ClientSession() as session, session.post(harness.http + path, json=body) as response:
        problem = await response.json(content_type=None)
    assert (response.status, len(problem["errors"])) == (422, 20)
    assert problem["detail"].endswith("; and 80 more")


async def test_separators_inside_of_texts_are_no_values(harness: GatewayHarness) -> None:
    """Data files of a suite are texts of a body, with as many commas and brackets as they like."""
    text = '{"a": [1, 2, "\\\\"]}\n' * 30_000
    body = {"document": "task: x", "files": {"rows.jsonl": text}}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{harness.http}/api/v1/suites", json=body) as response,
    ):
        assert response.status != 413, await response.text()


async def test_each_list_and_map_of_a_body_has_a_bound(harness: GatewayHarness) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{harness.http}/openapi.json") as response:
        described = json.loads(await response.text())
    schemas = described["components"]["schemas"]
    unbounded = [
        f"{method} {path}{field}"
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
        if JSON_TYPE in operation.get("requestBody", {}).get("content", {})
        for field in unbounded_in(operation["requestBody"]["content"][JSON_TYPE]["schema"], schemas)
    ]
    assert unbounded == []


def unbounded_in(schema: dict[str, Any], schemas: dict[str, Any], path: str = "") -> Iterator[str]:
    schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    # A bound may stand beside the alternatives of what it bounds.
    for form in ("anyOf", "oneOf"):
        for each in schema.get(form, ()):
            beside = {key: schema[key] for key in ("maxItems", "maxProperties") if key in schema}
            yield from unbounded_in({**beside, **each}, schemas, path)
    if schema.get("type") == "array":
        if "maxItems" not in schema:
            yield path
        yield from unbounded_in(schema.get("items", {}), schemas, f"{path}[]")
    if schema.get("type") == "object":
        others = schema.get("additionalProperties", True)
        if others is not False and "maxProperties" not in schema:
            yield path
        if isinstance(others, dict):
            yield from unbounded_in(others, schemas, f"{path}{{}}")
        for name, field in schema.get("properties", {}).items():
            yield from unbounded_in(field, schemas, f"{path}.{name}")


def public_methods() -> Iterator[MethodDescriptor]:
    for file in (*SCHEDULER_FILES, *RESULTS_FILES):
        for service in file.DESCRIPTOR.services_by_name.values():
            yield from service.methods


async def test_many_items_are_refused_in_each_list_of_each_public_method(harness: GatewayHarness) -> None:
    refused = []
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        for method in public_methods():
            for path in filter(takes_empty_items, lists_in(method.input_type)):
                name = f"/{method.containing_service.full_name}/{method.name}"
                reported = await refusal(channel, name, filled(path, MANY), method)
                field = ".".join(each.name for each in path)
                assert (reported.reason, reported.facts["field"]) == ("INVALID_PARAMETER", field), name
                refused.append(name)
    names = {name.rpartition("/")[2] for name in refused}
    assert names >= {"SubmitRun", "EstimateRun", "CompareRuns", "MarkAnswers"}


async def test_parts_of_the_largest_message_are_counted_before_it_is_parsed(harness: GatewayHarness) -> None:
    name = "/proctor.v1.AnswerService/MarkAnswers"
    method = answer_pb2.DESCRIPTOR.services_by_name["AnswerService"].methods_by_name["MarkAnswers"]
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        reported = await refusal(channel, name, b"\x12\0" * 2_000_000, method)
    assert reported.facts == {"limit": str(MAX_PARTS)}


def takes_empty_items(path: Path) -> bool:
    """An entry of a map that is sent again replaces the first; no bytes are no packed numbers."""
    return not path[-1].is_packed and not is_map(path[-1])


async def refusal(channel: grpc.aio.Channel, name: str, content: bytes, method: MethodDescriptor) -> Any:
    async def ask() -> None:
        if method.client_streaming:
            await channel.stream_unary(name)(iter([content]))  # type: ignore[arg-type]  # bytes of a message
        elif method.server_streaming:
            stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(name)
            await stream(content).read()
        else:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(name)
            await call(content)

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask()
    return remote_error(caught.value)
