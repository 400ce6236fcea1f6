"""What lm-evaluation-harness logs, in the forms of its releases."""

import json

import pytest

from proctor.values.sample import Target
from proctor.values.scoring import MetricUse, OutputType
from services.scheduler.imports.logs.unknown_conditions import LIMIT, SHOTS
from services.scheduler.suites.rendering.sample import RenderedRow, digest_of, encode_row
from tests.fakes.imports.read_logs import lines, problem_of, read

RESULTS = {
    "results": {"qa": {"alias": "qa", "acc,none": 0.5, "acc_stderr,none": 0.1}},
    "versions": {"qa": 2.0},
    "n-shot": {"qa": 3},
    "n-samples": {"qa": {"original": 10, "effective": 2}},
    "configs": {"qa": {"dataset_path": "org/qa", "metadata": {"version": 2.0}}},
    "model_source": "hf",
    "model_name": "org/model",
    "chat_template_sha": None,
    "lm_eval_version": "0.4.13",
}


# What releases before 0.4 wrote.
EARLY = {
    "results": {"qa": {"acc": 0.5, "acc_stderr": 0.1}},
    "versions": {"qa": 0},
    "config": {"model": "hf-causal", "model_args": "pretrained=gpt2", "num_fewshot": 0, "limit": None},
}


def choice_line(doc_id: int, acc: float, target: object = "1", **more: object) -> dict[str, object]:
    return {
        "doc_id": doc_id,
        "doc": {"q": f"{doc_id}?"},
        "target": target,
        "arguments": {
            f"gen_args_{index}": {"arg_0": f"Question {doc_id}?", "arg_1": f" {word}"}
            for index, word in enumerate(("yes", "no"))
        },
        "resps": [[["-2.5", "False"]], [["-1.25", "True"]]],
        "filtered_resps": [["-2.5", "False"], ["-1.25", "True"]],
        "filter": "none",
        "metrics": ["acc"],
        "acc": acc,
        **more,
    }


def text_line(doc_id: int, name: str, score: object, **more: object) -> dict[str, object]:
    return {
        "doc_id": doc_id,
        "doc": {"q": doc_id},
        "target": "5",
        "arguments": [[f"{doc_id} + 1 =", {"until": ["\n"], "max_gen_toks": 8, "do_sample": False}]],
        "resps": [["is 5"]],
        "filtered_resps": ["5"],
        "filter": name,
        "exact_match": score,
        **more,
    }


def test_choices_have_their_log_likelihoods_and_the_scores_of_the_log() -> None:
    files = {
        "out/results_2026-01-01T00-00-00.000000.json": json.dumps(RESULTS),
        "out/samples_qa_2026-01-01T00-00-00.000000.jsonl": lines(choice_line(0, 1.0), choice_line(1, 0.0)),
    }
    run, samples = read(files)
    [task] = run.tasks
    assert (run.tool_in_words, run.model) == ("lm-eval 0.4.13", "hf/org/model")
    assert (run.benchmark, run.limit) == ("qa", 2)
    assert (task.version, task.num_fewshot, task.row_source) == ("2.0", 3, "org/qa")
    assert task.output_type is OutputType.MULTIPLE_CHOICE
    assert task.metrics == (MetricUse("acc"),)
    assert dict(task.figures) == {"acc,none": 0.5}
    assert not {SHOTS, LIMIT, "prompt form", "temperature"}.intersection(task.unknown)
    [first, _] = samples
    [answer] = first.answers
    assert answer.answer is not None
    assert [(one.logprob, one.is_greedy) for one in answer.answer.choices] == [(-2.5, False), (-1.25, True)]
    assert (answer.prediction, dict(answer.scores)) == ("no", {"acc": 1.0})
    rendered = RenderedRow("Question 0?", (" yes", " no"), Target(choice=1))
    assert first.sample.digest == digest_of(encode_row("qa", "2.0", rendered))


def test_lines_of_several_filters_are_one_sample() -> None:
    names = ("strict", "loose")
    found = lines(*(text_line(doc, name, float(name == "loose")) for name in names for doc in (0, 1)))
    run, samples = read({"samples_sum.jsonl": found}, model="hf/m")
    assert [len(sample.answers) for sample in samples] == [1, 1]
    assert dict(samples[0].answers[0].scores) == {"exact_match,strict": 0.0, "exact_match,loose": 1.0}
    assert [each["name"] for each in json.loads(run.tasks[0].filters_json)] == ["strict", "loose"]
    request = json.loads(run.tasks[0].request_json)
    assert request == {"temperature": 0.0, "max_tokens": 8, "stop": ["\n"]}
    assert "top_p" in run.tasks[0].unknown


def test_a_list_of_samples_and_names_without_a_date_are_read() -> None:
    """As releases before 0.4.3 write them."""
    config = {"model": "hf", "model_args": "pretrained=org/m,dtype=float"}
    results = {"results": {"qa": {"acc": 1.0}}, "configs": {"qa": {}}, "config": config}
    old = choice_line(0, 1.0, target=1)
    del old["filter"], old["metrics"]
    old["arguments"] = [["Q?", " yes"], ["Q?", " no"]]
    files = {"results.json": json.dumps(results), "pretrained__org__m_qa.jsonl": json.dumps([old], indent=2)}
    run, samples = read(files)
    assert (run.model, [task.task for task in run.tasks]) == ("hf/org/m", ["qa"])
    assert dict(samples[0].answers[0].scores) == {"acc": 1.0}


