"""Errors of the form of an order."""

from collections.abc import Mapping

Faults = Mapping[str, str]


class FormFaults(Exception):
    """Sentences by field; "" has those of the whole form."""

    def __init__(self, faults: Faults) -> None:
        super().__init__("; ".join(faults.values()))
        self.faults = faults
