"""Counts published outcomes, a batch at a time."""

from collections import Counter
from collections.abc import Sequence
from functools import reduce

from proctor.values.outcome import Failure
from proctor.values.usage import TokenUsage
from services.worker import metrics
from services.worker.execution.shard import Outcome

_ANSWERED = "answered"


def count_outcomes(outcomes: Sequence[Outcome]) -> None:
    results = Counter(
        [
            each.result.failure_class.value if isinstance(each.result, Failure) else _ANSWERED
            for each in outcomes
        ]
    )
    for result, count in results.items():
        metrics.SAMPLES.labels(result).inc(count)
    answers = [each.result for each in outcomes if not isinstance(each.result, Failure)]
    times = [answer.timing for answer in answers]
    metrics.ANSWER_SECONDS.observe_all([time.total_seconds for time in times])
    metrics.FIRST_TOKEN_SECONDS.observe_all(
        [seconds for time in times if (seconds := time.first_token_seconds) is not None]
    )
    metrics.BETWEEN_TOKENS_SECONDS.observe_all(
        [seconds for time in times if (seconds := time.between_tokens_seconds) is not None]
    )
    usage = reduce(TokenUsage.plus, [answer.usage for answer in answers], TokenUsage())
    for kind, count in usage.by_kind.items():
        # A provider may report anything, and a counter that falls is an error.
        metrics.TOKENS.labels(kind).inc(max(count, 0))
