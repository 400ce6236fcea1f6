"""Keys in the environment that the gateway refuses at its start, without a word of them."""

import json
import os
import subprocess
import sys

import pytest

KEY = "kept-secret-b8f31c9a75e2d604"


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"ann": KEY, "bob": KEY}, "ann and bob have the same key"),
        ({"ann": "a" * 24}, "must have at least 6 different"),
    ],
    ids=["shared", "guessable"],
)
def test_keys_that_prove_nobody_are_refused(keys: dict[str, str], reason: str) -> None:
    # In a process of its own: a service sets up the logs of its process for good.
    environment = {**os.environ, "PROCTOR_GATEWAY_API_KEYS": json.dumps(keys)}
    command = (sys.executable, "-m", "services.gateway")
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    logged = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert reason in logged
    assert not any(key in logged for key in keys.values())
