"""Errors of the responses of model servers."""


class ResponseRefused(Exception):
    """The response is larger than any that is waited for, or compressed though that was not asked for."""


class ResponseCutOff(Exception):
    """The connection broke in the middle of the response."""


class StreamError(Exception):
    """An error event in the middle of a stream; `status` is the HTTP status that it stands for."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the server broke off with {status}")
        self.status = status
        self.body = body
