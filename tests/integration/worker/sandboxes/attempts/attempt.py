"""Attempts to leave a sandbox: programs that print ESCAPED with what they reached, and nothing where they are
held.
"""

import textwrap
from dataclasses import dataclass

PRELUDE = """
import ctypes, errno, os, platform, resource, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = dict(x86_64=0, aarch64=1)
def escaped(what):
    print("ESCAPED", what, flush=True)
def call(x86_64, aarch64, *arguments):
    number = (x86_64, aarch64)[NUMBERS[platform.machine()]]
    return libc.syscall(ctypes.c_long(number), *arguments)
def attempt(what, act):
    try:
        if act() is not None:
            escaped(what)
    except (OSError, subprocess.SubprocessError, ValueError):
        pass
def works(what, result):
    if result >= 0:
        escaped(what)
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """`code`: Python; `{planted}` are things that the test has put outside. As a control, `outside` attempts
    are made on this machine itself too, where they must succeed. `by_filter`: held by a filter of system
    calls, which the fake of Modal has not.
    """

    name: str
    code: str
    outside: bool = False
    by_filter: bool = False

    def program(self, planted: dict[str, object]) -> str:
        given = "".join(f"{name} = {value!r}\n" for name, value in planted.items())
        return PRELUDE + given + textwrap.dedent(self.code)
