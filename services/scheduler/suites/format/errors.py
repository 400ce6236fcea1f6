"""Errors of the format of suites."""


class InvalidYaml(Exception):
    """A text is not valid YAML, or would grow too large."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
