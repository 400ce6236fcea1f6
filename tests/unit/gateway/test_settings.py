"""Keys in the environment that the gateway refuses at its start, without a word of them."""

import json

import pytest

from services.common.process import read_settings
from services.gateway.settings import GatewaySettings

KEY = "kept-secret-b8f31c9a75e2d604"


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"ann": KEY, "bob": KEY}, "ann and bob have the same key"),
        ({"ann": "a" * 24}, "must have at least 6 different"),
    ],
    ids=["shared", "guessable"],
)
def test_keys_that_prove_nobody_are_refused(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], keys: dict[str, str], reason: str
) -> None:
    monkeypatch.setenv("PROCTOR_GATEWAY_API_KEYS", json.dumps(keys))
    assert read_settings("gateway", GatewaySettings) is None
    logged = "".join(capfd.readouterr())
    assert reason in logged
    assert not any(key in logged for key in keys.values())
