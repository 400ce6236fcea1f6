"""A terminal as its agent sees it: keys by their names, new output, and a screen that is drawn."""

import pytest

from services.worker.rollouts.terminus.pty import DrawnScreen, typed
from services.worker.rollouts.terminus.terminal import HISTORY_LINES, ROWS, SeenTerminal


class Scripted:
    def __init__(self, *histories: str) -> None:
        self.histories = list(histories)

    async def send(self, keys: str) -> None:
        raise AssertionError(keys)

    async def screen(self) -> str:
        return "the screen\n\n"

    async def history(self) -> str:
        return self.histories.pop(0)


async def test_new_output_begins_with_the_last_line_that_was_there() -> None:
    seen = SeenTerminal(Scripted("$ \n\n", "$ ls\na.py\n$ \n\n", "$ ls\na.py\n$ pwd\n/app\n$ \n", "x\ny\n$"))
    assert await seen.look() == "Current Terminal Screen:\nthe screen"
    assert await seen.look() == "New Terminal Output:\n$ ls\na.py\n$"
    assert await seen.look() == "New Terminal Output:\n$ pwd\n/app\n$"
    # What was there has scrolled away.
    assert await seen.look() == "Current Terminal Screen:\nthe screen"


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        ("ls\n", "ls\n"),
        ("C-c", "\x03"),
        ("C-d", "\x04"),
        ("^C", "\x03"),
        ("Enter", "\r"),
        ("Up", "\x1b[A"),
        ("M-b", "\x1bb"),
        ("C-c\n", "C-c\n"),
        ("", ""),
    ],
)
def test_names_of_keys_stand_alone(keys: str, sent: str) -> None:
    assert typed(keys) == sent


def drawn(*outputs: bytes) -> DrawnScreen:
    screen = DrawnScreen()
    for output in outputs:
        screen.draw(output)
    return screen


def test_output_is_drawn_as_a_terminal_draws_it() -> None:
    screen = drawn(b"one\r\ntwo\x1b[2K\rthree\x1b[31m red\x1b[0m\r\n", "ü\b".encode(), b"v")
    assert screen.lines()[:3] == ["one", "three red", "v"]


def test_lines_that_scroll_off_are_kept_up_to_a_bound() -> None:
    screen = drawn("".join(f"{number}\r\n" for number in range(3000)).encode())
    assert screen.lines()[-2] == "2999"
    earlier = screen.earlier_lines()
    assert len(earlier) == HISTORY_LINES
    assert earlier[-1] == str(3000 - ROWS)


def test_a_program_on_the_other_screen_leaves_the_first_as_it_was() -> None:
    before, during = b"$ vim\r\n", b"\x1b[?1049h\x1b[Hdrawn on all of it"
    assert drawn(before, during).lines()[0] == "drawn on all of it"
    screen = drawn(before, during, b"\r\n" * 2 * ROWS, b"\x1b[?1049l", b"$ ")
    assert screen.lines()[:2] == ["$ vim", "$"]
    # What scrolled off the other one is not kept.
    assert screen.earlier_lines() == []


def test_questions_of_a_program_are_answered() -> None:
    assert list(drawn(b"ab\x1b[6n").replies) == ["\x1b[1;3R"]


@pytest.mark.parametrize(
    "output",
    [
        b"\x1b[?1;2;3r\x1b[?5m",
        b"\x1b[99999999999999999999A",
        b"\xff\xfe\x00",
        b"\xcc\x81",
        b"\x1b[" + b"9" * 5000 + b"A",
    ],
)
def test_hostile_output_breaks_nothing(output: bytes) -> None:
    assert drawn(output, b"\x1bc", b"still here").lines()[0] == "still here"


def test_a_sequence_that_is_not_known_is_passed_over() -> None:
    assert drawn(b"one \x1b[?4mtwo").lines()[0] == "one two"
