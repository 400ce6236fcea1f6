"""Orders of rollouts whose fake model executes the lines `DO command` of an instruction."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from proctor.v1 import rollout_service_pb2
from tests.harness.rollout_tasks import RIGHT, harbor_folder

_ESCAPED = RIGHT.encode("unicode_escape").decode()
MEND = f"Mend it.\nDO ls && cat doubling.py\nDO printf '{_ESCAPED}' > doubling.py\n"
SPOIL = "Mend it.\nDO echo nothing > doubling.py\nDO exit 3\n"


def archive(folder: Path) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as tar:
        for child in sorted(folder.iterdir()):
            tar.add(child, child.name)
    return written.getvalue()


def harbor_tasks(folder: Path, instructions: Mapping[str, str]) -> bytes:
    for name, instruction in instructions.items():
        task = harbor_folder(folder / name)
        (task / "instruction.md").write_text(instruction)
    return archive(folder)


def rollouts_order(suite: str, tasks: bytes, **changes: object) -> rollout_service_pb2.SubmitRolloutsRequest:
    order = rollout_service_pb2.SubmitRolloutsRequest(suite=suite, tasks=tasks, models=["openai/fake"])
    order.MergeFrom(rollout_service_pb2.SubmitRolloutsRequest(**changes))  # type: ignore[arg-type]  # fields of a message
    return order
