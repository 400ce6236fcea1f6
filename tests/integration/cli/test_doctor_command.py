"""`proctor doctor` as a script runs it: a line for each check, and an exit code that follows from them."""

from pathlib import Path

import pytest

from tests.fakes.stack.command_line import CommandLine

PLANTED = "sk-planted-secret"


async def test_doctor_prints_all_checks_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", PLANTED)
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9")
    # Ports that no other process takes between the two calls.
    monkeypatch.setenv("PROCTOR_GATEWAY_HTTP_ADDRESS", "127.0.0.1:0")
    monkeypatch.setenv("PROCTOR_GATEWAY_GRPC_ADDRESS", "127.0.0.1:0")
    run = CommandLine("", tmp_path / "state")
    reported, shown = await run("doctor", "--json"), await run("doctor")
    checks = {check["name"]: check for check in reported.document["checks"]}
    lacking = [check for check in checks.values() if check["severity"] == "missing"]
    assert reported.code == shown.code == (1 if lacking else 0)
    assert reported.document["ok"] is not bool(lacking)
    assert checks["provider ollama"]["severity"] == "warning"
    assert all(name in shown.out for name in checks)
    assert PLANTED not in reported.out + reported.err + shown.out + shown.err
