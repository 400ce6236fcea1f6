"""What the program says of an error of the task's code."""

import traceback
from typing import Any

from services.common.sandboxes.task_code.inside.modules import AbsentPackage

_SHOWN_CHARACTERS = 300


def fact_of(error: BaseException, key: str, doc_id: int, folder: str) -> dict[str, Any]:
    """`doc_id` -1: the error is of no row. `folder` has the files of the task."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if folder in each.filename]
    where = f"{frames[-1].filename.split(folder)[-1].lstrip('/')}, line {frames[-1].lineno}" if frames else ""
    absent = str(error) if isinstance(error, AbsentPackage) else ""
    text = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()[-1]
    return {"key": key, "doc_id": doc_id, "text": text[:_SHOWN_CHARACTERS], "where": where, "absent": absent}
