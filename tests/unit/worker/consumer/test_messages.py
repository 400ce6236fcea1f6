"""Work messages become shards, outcomes become messages, and message ids carry a shard's history."""

from datetime import UTC, datetime, timedelta

from proctor.v1 import outcome_pb2, run_pb2, work_messages_pb2
from proctor.values.generation import DEFAULT_MAX_TOKENS
from proctor.values.outcome import Answer, ChoiceScore, Failure, FailureClass
from proctor.values.sample import ChatMessage, Prompt
from proctor.values.scoring import ScoringMethod
from proctor.values.usage import Timing, TokenUsage
from proctor.wire.proofs import prove_dispatch
from services.results.outcomes.proto import drop_unproved
from services.worker.consumer.proto import only_samples, shard_from_proto
from services.worker.engines.engine import EngineResponse
from services.worker.execution.nats import batch_to_bytes
from services.worker.execution.shard import OutcomeBatch
from tests.fakes.worker.held_message import a_shard
from tests.fakes.worker.worker_harness import work_shard

SENT_AT = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "of scheduler and results"


def test_a_plain_prompt_is_continued_or_chatted_as_the_pool_does_it() -> None:
    work = work_shard(1, [7])
    text = "sample 7 KEY=k7"
    assert shard_from_proto(work, SENT_AT, completes_text=True).samples[0].prompt == Prompt(text=text)
    chatted = shard_from_proto(work, SENT_AT, completes_text=False).samples[0].prompt
    assert chatted == Prompt(messages=(ChatMessage("user", text),))


def test_the_order_decides_the_prompt_form() -> None:
    work = work_shard(1, [7])
    work.prompt_form = run_pb2.PROMPT_FORM_COMPLETION
    assert not shard_from_proto(work, SENT_AT, completes_text=False).samples[0].prompt.is_chat
    work.prompt_form = run_pb2.PROMPT_FORM_CHAT
    assert shard_from_proto(work, SENT_AT, completes_text=True).samples[0].prompt.is_chat


def test_choices_are_scored_as_continuations_unless_the_order_is_to_generate() -> None:
    work = work_shard(1, [7])
    work.samples[0].choices.extend([" a", " b"])
    shard = shard_from_proto(work, SENT_AT, completes_text=False)
    assert (shard.method, shard.samples[0].choices) == (ScoringMethod.LOGLIKELIHOOD, (" a", " b"))
    assert not shard.samples[0].prompt.is_chat
    work.scoring_method = run_pb2.SCORING_METHOD_GENERATE
    assert shard_from_proto(work, SENT_AT, completes_text=True).method is ScoringMethod.GENERATE
    work.scoring_method = run_pb2.SCORING_METHOD_CONSTRAINED
    assert shard_from_proto(work, SENT_AT, completes_text=True).method is ScoringMethod.CONSTRAINED


def test_answers_are_streamed_on_order() -> None:
    work = work_shard(1, [7])
    assert not shard_from_proto(work, SENT_AT, completes_text=True).sampling.is_streamed
    work.stream_answers = True
    assert shard_from_proto(work, SENT_AT, completes_text=True).sampling.is_streamed


def test_a_sample_without_choices_is_generated_with_any_scoring_method() -> None:
    work = work_shard(1, [7])
    work.scoring_method = run_pb2.SCORING_METHOD_CONSTRAINED
    assert shard_from_proto(work, SENT_AT, completes_text=True).method is ScoringMethod.GENERATE


def test_choices_answered_in_text_take_the_form_of_the_pool() -> None:
    work = work_shard(1, [7])
    work.samples[0].choices.extend([" a", " b"])
    for method in (run_pb2.SCORING_METHOD_GENERATE, run_pb2.SCORING_METHOD_CONSTRAINED):
        work.scoring_method = method
        assert shard_from_proto(work, SENT_AT, completes_text=False).samples[0].prompt.is_chat
        assert not shard_from_proto(work, SENT_AT, completes_text=True).samples[0].prompt.is_chat


def test_each_rollout_has_a_seed_of_its_own_and_whole_numbers_stay_whole() -> None:
    work = work_shard(1, [7])
    work.rollout = 2
    work.params.seed = 100
    work.params.provider_params.update({"n_probs": 3, "nested": {"x": [1, 0.5]}, "flag": True})
    sampling = shard_from_proto(work, SENT_AT, completes_text=True).sampling
    assert sampling.seed == 102
    assert sampling.extra == {"n_probs": 3, "nested": {"x": [1, 0.5]}, "flag": True}
    assert isinstance(sampling.extra["n_probs"], int)


