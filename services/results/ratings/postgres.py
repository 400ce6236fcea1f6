"""Judged pairs in Postgres."""

from collections.abc import Sequence

from services.common.postgres import PostgresSession
from services.results.ratings.judged_pairs import AnswerStyle, PairJudging, PairVerdict

# Far more than models of a benchmark make pairs.
_MAX_JUDGINGS = 5_000


class PostgresJudgedPairs:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def judgings(self, benchmark: str, project_id: int | None) -> Sequence[PairJudging]:
        rows = await self._session.fetch(
            "list_pair_judgings", benchmark=benchmark, project_id=project_id, limit=_MAX_JUDGINGS
        )
        return [PairJudging(**row) for row in rows]

    async def verdicts(self, run_ids: Sequence[str]) -> Sequence[PairVerdict]:
        rows = await self._session.fetch("list_pair_verdicts", run_ids=run_ids)
        return [PairVerdict(**row) for row in rows]

    async def styles(self, run_ids: Sequence[str], *, has_style: bool) -> Sequence[AnswerStyle]:
        rows = await self._session.fetch("list_answer_styles", run_ids=run_ids, has_style=has_style)
        return [AnswerStyle(**row) for row in rows]
