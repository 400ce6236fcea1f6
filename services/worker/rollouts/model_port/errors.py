"""Errors of programs that work on tasks."""

from services.worker.sandboxes.errors import SandboxError

# A code of OpenAI's.
CONTEXT_FULL = "context_length_exceeded"


class CallRefused(Exception):
    """The call gets no answer; the message is one sentence for the program. `code` is as at OpenAI."""

    def __init__(self, status: int, sentence: str, code: str = "invalid_request_error") -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code


class ProgramNotStarted(SandboxError):
    """The agent's program {program} asked its model nothing and failed ({cause}). Install it in the image."""
