"""A process that has freed large blocks is as small as before, however often it had them."""

import subprocess
import sys

# Without the call it keeps 24 MiB.
PROGRAM = """
from pathlib import Path
from services.common.freed_memory import return_freed_memory

def held_mib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) // 1024

return_freed_memory()
before = held_mib()
for _ in range(3):
    block = b"x" * (24 << 20)
    behind = bytes(100_000)
    del block
print(held_mib() - before)
"""


def test_large_blocks_that_were_freed_are_not_kept() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert int(told.stdout) <= 2