def test_results_and_samples_in_one_document_are_read() -> None:
    document = {**RESULTS, "samples": {"qa": [choice_line(0, 1.0)]}}
    run, samples = read(json.dumps(document).encode(), "results.json")
    assert (run.benchmark, len(samples)) == ("qa", 1)


def test_a_number_of_several_processes_stands_for_several_documents() -> None:
    _, samples = read({"samples_qa.jsonl": lines(choice_line(0, 1.0), choice_line(0, 0.0))}, model="hf/m")
    assert [dict(sample.answers[0].scores) for sample in samples] == [{"acc": 1.0}, {"acc": 0.0}]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("0", Target(choice=0)),
        ("no", Target(choice=1)),
        (1, Target(choice=1)),
        ("[0, 1]", Target(right_choices=(0, 1))),
        ("maybe", Target()),
    ],
)
def test_targets_of_choices_are_numbers_texts_or_lists(target: object, expected: Target) -> None:
    _, [sample] = read({"samples_qa.jsonl": lines(choice_line(0, 1.0, target=target))}, model="hf/m")
    assert sample.sample.target == expected


@pytest.mark.parametrize(
    ("target", "texts"), [("['a', 'b']", ("a", "b")), ("[1, 2]", ("[1, 2]",)), ("5", ("5",)), (5, ("5",))]
)
def test_targets_of_text_are_a_text_or_several(target: object, texts: tuple[str, ...]) -> None:
    _, [sample] = read({"samples_qa.jsonl": lines(text_line(0, "none", 1.0, target=target))}, model="hf/m")
    assert sample.sample.target.texts == texts


def test_pairs_stay_pairs_for_a_metric_of_ours_that_is_made_of_them() -> None:
    line = choice_line(0, 1.0, metrics=["acc", "mcc", "odd"], mcc=[1, 0], odd=[1, 0])
    run, [sample] = read({"samples_qa.jsonl": lines(line)}, model="hf/m")
    assert dict(sample.answers[0].scores) == {"acc": 1.0, "mcc": (1.0, 0.0)}
    assert run.tasks[0].metrics == (MetricUse("acc"), MetricUse("mcc"))


def test_numbers_of_a_metric_that_is_made_of_pairs_here_are_averaged() -> None:
    line = text_line(0, "none", 1.0, metrics=["f1"], f1=0.75)
    run, [sample] = read({"samples_qa.jsonl": lines(line)}, model="hf/m")
    assert dict(sample.answers[0].scores) == {"f1": 0.75}
    assert run.tasks[0].metrics == (MetricUse("f1", aggregation="mean"),)


def test_a_figure_that_is_not_of_the_samples_has_a_note() -> None:
    files = {
        "results_2026-01-01T00-00-00.000000.json": json.dumps(RESULTS),
        "samples_qa_2026-01-01T00-00-00.000000.jsonl": lines(choice_line(0, 1.0)),
    }
    run, _ = read(files)
    assert run.notes[0] == "acc,none of qa is 0.5 in the log; the mean of its samples is 1."


def test_chats_are_read_as_messages() -> None:
    turns = json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "5?"}])
    line = text_line(0, "none", 1.0, arguments=[[[turns], {"until": []}]])
    _, [sample] = read({"samples_qa.jsonl": lines(line)}, model="hf/m")
    assert [(turn.role, turn.content) for turn in sample.sample.prompt.messages] == [
        ("system", "Be brief."),
        ("user", "5?"),
    ]


def test_what_the_log_lacks_is_said_in_one_sentence() -> None:
    assert problem_of({"samples_qa.jsonl": lines(choice_line(0, 1.0))}) == (
        "It does not tell its model. Name it: provider/name."
    )
    assert problem_of({"results.json": json.dumps(RESULTS)}) == (
        "It has no samples; lm-eval writes them with --log_samples."
    )
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    assert problem_of({"results_x.json": json.dumps(RESULTS), "samples_qa.jsonl": pointer}) == (
        "samples_qa.jsonl is a pointer of Git LFS, not the file itself. Fetch it: git lfs pull."
    )
    for early in (EARLY, {**EARLY, "results": [{"task_name": "qa", "prompt_name": "who", "em": 0.5}]}):
        problem = problem_of({f"step{number}.json": json.dumps(early) for number in (1, 2)})
        assert problem.startswith("It has figures of lm-eval before 0.4, without samples.")
    assert "lm-eval before 0.4 writes with --write_out" in problem_of(
        {
            "qa.json": json.dumps(
                [{"doc_id": 0, "prompt_0": "5? yes", "logit_0": -2.5, "truth": "1", "acc": "1"}]
            )
        }
    )
    two = {f"{name}/results_x.json": json.dumps(RESULTS) for name in "ab"}
    assert "results of 2 runs" in problem_of({**two, "samples_qa.jsonl": lines(choice_line(0, 1.0))})
    assert problem_of({"samples_qa.jsonl": lines({"answer": 1})}, model="hf/m") == (
        "Line 1 of its samples has neither doc_id nor arguments."
    )
