"""Subjects and ids on NATS."""

from proctor.values import messaging
from proctor.values.priority import Priority


def test_a_model_is_one_token_of_a_subject_and_distinct() -> None:
    token = messaging.model_token("vllm/Qwen/Qwen3-0.6B")
    assert token.startswith("vllm-qwen-qwen3-0-6b-")
    assert token != messaging.model_token("vllm/qwen/qwen3-0.6b")
    assert "." not in messaging.model_token("a" * 200 + ".b")


def test_filters_match_the_subjects_that_they_are_for() -> None:
    subject = messaging.work_subject("gpu", "m-1", Priority.HIGH, "run")
    assert subject == "work.gpu.m-1.high.run"
    assert messaging.work_of_run("run") == "work.*.*.*.run"
    assert subject.startswith(messaging.work_of_model("gpu", "m-1").removesuffix(">"))
    assert subject.startswith(messaging.work_of_priority("gpu", "m-1", Priority.HIGH).removesuffix(">"))


def test_ids_of_a_shard_its_parts_and_its_rests_differ() -> None:
    ids = {
        messaging.shard_message_id("run", 1, 3, 1),
        messaging.shard_message_id("run", 2, 3, 1),
        messaging.shard_message_id("run", 1, 3, 1, part=1),
        messaging.single_message_id("run", 1, 3, 1, 17),
        messaging.rest_message_id("run", 1, 3, 1, "17"),
        messaging.shard_message_id("run", 1, 3, 2),
    }
    assert len(ids) == 6
    assert messaging.shard_message_id("run", 2, 3, 1) == "run/2/3/1"
    assert messaging.run_of_work("work.gpu.m-1.high.run") == "run"
