"""The run that the last `proctor try` ordered, until that has shown its end: the next one goes on with it."""

import json
import uuid
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from proctor.distribution import NAME
from proctor.stack.state import write_private
from proctor.v1 import run_pb2

_FILE_NAME = "trial.json"


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """Kept beside the data of the stack. By a known request id the scheduler returns its run."""

    state_dir: Path

    @property
    def _file(self) -> Path:
        return self.state_dir / _FILE_NAME

    def request_id(self, order: run_pb2.RunOrder) -> str:
        """That of the same order whose end was not shown, else a new one. Written before anything is sent."""
        if known := self.known_request_id(order):
            return known
        request_id = str(uuid.uuid4())
        write_private(self._file, json.dumps({**_kept(order), "request_id": request_id}))
        return request_id

    def known_request_id(self, order: run_pb2.RunOrder) -> str:
        """Empty if the end of the same order was shown, or another was made since."""
        known = self._read()
        request_id = str(known.pop("request_id", ""))
        return request_id if known == _kept(order) else ""

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)

    def _read(self) -> dict[str, object]:
        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}


def _kept(order: run_pb2.RunOrder) -> dict[str, object]:
    """Another release may resolve the same order in another way."""
    return {"order": order.SerializeToString(deterministic=True).hex(), "release": version(NAME)}
