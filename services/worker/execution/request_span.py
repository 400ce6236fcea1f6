"""The span of one request to a model, by the GenAI conventions of OpenTelemetry.

The names are constants of ours: the conventions are still in development
(open-telemetry/semantic-conventions-genai).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from proctor.values.names.model_name import split_model
from proctor.values.providers.remote_providers import REMOTE_PROVIDERS
from proctor.values.scoring import ScoringMethod
from proctor.values.usage import TokenUsage
from services.common.traces import SpanKind, current_trace, span
from services.worker.execution.shard import Shard, ShardSample

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"


def is_traced_call(shard: Shard, sample: ShardSample) -> bool:
    """Whether it is traced: of a traced shard the first sample is: a span for each would cost too much."""
    return sample.number == shard.samples[0].number and bool(current_trace())


@contextmanager
def request_span(shard: Shard, sample: ShardSample) -> Iterator[Any]:
    provider, model = split_model(shard.model)
    is_chat = bool(sample.prompt.messages) and shard.method is not ScoringMethod.LOGLIKELIHOOD
    operation = "chat" if is_chat else "text_completion"
    known = REMOTE_PROVIDERS.get(provider)
    attributes = {
        OPERATION: operation,
        PROVIDER: (known and known.traced_as) or provider,
        REQUEST_MODEL: model,
    }
    with span(f"{operation} {model}", SpanKind.CLIENT, attributes=attributes) as made:
        yield made


def note_usage(call: Any, usage: TokenUsage) -> None:
    call.set_attribute(INPUT_TOKENS, usage.prompt_tokens)
    call.set_attribute(OUTPUT_TOKENS, usage.completion_tokens)
