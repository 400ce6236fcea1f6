"""`proctor nats-users` prints what an operator includes in the configuration of nats-server."""

import json
from pathlib import Path

from typer.testing import CliRunner

from proctor.cli.__main__ import app
from proctor.exit_codes import ExitCode

POOLS = """
pools:
  - {name: gpu-1, engine: vllm, concurrency: 8, models: [{name: vllm/m, path: /m}]}
  - {name: remote, engine: openai, concurrency: 8, provider: openai, base_url: 'http://x/v1'}
"""


def test_each_pool_has_a_user_whose_password_is_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(POOLS)
    printed = CliRunner().invoke(app, ["nats-users", str(file)])
    assert printed.exit_code == ExitCode.OK
    assert '"password": $NATS_PASSWORD_WORKER_GPU_1,' in printed.stdout
    assert '"$JS.ACK.WORK_gpu-1.>"' in printed.stdout
    shown = json.loads(CliRunner().invoke(app, ["nats-users", str(file), "--json"]).stdout)
    assert shown["worker_users"] == {"gpu-1": "worker-gpu-1", "remote": "worker-remote"}
    assert shown["password_variables"]["results"] == "NATS_PASSWORD_RESULTS"


def test_a_file_that_is_no_pools_file_is_refused_by_its_reason(tmp_path: Path) -> None:
    for text, reason in ((None, "No such file or directory"), ("pools: []", "it has no list `pools`")):
        file = tmp_path / "pools.yaml"
        if text is not None:
            file.write_text(text)
        refused = CliRunner().invoke(app, ["nats-users", str(file)])
        assert refused.exit_code == ExitCode.REFUSED
        assert reason in " ".join(refused.stderr.split())
