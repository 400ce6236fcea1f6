"""What is wrong with how answers are to be scored again."""

from collections.abc import Mapping


class RescoreFaults(Exception):
    """Sentences by field; "" has those of the whole form."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("; ".join(faults.values()))
        self.faults = faults
