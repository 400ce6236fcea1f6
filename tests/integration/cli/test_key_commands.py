"""`proctor keys` through a gateway: made, listed, replaced and revoked."""

import json

from proctor.exit_codes import ExitCode
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
