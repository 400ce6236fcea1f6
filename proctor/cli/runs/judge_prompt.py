"""Judges and their prompts as options write them."""

from pathlib import Path

from proctor.client.errors import Refused
from proctor.v1 import run_pb2
from proctor.values.judging.named_judge import read_judge


def prompt_or_document(text: str) -> tuple[str, str]:
    """The name of an installed prompt, or the document of a file: a text with a suffix or a folder is one."""
    path = Path(text)
    if not path.suffix and path.name == text:
        return text, ""
    try:
        return "", path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"The judge prompt {path} cannot be read: {error}.") from error


def named_judge(text: str) -> run_pb2.NamedJudge:
    """MODEL[:PROMPT][@SCALE]. Raises Refused."""
    try:
        judge = read_judge(text)
    except ValueError as error:
        raise Refused(f"--judge {error}.") from error
    prompt, document = prompt_or_document(judge.prompt) if judge.prompt else ("", "")
    return run_pb2.NamedJudge(model=judge.model, prompt=prompt, scale=judge.scale, document=document)
