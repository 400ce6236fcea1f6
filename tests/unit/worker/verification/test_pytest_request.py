"""Code of an agent is searched in a time that grows with its length, and with no more."""

import pytest

from services.worker.sandboxes.tar_files import pack
from services.worker.verification.pytest_request import suspicions_in

MIB = 1024 * 1024


@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", ["\n", "def __eq__(", "def __eq__()", " ", "import\n", "def __eq__():   "])
def test_hostile_code_does_not_hold_the_interpreter(part: str) -> None:
    tar = pack({"code.py": (part * (MIB // len(part))).encode()})
    assert suspicions_in(tar, "/app") == ()


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import pytest\n", "uses the runner"),
        ("def f():\n\n    from _pytest import x\n", "uses the runner"),
        ("name = 'pytest'\n", "uses the runner"),
        ("import \\\n  pytest\n", "uses the runner"),
        ("import sys\nsys._getframe()\n", "looks into its callers"),
        ("class A:\n    def __eq__(self, other) -> bool:\n        return True\n", "equal to everything"),
    ],
)
def test_suspicious_code_is_reported(code: str, what: str) -> None:
    (said,) = suspicions_in(pack({"code.py": code.encode()}), "/app")
    assert what in said
