"""The launcher's side of a sandbox."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from services.common.sandboxes.bubblewrap.launcher.box import Box
from tests.harness.processes import bound, killed_at_the_end


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with killed_at_the_end(subprocess.Popen(bound("sleep", "60"))) as started:
        yield started


def box_of(process: int) -> Box:
    user_namespace = os.open(f"/proc/{process}/ns/user", os.O_RDONLY)
    return Box(1, 1000, process, process, os.pidfd_open(process), user_namespace, None, {}, 0.0, [])


def test_a_box_is_alive_until_it_is_killed(process: subprocess.Popen[bytes]) -> None:
    box = box_of(process.pid)
    assert box.is_alive()
    box.kill()
    process.wait(10)
    assert not box.is_alive()
    box.release()


def test_a_released_box_kills_no_process_whose_file_has_its_number(process: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as ended:
        box = box_of(ended.pid)
    box.release()
    others = [os.pidfd_open(process.pid) for _ in range(20)]
    assert box.pidfd in others
    box.kill()
    for file in others:
        os.close(file)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
