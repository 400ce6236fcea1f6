"""By which method the answers of an order are scored: a given text by log-likelihood only."""

from collections.abc import Sequence

import pytest

from proctor.values.scoring import ScoringMethod
from services.scheduler.runs.lifecycle.submit_run import resolve_scoring_method
from services.scheduler.runs.orders.errors import NeedsLoglikelihood, NeedsTokens
from services.scheduler.suites.suite import TaskDefinition
from tests.fakes.pools import provider_pool
from tests.fakes.scheduler.scheduler_harness import toy_order
from tests.fakes.suites.suite_documents import suite_of

WORDS = """\
task: last_words
dataset_path: org/words
test_split: test
output_type: loglikelihood
doc_to_text: "{{before}}"
doc_to_target: "{{after}}"
"""
GIVEN: Sequence[TaskDefinition] = suite_of(WORDS).tasks


def test_a_given_text_is_scored_by_loglikelihood_where_the_pool_can() -> None:
    assert resolve_scoring_method(toy_order(), GIVEN, provider_pool("remote")) is ScoringMethod.LOGLIKELIHOOD


@pytest.mark.parametrize(("engine", "ordered"), [("anthropic", None), ("openai", ScoringMethod.GENERATE)])
def test_a_given_text_cannot_be_asked_for_in_words(engine: str, ordered: ScoringMethod | None) -> None:
    with pytest.raises(NeedsLoglikelihood) as refusal:
        resolve_scoring_method(toy_order(scoring_method=ordered), GIVEN, provider_pool("remote", engine))
    assert refusal.value.facts["task"] == "last_words"
    assert refusal.value.facts["scoring_method"] == "generate"


def test_a_whole_text_needs_a_pool_that_knows_its_tokens() -> None:
    """Over HTTP each sample of the run would fail."""
    whole = suite_of(WORDS.replace("output_type: loglikelihood", "output_type: loglikelihood_rolling")).tasks
    with pytest.raises(NeedsTokens) as refusal:
        resolve_scoring_method(toy_order(), whole, provider_pool("remote"))
    assert refusal.value.facts["engine"] == "openai"
