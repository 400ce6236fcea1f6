"""Which part of an answer is its code."""

import pytest

from proctor.values.code import CodeAnswer, CodeCheck, code_in

CHAT = "Here it is:\n```python\ndef f():\n    return 1\n```\nIt returns 1.\n```\nprint(f())\n```"


@pytest.mark.parametrize(
    ("part", "answer", "code"),
    [
        (CodeAnswer.WHOLE, CHAT, CHAT),
        (CodeAnswer.UNTIL_FENCE, "    return 1\n```\nIt returns 1.", "    return 1\n"),
        (CodeAnswer.UNTIL_FENCE, "    return 1\n", "    return 1\n"),
        (CodeAnswer.FIRST_BLOCK, CHAT, "def f():\n    return 1"),
        (CodeAnswer.FIRST_BLOCK, "```\nx = 1\n```", "x = 1"),
        (CodeAnswer.FIRST_BLOCK, "```python\nx = 1\nwas cut", "x = 1\nwas cut"),
        (CodeAnswer.FIRST_BLOCK, "x = 1", "x = 1"),
    ],
)
def test_the_code_of_an_answer(part: CodeAnswer, answer: str, code: str) -> None:
    assert code_in(answer, part) == code


def test_a_program_is_prefix_code_and_tests() -> None:
    check = CodeCheck("def f():\n", "assert f() == 1")
    assert check.program("    return 1\n") == "def f():\n    return 1\n\nassert f() == 1"
