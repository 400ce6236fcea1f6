"""The protocol of mini-swe-agent: what is a command, and what the model is shown of its output."""

import pytest

from proctor.values.outcome import Answer
from services.common.sandboxes.sandbox import CommandResult, Ended
from services.worker.rollouts.shell.mini_blocks import MiniBlocks

FORM = MiniBlocks()


def block(command: str) -> str:
    return f"```mswea_bash_command\n{command}\n```"


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        (f"THOUGHT: I look.\n\n{block('ls -la')}\n", ["ls -la"]),
        (block("cat <<'EOF' > a\nx\n\ny\nEOF"), ["cat <<'EOF' > a\nx\n\ny\nEOF"]),
        ("```mswea_bash_command \n\nls\n```", ["ls"]),
        ("```bash\nls\n```", []),
        (f"{block('ls')}\n{block('pwd')}", []),
        ("Done.", []),
    ],
)
def test_one_block_of_its_mark_is_the_command(text: str, commands: list[str]) -> None:
    read = FORM.read(Answer(text, "stop"))
    assert [call.command for call in read.calls] == commands
    assert bool(read.correction) is not bool(commands)
    assert read.turn.content == text


def test_the_reply_says_how_many_blocks_there_were() -> None:
    assert "found 2" in FORM.read(Answer(f"{block('ls')}\n{block('pwd')}", "stop")).correction
    assert "length limit" in FORM.read(Answer("THOUGHT: and", "length")).correction


def test_an_output_has_the_marks_of_its_template() -> None:
    shown = FORM.observation(CommandResult(2, b"no such file\n", total_bytes=13), 60.0)
    assert shown == "<returncode>2</returncode>\n<output>\nno such file\n</output>"


def test_a_long_output_keeps_head_and_tail_with_the_characters_between() -> None:
    shown = FORM.observation(CommandResult(0, b"a" * 6000 + b"b" * 6000, total_bytes=12_000), 60.0)
    head, tail = "a" * 5000, "b" * 5000
    assert f"<output_head>\n{head}\n</output_head>" in shown
    assert "<elided_chars>\n2000 characters elided\n</elided_chars>" in shown
    assert shown.endswith(f"<output_tail>\n{tail}\n</output_tail>")


def test_a_command_that_was_ended_is_an_exception_with_code_minus_one() -> None:
    shown = FORM.observation(CommandResult(137, b"begun\n", total_bytes=6, ended=Ended.TIMED_OUT), 30.0)
    assert shown.startswith("<exception>The command timed out after 30 seconds")
    assert "<returncode>-1</returncode>\n<output>\nbegun\n</output>" in shown


def test_the_task_is_not_read_as_a_template() -> None:
    _, task = FORM.opening("Print {cwd} and {instruction}.", "/app")
    assert "Solve this task: Print {cwd} and {instruction}." in task.content
    assert "subshell in /app" in task.content
