"""Attempts at other processes."""

from tests.integration.worker.sandboxes.attempts.attempt import Attempt

ATTEMPTS = (
    Attempt(
        "kills processes of the host",
        """
        for process in host_processes:
            command = f"/proc/{process}/cmdline"
            attempt(process, lambda: os.kill(process, 0) or open(command).read() == host_command or None)
        """,
        outside=True,
    ),
    Attempt(
        "leaves a child to what starts the commands",
        """
        child = call(56, 220, 0x8000 | signal.SIGCHLD, 0, 0, 0, 0)
        if child == 0:
            os._exit(0)
        works("clone", child)
        """,
        by_filter=True,
    ),
    Attempt(
        "steals files of processes",
        """
        libc.pidfd_open.restype = ctypes.c_int
        own = call(434, 434, 1, 0)
        for file in range(10):
            works("pidfd_getfd", call(438, 438, own, file, 0))
        """,
    ),
    Attempt(
        "moves pages of others",
        """
        works("move_pages", call(279, 239, 1, 0, None, None, None, 0))
        works("migrate_pages", call(256, 238, 1, 0, None, None))
        """,
    ),
)