def test_size_of_the_context_reaches_the_engine() -> None:
    work = work_shard(1, [7])
    assert shard_from_proto(work, SENT_AT, completes_text=True).sampling.context_tokens is None
    work.params.context_tokens = 2048
    assert shard_from_proto(work, SENT_AT, completes_text=True).sampling.context_tokens == 2048


def test_what_is_not_set_is_left_to_the_engine() -> None:
    work = work_shard(1, [7])
    work.params.Clear()
    sampling = shard_from_proto(work, SENT_AT, completes_text=True).sampling
    assert (sampling.max_tokens, sampling.temperature) == (DEFAULT_MAX_TOKENS, 0.0)
    assert (sampling.top_p, sampling.top_k, sampling.seed, sampling.repetition_penalty) == (None,) * 4


def test_a_prompt_is_truncated_on_the_left_on_order() -> None:
    work = work_shard(1, [7])
    assert not shard_from_proto(work, SENT_AT, completes_text=True).sampling.truncate_left
    work.truncation = run_pb2.TRUNCATION_LEFT
    shard = shard_from_proto(work, SENT_AT, completes_text=True)
    assert (shard.truncate_left, shard.sampling.truncate_left) == (True, True)


def test_reasoning_is_kept_in_code_on_order() -> None:
    work = work_shard(1, [7])
    assert not shard_from_proto(work, SENT_AT, completes_text=True).keeps_reasoning
    work.keeps_reasoning = True
    assert shard_from_proto(work, SENT_AT, completes_text=True).keeps_reasoning


def test_a_part_of_a_shard_differs_in_its_samples_only() -> None:
    work = work_shard(1, range(5))
    part = work_messages_pb2.WorkShard.FromString(
        only_samples(work, (3, 1), timedelta(hours=1), failed_deliveries=0)
    )
    assert [sample.sample for sample in part.samples] == [1, 3]
    del part.samples[:], work.samples[:]
    assert part == work


def test_a_part_of_a_shard_carries_its_failed_deliveries() -> None:
    part = only_samples(work_shard(1, range(5)), (3,), timedelta(hours=1), failed_deliveries=2)
    assert work_messages_pb2.WorkShard.FromString(part).failed_deliveries == 2


def test_outcomes_become_messages_unchanged() -> None:
    shard = a_shard(1, 2, 3, number=4, attempt=2, epoch=3)
    usage, timing = TokenUsage(5, 6, 7, 8), Timing(0.4, 0.1, 0.2, 0.3)
    scored = Answer(choices=(ChoiceScore(-1.5, is_greedy=True, token_count=2),))
    outcomes = (
        shard.outcome(1, EngineResponse(Answer("", "length"), usage, timing)),
        shard.outcome(2, EngineResponse(scored, usage, timing)),
        shard.outcome(3, Failure(FailureClass.PROMPT_TOO_LONG, "too long")),
    )
    payload = batch_to_bytes(OutcomeBatch((shard,), outcomes), "worker-1", {"engine": "x"})
    batch = work_messages_pb2.OutcomeBatch.FromString(payload)
    assert (batch.run_id, batch.epoch, batch.worker_id, dict(batch.environment)) == (
        "run-1", 3, "worker-1", {"engine": "x"},
    )  # fmt: skip
    generated, choices, failed = batch.outcomes
    assert generated.WhichOneof("result") == "answer"
    assert (generated.shard, generated.attempt, generated.answer.finish_reason) == (4, 2, "length")
    assert generated.usage.cached_tokens == 7
    assert generated.timing == outcome_pb2.Timing(
        queue_seconds=0.1, first_token_seconds=0.2, between_tokens_seconds=0.3, total_seconds=0.4
    )
    assert [(c.logprob, c.is_greedy, c.token_count) for c in choices.answer.choices] == [(-1.5, True, 2)]
    assert failed.failure.failure_class == outcome_pb2.FAILURE_CLASS_PROMPT_TOO_LONG
    assert failed.failure.message == "too long"


def test_an_outcome_that_does_not_fit_a_message_fails_alone() -> None:
    shard = a_shard(1, 2)
    odd, good = (
        EngineResponse(Answer(text, "stop"), TokenUsage(5, 6), Timing()) for text in ("\ud800", "42")
    )
    batch = OutcomeBatch((shard,), (shard.outcome(1, odd), shard.outcome(2, good)))
    payload = batch_to_bytes(batch, "worker-1", {})
    first, second = work_messages_pb2.OutcomeBatch.FromString(payload).outcomes
    assert (first.sample, first.failure.failure_class) == (1, outcome_pb2.FAILURE_CLASS_PROVIDER_ERROR)
    assert not first.HasField("usage")
    assert (second.sample, second.answer.text) == (2, "42")


