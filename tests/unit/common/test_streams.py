"""Subjects: tokens are safe and distinct, filters match what is published."""

import re

from proctor.values import messaging
from proctor.values.priority import Priority
from services.common.nats import streams


def test_a_model_name_becomes_one_safe_token() -> None:
    for model in ("vllm/Qwen/Qwen3-0.6B", "ollama/mistral:latest", "openai/a b.c>*", "vllm/" + "x" * 300):
        assert re.fullmatch(r"[a-z0-9-]+", messaging.model_token(model))


def test_models_that_look_alike_have_distinct_tokens() -> None:
    assert messaging.model_token("vllm/a.b") != messaging.model_token("vllm/a-b")


def test_the_consumer_of_a_model_reads_its_subjects_and_no_others() -> None:
    token = messaging.model_token("vllm/a")
    consumer = streams.work_consumer("local", token, Priority.HIGH, 15)
    prefix = consumer.filter_subject.removesuffix(">")

    assert messaging.work_subject("local", token, Priority.HIGH, "run").startswith(prefix)
    assert not messaging.work_subject("local", token, Priority.LOW, "run").startswith(prefix)
    assert not messaging.work_subject("local", messaging.ANY_MODEL, Priority.HIGH, "run").startswith(prefix)
