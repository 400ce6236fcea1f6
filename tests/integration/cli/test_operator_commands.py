"""Commands of operators through a gateway: `proctor keys` and `proctor audit`."""

import json
from datetime import UTC, datetime

from proctor.exit_codes import ExitCode
from services.scheduler.audit.audit_record import AuditRecord, Outcome
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.stack.command_line import CommandLine


async def test_key_is_made_listed_replaced_and_revoked(harness: GatewayHarness, proctor: CommandLine) -> None:
    made = await proctor("keys", "create", "ann", "--role", "viewer", "--days", "7", "--note", "notebook")
    assert made.code == ExitCode.OK
    assert "A viewer's key of ann, until" in made.out
    [first] = harness.scheduler.keys.keys.values()
    [whole] = [line for line in made.out.splitlines() if line.startswith(f"proctor_{first.key_id}_")]
    listed = (await proctor("keys", "list")).out
    assert first.key_id in listed
    assert "ann, notebook" in listed
    assert whole not in listed

    replaced = json.loads(
        (await proctor("keys", "rotate", first.key_id, "--overlap-hours", "1", "--json")).out
    )
    assert replaced["key"]["user"] == "ann"
    assert replaced["secret"].startswith(replaced["key"]["prefix"])
    revoked = await proctor("keys", "revoke", replaced["key"]["key_id"])
    assert "of ann is refused from now on" in revoked.out
    assert "revoked" in (await proctor("keys", "list", "ann")).out


async def test_what_cannot_be_is_refused_in_a_sentence(proctor: CommandLine) -> None:
    unknown = await proctor("keys", "revoke", "0123456789abcdef")
    assert (unknown.code, "There is no key" in unknown.err) == (ExitCode.NOT_FOUND, True)
    assert "There is no such key." in (await proctor("keys", "list", "nobody")).out
    role = await proctor("keys", "create", "ann", "--role", "king")
    assert (role.code, "maintainer" in role.err) == (ExitCode.REFUSED, True)


def record(user: str, day: int, times: int = 1) -> AuditRecord:
    return AuditRecord(
        recorded_at=datetime(2026, 11, day, tzinfo=UTC),
        user=user,
        key_id="",
        address="203.0.113.7",
        action="export",
        kind="run",
        object_id="r-1",
        detail="one\u2028line",
        outcome=Outcome.ADMITTED,
        times=times,
    )


async def test_records_are_narrowed_and_printed_in_each_form(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    harness.scheduler.audit.added += [record("ann", 1), record("bob", 2), record("ann", 3, times=4)]
    shown = await proctor("audit", "--by", "ann", "--since", "2026-11-02")
    assert shown.code == ExitCode.OK
    assert "export run r-1" in shown.out
    assert ("203.0.113.7" in shown.out, "×4" in shown.out, "bob" in shown.out) == (True, True, False)
    lines = [json.loads(line) for line in (await proctor("audit", "--jsonl")).out.splitlines()]
    assert [(line["user"], line["times"], line["outcome"]) for line in lines] == [
        ("ann", 4, "admitted"),
        ("bob", 1, "admitted"),
        ("ann", 1, "admitted"),
    ]
    page = json.loads((await proctor("audit", "r-1", "--json", "--page-size", "2")).out)
    assert (len(page["records"]), bool(page["next_page_token"])) == (2, True)
    assert "There is no such record." in (await proctor("audit", "--outcome", "refused")).out
    for since in ("yesterday", "0001-01-01T00:00+14:00"):
        wrong = await proctor("audit", "--since", since)
        assert (wrong.code, "write a time as" in wrong.err) == (ExitCode.REFUSED, True)
