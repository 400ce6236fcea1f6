"""The page of the audit: for operators, narrowed by its fields, with texts of others as texts."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from services.scheduler.audit.audit_record import AuditRecord, Outcome
from tests.contract.gateway.pages.shown_pages import HOSTILE, show
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness

KEYS = {"ann": "secret-key-of-ann", "olga": "secret-key-of-olga"}
ROOT = {"X-API-Key": KEYS["olga"]}


def record(user: str, action: str, object_id: str = "", outcome: Outcome = Outcome.DONE) -> AuditRecord:
    return AuditRecord(
        recorded_at=datetime(2026, 11, 28, tzinfo=UTC),
        user=user,
        key_id="",
        address="203.0.113.7",
        action=action,
        kind="file",
        object_id=object_id,
        detail="",
        outcome=outcome,
    )


@pytest.fixture
async def keyed() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(api_keys=KEYS, operators=["olga"]) as running:
        running.scheduler.audit.added += [record("ann", "upload", f"file-{number}") for number in range(60)]
        running.scheduler.audit.added += [record("", "sign in", outcome=Outcome.REFUSED)]
        yield running


async def test_records_are_shown_page_by_page_and_narrowed(keyed: GatewayHarness) -> None:
    first = (await show(keyed, "/audit", headers=ROOT)).html
    assert ("unknown" in first, "203.0.113.7" in first, "file-59" in first) == (True, True, True)
    assert "file-3<" not in first
    [following] = [
        href
        for tag, given in (await show(keyed, "/audit", headers=ROOT)).elements
        if tag == "a" and given.get("rel") == "next" and (href := given["href"])
    ]
    assert "file-3<" in (await show(keyed, following, headers=ROOT)).html
    narrowed = (await show(keyed, "/audit?user=ann&object_id=file-3&since=2026-11-01", headers=ROOT)).html
    assert ("file-3<" in narrowed, "file-4<" in narrowed) == (True, False)
    assert "/api/v1/audit/export?user=ann&amp;object_id=file-3&amp;since=2026-11-01" in narrowed
    assert "No such record." in (await show(keyed, "/audit?since=2026-11-29", headers=ROOT)).html
    # Old links stay valid.
    for since in ("never", "0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00"):
        assert "file-59" in (await show(keyed, f"/audit?since={since}&outcome=none", headers=ROOT)).html


async def test_only_operators_see_the_page_and_its_entry(keyed: GatewayHarness) -> None:
    ann = {"X-API-Key": KEYS["ann"]}
    assert (await show(keyed, "/audit", headers=ann)).status == 403
    assert 'href="/audit"' in (await show(keyed, "/queue", headers=ROOT)).html
    assert 'href="/audit"' not in (await show(keyed, "/queue", headers=ann)).html


async def test_texts_of_others_are_texts(keyed: GatewayHarness) -> None:
    keyed.scheduler.audit.added.append(record(HOSTILE, HOSTILE, HOSTILE))
    assert "<img src=x" not in (await show(keyed, "/audit", headers=ROOT)).html
