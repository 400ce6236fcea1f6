"""Subjects: tokens are safe and distinct, filters match what is published."""

import re

from services.common import subjects


def test_a_model_name_becomes_one_safe_token() -> None:
    for model in ("vllm/Qwen/Qwen3-0.6B", "ollama/mistral:latest", "openai/a b.c>*", "vllm/" + "x" * 300):
        assert re.fullmatch(r"[a-z0-9-]+", subjects.model_token(model))


def test_models_that_look_alike_have_distinct_tokens() -> None:
    assert subjects.model_token("vllm/a.b") != subjects.model_token("vllm/a-b")


def test_the_consumer_of_a_model_reads_its_subjects_and_no_others() -> None:
    token = subjects.model_token("vllm/a")
    consumer = subjects.work_consumer("local", token, "high", 15)
    prefix = consumer.filter_subject.removesuffix(">")

    assert subjects.work_subject("local", token, "high", "run").startswith(prefix)
    assert not subjects.work_subject("local", token, "low", "run").startswith(prefix)
    assert not subjects.work_subject("local", subjects.ANY_MODEL, "high", "run").startswith(prefix)
