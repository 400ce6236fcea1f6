"""Judges and their prompts as options write them."""

from pathlib import Path

from proctor.client.errors import Refused
from proctor.v1 import run_pb2


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
    """MODEL or MODEL:PROMPT: the prompt is behind the last colon, since names of models may have one."""
    model, separator, prompt = text.rpartition(":")
    if not separator:
        return run_pb2.NamedJudge(model=text)
    if not model or not prompt:
        raise Refused(
            f"--judge {text}: write it as MODEL or MODEL:PROMPT, such as openai/gpt-4.1:helpfulness."
        )
    name, document = prompt_or_document(prompt)
    return run_pb2.NamedJudge(model=model, prompt=name, document=document)
