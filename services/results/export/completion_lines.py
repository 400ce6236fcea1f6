"""Lines of the two files of a batch: its answers, and what has none."""

from dataclasses import dataclass, fields

import orjson

from proctor.values.openai import CompletionHead, Json, choice, completion
from proctor.values.usage import TokenUsage
from services.results.export.rows import Row

_TOKENS = tuple(each.name for each in fields(TokenUsage))


@dataclass(frozen=True, slots=True)
class MissingAnswer:
    """The error of samples that have no outcome."""

    code: str = "no_answer"
    message: str = "The run has no answer to this line."


@dataclass(frozen=True, slots=True)
class BatchLines:
    """Ids of lines are the same whenever a file is made."""

    run_id: str
    model: str
    missing: MissingAnswer

    def output(self, row: Row) -> Json:
        """The provider's own body, else a completion made of the answer."""
        request_id = self._id(row)
        body = orjson.Fragment(row["body"]) if row["body"] else self._completion(request_id, row)
        response = {"status_code": 200, "request_id": request_id, "body": body}
        return self._line(row, response, None)

    def error(self, row: Row) -> Json:
        """Why there is no answer."""
        is_missing = row["failure_class"] is None
        code = self.missing.code if is_missing else row["failure_class"]
        message = self.missing.message if is_missing else row["failure_message"]
        return self._line(row, None, {"code": code, "message": message})

    def _line(self, row: Row, response: Json | None, error: Json | None) -> Json:
        line_id = f"batch_req_{self._id(row)}"
        return {"id": line_id, "custom_id": row["custom_id"], "response": response, "error": error}

    def _id(self, row: Row) -> str:
        """Half of the id of the run, and the number of the sample."""
        return f"{self.run_id.replace('-', '')[:20]}{row['sample']:012x}"

    def _completion(self, request_id: str, row: Row) -> Json:
        head = CompletionHead(request_id, int(row["recorded_at"].timestamp()), self.model, row["is_chat"])
        answer = choice(row["answer"], row["finish_reason"], is_chat=row["is_chat"])
        return completion(head, [answer], TokenUsage(**{name: row[name] for name in _TOKENS}))
