"""Texts whose log-probability lm-evaluation-harness logs: after one context, after several, or alone."""

import json

import pytest

from proctor.values.sample import Target
from proctor.values.scoring import MetricUse, OutputType
from services.scheduler.suites.rendering.sample import RenderedRow, digest_of, encode_row
from tests.fakes.imports.read_logs import lines, read

EXAMPLE = "The jug fits the box because the box is large.\n\n"


def requests(*arguments: tuple[str, ...]) -> dict[str, object]:
    return {
        f"gen_args_{number}": {f"arg_{place}": text for place, text in enumerate(texts)}
        for number, texts in enumerate(arguments)
    }


def gap_line(logprobs: tuple[float, float], acc: float, target: object = "is too big.") -> dict[str, object]:
    """As of winogrande, whose target in the log is the text and not the number of the right context."""
    weights = [[str(logprob), "False"] for logprob in logprobs]
    return {
        "doc_id": 0,
        "doc": {"sentence": "The cup fails to fit since the _ is too big."},
        "target": target,
        "arguments": requests(
            (f"{EXAMPLE}The cup fails to fit since the cup", " is too big."),
            (f"{EXAMPLE}The cup fails to fit since the case", " is too big."),
        ),
        "resps": [[one] for one in weights],
        "filtered_resps": weights,
        "filter": "none",
        "metrics": ["acc"],
        "acc": acc,
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (gap_line((-3.0, -2.0), 1.0), Target(choice=1)),
        (gap_line((-3.0, -2.0), 0.0), Target(choice=0)),
        (gap_line((-3.0, -2.0), 0.0, target="1"), Target(choice=1)),
    ],
)
def test_several_contexts_before_one_text_are_choices_with_that_ending(
    line: dict[str, object], expected: Target
) -> None:
    run, [sample] = read({"samples_winogrande.jsonl": lines(line)}, model="hf/m")
    assert run.tasks[0].output_type is OutputType.MULTIPLE_CHOICE
    choices = (
        "The cup fails to fit since the cup is too big.",
        "The cup fails to fit since the case is too big.",
    )
    found = sample.sample
    assert (found.prompt.text, found.choices, found.choice_ending) == (EXAMPLE, choices, " is too big.")
    assert found.target == expected
    [answer] = sample.answers
    assert answer.answer is not None
    assert [one.logprob for one in answer.answer.choices] == [-3.0, -2.0]
    assert answer.prediction == choices[1]
    # As a run of ours digests it.
    row = RenderedRow(EXAMPLE, choices, expected, " is too big.")
    assert found.digest == digest_of(encode_row("winogrande", run.tasks[0].version, row))


def test_perplexity_of_targets_is_of_their_log_probabilities() -> None:
    line = {
        "doc_id": 0,
        "doc": {"text": "one two"},
        "target": " two",
        "arguments": requests(("one", " two")),
        "resps": [[["-1.5", "True"]]],
        "filtered_resps": [["-1.5", "True"]],
        "filter": "none",
        "metrics": ["perplexity", "acc"],
        "perplexity": -1.5,
        "acc": 1.0,
    }
    results = {"results": {"lambada": {}}, "configs": {"lambada": {"output_type": "loglikelihood"}}}
    files = {"results_1.json": json.dumps(results), "samples_lambada.jsonl": lines(line)}
    run, [sample] = read(files, model="hf/m")
    assert run.tasks[0].output_type is OutputType.LOGLIKELIHOOD
    assert (sample.sample.choices, sample.sample.target) == ((" two",), Target(choice=0))
    # More of acc is better, so it is the main one.
    assert [use.name for use in run.tasks[0].scoring.metrics] == ["acc", "perplexity"]
    assert [use.aggregation for use in run.tasks[0].scoring.metrics] == ["", ""]
    assert dict(sample.answers[0].scores) == {"perplexity": (-1.5, 1.0), "acc": 1.0}


def test_a_whole_text_is_no_prompt_and_its_words_count() -> None:
    line = {
        "doc_id": 0,
        "doc": {"page": "Cats purr ."},
        "target": "Cats purr.",
        "arguments": requests(("Cats purr.",)),
        "resps": [["-12.5"]],
        "filtered_resps": ["-12.5"],
        "filter": "none",
        "metrics": ["word_perplexity"],
        "word_perplexity": [-12.5, 3],
    }
    run, [sample] = read({"samples_wikitext.jsonl": lines(line)}, model="hf/m")
    [task] = run.tasks
    assert (task.output_type, task.metrics) == (
        OutputType.LOGLIKELIHOOD_ROLLING,
        (MetricUse("word_perplexity"),),
    )
    assert (sample.sample.prompt.text, sample.sample.choices) == ("", ("Cats purr.",))
    [answer] = sample.answers
    assert answer.answer is not None
    assert [one.logprob for one in answer.answer.choices] == [-12.5]
    assert dict(answer.scores) == {"word_perplexity": (-12.5, 3.0)}


def test_a_log_says_of_which_metrics_less_is_better() -> None:
    results = {"results": {"speech": {}}, "higher_is_better": {"speech": {"wer": False, "kept": True}}}
    line = {
        "doc_id": 0,
        "arguments": [["Hear", {"until": []}]],
        "resps": [["a"]],
        "metrics": ["wer", "kept"],
        "wer": 0.25,
        "kept": 0.5,
    }
    files = {"results_1.json": json.dumps(results), "samples_speech.jsonl": lines(line)}
    run, _ = read(files, model="hf/m")
    assert [use.less_is_better for use in run.tasks[0].metrics] == [True, False]
    assert run.tasks[0].scoring.metrics[0].name == "kept"
