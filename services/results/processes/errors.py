"""Why a process beside the service gave no reply."""


class TookTooLong(Exception):
    """A call was ended because its time was over, or its process was lost."""


class RequestUnanswerable(Exception):
    """The process crashed, exceeded its CPU time, or hangs idle."""


class ProcessLost(Exception):
    """The process was killed, or stopped for long, by something else than its request."""
