"""Processes that a test looks at from outside: any of them may end between two looks."""

import psutil


def name_of(process: psutil.Process) -> str:
    """Empty for one that has just ended."""
    try:
        return process.name()
    except psutil.Error:
        return ""


def command_line_of(process: psutil.Process) -> list[str]:
    """Empty for one that has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
