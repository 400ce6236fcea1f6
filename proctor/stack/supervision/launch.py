"""Every child of the stack starts as this: it ties its life to the supervisor's, then becomes the child.

A program and not a `preexec_fn`: the supervisor has threads (gRPC's), no Python may run in a fork of those.
Called by path: `python -I -S launch.py SUPERVISOR_PID DEATH_SIGNAL USER COMMAND…` (USER `-`: as is).
"""

import ctypes
import os
import pwd
import signal
import sys

# From linux/prctl.h.
PR_SET_PDEATHSIG = 1


def become_user(name: str) -> None:
    entry = pwd.getpwnam(name)
    # Groups first: without the privileges of root they could no longer be dropped.
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)


def die_with(supervisor_pid: int, death_signal: int) -> None:
    """Must come after setuid, which clears the death signal again."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal)
    # The supervisor may have died before the call above, which then watches another parent.
    if os.getppid() != supervisor_pid:
        sys.exit("the supervisor died while this process was being started")


def main() -> None:
    supervisor_pid, death_signal, user, *command = sys.argv[1:]
    # A supervisor started in the background of a script ignores these, and its children would inherit that.
    for inherited in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(inherited, signal.SIG_DFL)
    if user != "-":
        become_user(user)
    die_with(int(supervisor_pid), int(death_signal))
    try:
        os.execvp(command[0], command)  # noqa: S606  # becoming the child is the point, no shell wanted
    except OSError as error:
        sys.exit(f"{command[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
