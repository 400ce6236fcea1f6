"""Too old a server of Postgres is one sentence, at the start of a service and in the doctor."""

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.stack.doctor.machine import examine_postgres_server
from proctor.stack.supervision.addresses import choose_addresses
from services.common.errors import PostgresTooOld
from services.common.migrations import check_schema, migrate
from tests.harness.servers import postgres_server

OLD_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("1[0-7]/bin/initdb"))
needs_an_old_server = pytest.mark.skipif(
    not OLD_PROGRAMS or os.geteuid() != 0, reason="needs root and a Postgres before 18 of the distribution"
)


@pytest.fixture
def old_dsn() -> Iterator[str]:
    """The distribution's server. It runs as `nobody`, since it refuses to run as root."""
    [address] = choose_addresses(1)
    port = address.rpartition(":")[2]
    programs = OLD_PROGRAMS[-1].parent
    nobody = pwd.getpwnam("nobody")
    folder = Path(tempfile.mkdtemp(prefix="proctor-test-old-"))
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)

    def run(*command: str) -> None:
        subprocess.run(
            command, user=nobody.pw_uid, group=nobody.pw_gid, cwd=folder, check=True, timeout=60,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    data = str(folder / "data")
    run(str(programs / "initdb"), "-D", data, "-U", "proctor", "-A", "trust")
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories="
    run(str(programs / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql://proctor@127.0.0.1:{port}/postgres"
    finally:
        run(str(programs / "pg_ctl"), "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@needs_an_old_server
async def test_service_does_not_start_on_an_old_server_and_says_which_is_needed(old_dsn: str) -> None:
    async with asyncio.timeout(20):
        with pytest.raises(PostgresTooOld) as of_start:
            await migrate(old_dsn, "any", Path())
        with pytest.raises(PostgresTooOld):
            await check_schema(old_dsn, "any", Path())
        [finding] = await examine_postgres_server({"PROCTOR_POSTGRES_DSN": old_dsn})
    facts = of_start.value.facts
    assert facts["needed"] == 18
    assert str(facts["found"]).startswith(OLD_PROGRAMS[-1].parts[-3])
    assert finding.message == f"Postgres 18 or newer is needed; this is {facts['found']}"


async def test_doctor_asks_the_server_that_services_are_given() -> None:
    assert await examine_postgres_server({}) == []
    async with postgres_server() as server:
        [answers] = await examine_postgres_server({"PROCTOR_POSTGRES_DSN": server.address})
        assert answers.message.startswith("Postgres 18")
    [away] = await examine_postgres_server({"PROCTOR_POSTGRES_DSN": "postgresql://me:SECRET@127.0.0.1:1/x"})
    [unreadable] = await examine_postgres_server(
        {"PROCTOR_POSTGRES_DSN": "postgresql://me:SECRET@[x/y:SECRET"}
    )
    for finding in (away, unreadable):
        assert "no connection" in finding.message
        assert "SECRET" not in finding.message