def test_rows_leave_unset_parameters_to_the_engine() -> None:
    work = work_shard(1, [7])
    work.use_engine_defaults = True
    work.params.Clear()
    sampling = shard_from_proto(work, SENT_AT, completes_text=True).sampling
    assert (sampling.max_tokens, sampling.temperature, sampling.is_row) == (None, None, True)


def test_rows_with_the_same_parameters_of_their_own_share_one_sampling() -> None:
    work = work_shard(1, [7, 8, 9, 10])
    work.use_engine_defaults, work.rollout = True, 1
    for sample, own in zip(work.samples, ('{"seed":3}', '{"seed":3}', "", '{"top_p":"x"}'), strict=True):
        sample.params_json = own
    first, second, third, broken = shard_from_proto(work, SENT_AT, completes_text=True).samples
    assert first.sampling is not None
    assert (first.sampling.seed, first.sampling.max_tokens) == (4, 8)
    assert second.sampling is first.sampling
    assert (third.sampling, third.refusal) == (None, "")
    assert broken.refusal == "The line's top_p is not a number."


def test_a_message_brings_what_it_has_besides_its_text() -> None:
    work = work_shard(1, [7])
    turn = work.samples[0].prompt.messages.add(role="user", content="Hi", fields_json='{"name":"Ann"}')
    assert shard_from_proto(work, SENT_AT, completes_text=True).samples[0].prompt == Prompt(
        messages=(ChatMessage(turn.role, turn.content, turn.fields_json),)
    )


def test_the_whole_answer_is_sent_with_its_text() -> None:
    shard, answer = a_shard(1), Answer("42", "stop", body_json='{"choices":[]}')
    batch = OutcomeBatch((shard,), (shard.outcome(1, EngineResponse(answer, TokenUsage(5, 6), Timing())),))
    (sent,) = work_messages_pb2.OutcomeBatch.FromString(batch_to_bytes(batch, "w", {})).outcomes
    assert sent.answer.body_json == answer.body_json


def test_a_deadline_is_what_was_left_when_the_message_was_sent() -> None:
    work = work_shard(1, [7])
    work.time_left.FromTimedelta(timedelta(minutes=3))
    assert shard_from_proto(work, SENT_AT, completes_text=True).deadline == SENT_AT + timedelta(minutes=3)
    part = work_messages_pb2.WorkShard.FromString(
        only_samples(work, (7,), timedelta(minutes=1), failed_deliveries=0)
    )
    assert part.time_left.ToTimedelta() == timedelta(minutes=1)
    work.ClearField("time_left")
    assert shard_from_proto(work, SENT_AT, completes_text=True).deadline.year == 9999
    assert not work_messages_pb2.WorkShard.FromString(
        only_samples(work, (7,), timedelta(minutes=1), failed_deliveries=0)
    ).HasField("time_left")


def dispatched(work: work_messages_pb2.WorkShard) -> work_messages_pb2.WorkShard:
    prove_dispatch(work, KEY)
    return work


def as_answered(*payloads: bytes) -> work_messages_pb2.OutcomeBatch:
    """All samples of the work messages, refused, as results receives them."""
    works = [work_messages_pb2.WorkShard.FromString(payload) for payload in payloads]
    shards = [shard_from_proto(work, SENT_AT, completes_text=True) for work in works]
    failure = Failure(FailureClass.REFUSED, "No.")
    outcomes = tuple(shard.outcome(sample.number, failure) for shard in shards for sample in shard.samples)
    payload = batch_to_bytes(OutcomeBatch(tuple(shards), outcomes), "w", {})
    return work_messages_pb2.OutcomeBatch.FromString(payload)


def test_a_part_that_a_worker_cuts_keeps_the_dispatch_proof_of_the_whole() -> None:
    work = dispatched(work_shard(1, range(3)))
    part = only_samples(work, (1,), timedelta(hours=1), failed_deliveries=0)
    batch = as_answered(part)
    assert [outcome.sample for outcome in batch.outcomes] == [1]
    assert drop_unproved(batch, KEY) == 0


def test_a_batch_shows_each_dispatch_proof_of_its_shards_once() -> None:
    first, again = dispatched(work_shard(1, [1, 2])), dispatched(work_shard(1, [1, 2], attempt=2))
    other_part = dispatched(work_shard(1, [5, 6]))
    batch = as_answered(*(work.SerializeToString() for work in (first, again, other_part)))
    shown = [work_messages_pb2.DispatchedShard.FromString(each.dispatched) for each in batch.dispatch_proofs]
    assert [(each.shard, each.attempt) for each in shown] == [(1, 1), (1, 2), (1, 1)]
    assert drop_unproved(batch, KEY) == 0
