"""Foreign web pages over a socket: by another name of this address, or from another origin."""

import asyncio

import pytest
from structlog.testing import capture_logs

from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call

FILES = "/v1/files"
LIMITS = "/api/v1/queue/limits"
SUITES = "/api/v1/suites"
UPLOADS = "/admin/datasets/upload?name=rows.jsonl"
CHANGES = {"json": {"max_requests_per_minute": 7}}
FOREIGN = "http://evil.example"


@pytest.mark.parametrize("path", [FILES, LIMITS, "/docs", "/"])
async def test_another_name_of_this_address_is_refused(harness: GatewayHarness, path: str) -> None:
    status, _, _ = await call(harness, "GET", path, headers={"Host": "rebind.evil.example:18080"})
    assert status == 421


@pytest.mark.parametrize("host", ["localhost:8080", "LOCALHOST", "10.1.2.3:80", "[::1]:8080", "a.localhost"])
async def test_localhost_and_addresses_are_names_of_the_gateway(harness: GatewayHarness, host: str) -> None:
    assert (await call(harness, "GET", LIMITS, headers={"Host": host}))[0] == 200


async def test_names_that_an_operator_lists_are_names_of_the_gateway() -> None:
    async with gateway_harness(allowed_hosts=["proctor.example.com"]) as listed:
        assert (await call(listed, "GET", LIMITS, headers={"Host": "proctor.example.com"}))[0] == 200
        assert (await call(listed, "GET", LIMITS, headers={"Host": "proctor.example.org"}))[0] == 421


async def test_probes_may_name_whatever_they_like(harness: GatewayHarness) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await call(harness, "GET", path, headers={"Host": "pod-7"}))[0] == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": FOREIGN}, {"Origin": "null"}, {"Origin": "http://["}, {"Sec-Fetch-Site": "cross-site"}],
)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", LIMITS, CHANGES),
        ("POST", FILES, {"data": b"x"}),
        ("POST", "/api/v1/benchmarking/cancel/x", {}),
    ],
)
async def test_page_of_another_origin_changes_nothing(
    harness: GatewayHarness, method: str, path: str, body: dict[str, object], headers: dict[str, str]
) -> None:
    assert (await call(harness, method, path, headers=headers, **body))[0] == 403


async def test_own_pages_and_listed_ones_may_change_something() -> None:
    async with gateway_harness(allowed_origins=["https://pages.example.com"]) as listed:
        for origin in (listed.http, "https://pages.example.com"):
            assert (await call(listed, "PATCH", LIMITS, headers={"Origin": origin}, **CHANGES))[0] == 200


@pytest.mark.parametrize("path", [SUITES, UPLOADS])
@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
async def test_body_that_any_page_can_send_is_refused(
    harness: GatewayHarness, path: str, content_type: str
) -> None:
    headers = {"Content-Type": content_type}
    assert (await call(harness, "POST", path, data=b'{"prompt": "a"}', headers=headers))[0] == 415


async def test_no_answer_is_framed_guessed_or_redirected_to_a_foreign_name(harness: GatewayHarness) -> None:
    for path, expected in ((LIMITS, 200), (f"{FILES}/", 404)):
        status, _, response = await call(harness, "GET", path, allow_redirects=False)
        assert status == expected
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Content-Security-Policy"] == "frame-ancestors 'none'"


async def test_length_of_thousands_of_digits_is_refused_and_not_computed(harness: GatewayHarness) -> None:
    head = (
        b"POST /api/v1/benchmarking/run HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
    )
    host, _, port = harness.http.removeprefix("http://").partition(":")
    for digits in (b"0" * 5000 + b"1", b"9" * 18):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + digits + b"\r\n\r\n{")
        answer = await reader.readline()
        assert 400 <= int(answer.split()[1]) < 500
        writer.close()


async def test_log_names_the_user_that_the_key_belongs_to() -> None:
    async with gateway_harness(api_keys={"alice": "secret-key-of-alice"}) as keyed:
        with capture_logs() as lines:
            for headers in (
                {"X-API-Key": "secret-key-of-alice", "X-Proctor-User": "bob"},
                {"X-API-Key": "secret-key-of-alice"},
            ):
                await call(keyed, "GET", LIMITS, headers={**headers, "X-Forwarded-For": "203.0.113.7"})
        requests = [line for line in lines if line["event"] == "http request" and line["path"] == LIMITS]
        assert [(line["user"], line["peer"]) for line in requests] == [("alice", "127.0.0.1")] * 2
