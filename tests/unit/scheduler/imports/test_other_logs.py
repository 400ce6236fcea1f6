"""Logs of Inspect, HELM, Every Eval Ever, Harbor and Terminal-Bench, each in the form of its tool."""

import json
import zipfile
from io import BytesIO

import pytest
from zstandard import ZstdCompressor

from proctor.values.sample import Target
from proctor.values.scoring import OutputType
from services.scheduler.imports.logs.unknown_conditions import AGENT, LIMIT
from tests.fakes.imports.read_logs import lines, problem_of, read

HEADER = {
    "version": 2,
    "status": "success",
    "eval": {
        "task": "org/quiz",
        "task_version": 3,
        "model": "openai/gpt-x",
        "dataset": {"name": "org/rows"},
        "config": {"limit": 2, "epochs": 2},
        "packages": {"inspect_ai": "0.3.100"},
    },
    "plan": {"config": {"temperature": 0.5, "stop_seqs": ["END"]}},
    "results": {
        "scores": [{"name": "match", "metrics": {"accuracy": {"value": 0.5}, "stderr": {"value": 1}}}]
    },
}


def inspect_sample(number: int, epoch: int, value: object, **more: object) -> dict[str, object]:
    return {
        "id": number,
        "epoch": epoch,
        "input": f"{number}?",
        "target": "4",
        "messages": [
            {"role": "system", "content": "attachment://abc"},
            {"role": "user", "content": f"{number}?"},
            {"role": "assistant", "content": "4"},
        ],
        "attachments": {"abc": "Be brief."},
        "output": {
            "choices": [
                {
                    "message": {
                        "content": [{"type": "reasoning", "reasoning": "2+2"}, {"type": "text", "text": "4"}]
                    },
                    "stop_reason": "stop",
                }
            ]
        },
        "scores": {"match": {"value": value, "answer": "4"}},
        "model_usage": {"m": {"input_tokens": 5, "output_tokens": 2, "input_tokens_cache_read": 1}},
        "total_time": 1.5,
        **more,
    }


EVAL = {
    "header.json": json.dumps(HEADER),
    "summaries.json": "[]",
    **{
        f"samples/{number}_epoch_{epoch}.json": json.dumps(inspect_sample(number, epoch, value))
        for number, epoch, value in [(10, 1, "C"), (2, 2, "I"), (2, 1, {"a": 1, "b": "P"})]
    },
}


def test_an_eval_archive_has_epochs_as_rollouts_and_scorers_as_metrics() -> None:
    run, samples = read(EVAL, "quiz.eval")
    [task] = run.tasks
    assert (run.tool_in_words, run.model, run.benchmark) == ("inspect 0.3.100", "openai/gpt-x", "quiz")
    assert (run.rollouts, run.answer_counts, run.limit) == (2, (2, 1), 2)
    assert (task.version, dict(task.figures)) == ("3", {"match/accuracy": 0.5})
    assert json.loads(task.request_json) == {"prompt_form": "chat", "temperature": 0.5, "stop": ["END"]}
    assert AGENT in task.unknown
    assert [sample.sample.row_id for sample in samples] == ["2", "10"]
    first, second = samples[0].answers
    assert (dict(first.scores), dict(second.scores)) == ({"match/a": 1.0, "match/b": 0.5}, {"match": 0.0})
    assert first.answer is not None
    assert (first.answer.text, first.answer.reasoning, first.prediction) == ("4", "2+2", "4")
    assert (first.usage.prompt_tokens, first.usage.completion_tokens, first.timing.total_seconds) == (
        6,
        2,
        1.5,
    )
    assert [turn.content for turn in samples[0].sample.prompt.messages] == ["Be brief.", "2?"]


def test_a_document_with_all_samples_is_the_same() -> None:
    document = {**HEADER, "samples": [inspect_sample(2, 1, "C"), inspect_sample(10, 1, "I")]}
    run, samples = read(json.dumps(document).encode(), "quiz.json")
    assert [dict(sample.answers[0].scores) for sample in samples] == [{"match": 1.0}, {"match": 0.0}]
    assert run.rollouts == 1


def test_an_error_of_a_sample_is_a_failure() -> None:
    broken = inspect_sample(1, 1, "C", error={"message": "no room"}, scores=None)
    document = {**HEADER, "status": "error", "samples": [broken]}
    run, [sample] = read(json.dumps(document).encode(), "quiz.json")
    assert (sample.answers[0].answer, sample.answers[0].failure) == (None, "no room")
    assert run.notes[0] == "The evaluation ended as error."


def test_members_that_are_compressed_by_zstd_are_read() -> None:
    """zipfile of Python before 3.14 cannot: the method of each member is set in both of its headers."""
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, text in EVAL.items():
            archive.writestr(name, ZstdCompressor().compress(text.encode()))
    packed = bytearray(content.getvalue())
    with zipfile.ZipFile(BytesIO(bytes(packed))) as archive:
        for info in archive.infolist():
            packed[info.header_offset + 8 : info.header_offset + 10] = (93).to_bytes(2, "little")
            size = len(EVAL[info.filename].encode()).to_bytes(4, "little")
            at = packed.index(b"PK\x01\x02")
            while packed[at + 46 : at + 46 + len(info.filename)] != info.filename.encode():
                at = packed.index(b"PK\x01\x02", at + 4)
            packed[at + 10 : at + 12] = (93).to_bytes(2, "little")
            packed[at + 24 : at + 28] = size
    run, samples = read(bytes(packed), "quiz.eval")
    assert (run.benchmark, len(samples)) == ("quiz", 2)


def helm_request(instance_id: str, text: str, *, correct: int = 1, **more: object) -> dict[str, object]:
    references = [
        {"output": {"text": word}, "tags": ["correct"] if index == correct else []}
        for index, word in enumerate(("cat", "dog"))
    ]
    return {
        "instance": {"id": instance_id, "input": {"text": "Which?"}, "references": references},
        "train_trial_index": 0,
        "output_mapping": {"A": "cat", "B": "dog"},
        "request": {"prompt": "Which? A. cat B. dog"},
        "result": {
            "success": True,
            "request_time": 2.0,
            "completions": [{"text": text, "logprob": -1.0, "tokens": [1]}],
        },
        **more,
    }


def helm_files(requests: list[dict[str, object]], method: str = "multiple_choice_joint") -> dict[str, str]:
    names = ("exact_match", "num_prompt_tokens")
    stats = [
        {
            "instance_id": "id1",
            "train_trial_index": 0,
            "stats": [{"name": {"name": name}, "mean": 1.0} for name in names],
        }
    ]
    adapter = {
        "method": method,
        "model": "openai/gpt2",
        "max_train_instances": 5,
        "temperature": 0.0,
        "max_tokens": 1,
    }
    return {
        "run/scenario_state.json": json.dumps({"adapter_spec": adapter, "request_states": requests}),
        "run/per_instance_stats.json": json.dumps(stats),
        "run/run_spec.json": json.dumps({"name": "mmlu:subject=law,model=openai_gpt2"}),
    }


def test_a_run_folder_of_helm_has_its_scores_by_instance() -> None:
    perturbed = helm_request("id1", " A")
    perturbed["instance"] = {**perturbed["instance"], "perturbation": {"name": "typos"}}  # type: ignore[dict-item]  # an object
    run, samples = read(helm_files([helm_request("id1", " B"), helm_request("id2", " A"), perturbed]))
    [task] = run.tasks
    assert (run.model, task.task, task.num_fewshot) == ("openai/gpt2", "mmlu:subject=law", 5)
    assert [metric.name for metric in task.metrics] == ["exact_match"]
    assert run.notes == ("1 requests of perturbed instances were left out.",)
    [first, second] = samples
    assert first.sample.target == Target(texts=("dog",))
    assert (first.answers[0].prediction, dict(first.answers[0].scores)) == ("dog", {"exact_match": 1.0})
    assert dict(second.answers[0].scores) == {}


def test_requests_for_each_choice_are_one_sample() -> None:
    requests = [helm_request("id1", "", reference_index=index) for index in (0, 1)]
    run, [sample] = read(helm_files(requests, "multiple_choice_separate_original"))
    assert run.tasks[0].output_type is OutputType.MULTIPLE_CHOICE
    assert (sample.sample.choices, sample.sample.target.choice) == (("cat", "dog"), 1)
    assert sample.answers[0].answer is not None
    assert [each.logprob for each in sample.answers[0].answer.choices] == [-1.0, -1.0]


def test_a_request_that_failed_is_a_failure() -> None:
    failed = helm_request("id1", "", result={"success": False, "error": "429"})
    _, [one, other] = read(helm_files([failed, helm_request("id2", " A")]))
    assert (one.answers[0].failure, other.answers[0].failure) == ("429", "")


def every_eval_line(sample_id: str, score: float) -> dict[str, object]:
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "x",
        "model_id": "org/model",
        "evaluation_name": "sums",
        "sample_id": sample_id,
        "input": {"raw": "2+2", "formatted": "Q: 2+2", "reference": ["4", "four"]},
        "output": {"raw": ["It is 4."], "reasoning_trace": ["Sum."]},
        "answer_attribution": [{"extracted_value": "4"}],
        "evaluation": {"score": score, "is_correct": score == 1},
        "token_usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
        "performance": {"latency_ms": 1500},
    }


def test_every_eval_ever_has_its_samples_beside_the_document() -> None:
    result = {
        "evaluation_name": "sums",
        "metric_config": {"metric_name": "accuracy"},
        "score_details": {"score": 0.5},
        "source_data": {"dataset_name": "rows"},
    }
    document = {"schema_version": "0.3.0", "evaluation_id": "x", "evaluation_results": [result]}
    files = {
        "x.json": json.dumps(document),
        "x_samples.jsonl": lines(every_eval_line("a", 1), every_eval_line("b", 0)),
    }
    run, [first, second] = read(files)
    assert (run.tool_in_words, run.model, run.benchmark) == ("every_eval_ever 0.3.0", "org/model", "sums")
    assert (dict(run.tasks[0].figures), run.tasks[0].row_source) == ({"accuracy": 0.5}, "rows")
    assert first.sample.target.texts == ("4", "four")
    assert [dict(each.answers[0].scores) for each in (first, second)] == [
        {"accuracy": 1.0},
        {"accuracy": 0.0},
    ]
    assert (first.answers[0].prediction, first.answers[0].timing.total_seconds) == ("4", 1.5)
    assert "figures and no samples" in problem_of({"x.json": json.dumps(document)})


def trial(task: str, reward: float | None, **more: object) -> str:
    return json.dumps(
        {
            "task_name": task,
            "source": "terminal-bench",
            "task_checksum": f"sum of {task}",
            "agent_info": {
                "name": "terminus-2",
                "version": "2.0",
                "model_info": {"name": "gpt-x", "provider": "openai"},
            },
            "agent_result": {"n_input_tokens": 9, "n_output_tokens": 4, "n_cache_tokens": 2},
            "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
            "exception_info": {"exception_type": "Timeout", "exception_message": "late"}
            if reward is None
            else None,
            "started_at": "2026-01-01T00:00:00Z",
            "finished_at": "2026-01-01T00:01:00Z",
            **more,
        }
    )


def test_a_job_of_harbor_has_trials_as_rollouts() -> None:
    files = {
        "job/result.json": json.dumps({"n_total_trials": 3, "stats": {}}),
        "job/a__1/result.json": trial("a", 1.0),
        "job/a__2/result.json": trial("a", None),
        "job/b__1/result.json": trial("b", 0.25),
    }
    run, [first, second] = read(files)
    assert (run.model, run.benchmark, run.rollouts, run.answer_counts) == (
        "openai/gpt-x",
        "terminal-bench",
        2,
        (2, 1),
    )
    assert json.loads(run.tasks[0].request_json)["agent"] == "terminus-2 2.0"
    assert LIMIT in run.tasks[0].unknown
    solved, failed = first.answers
    assert (dict(solved.scores), solved.timing.total_seconds) == ({"reward": 1.0}, 60.0)
    assert (failed.answer, failed.failure) == (None, "Timeout: late")
    assert dict(second.answers[0].scores) == {"reward": 0.25}


def test_a_job_of_several_models_is_refused() -> None:
    other = trial("a", 1.0, agent_info={"name": "x", "model_info": {"name": "y", "provider": "z"}})
    problem = problem_of({"job/1/result.json": trial("a", 1.0), "job/2/result.json": other})
    assert "several models or agents" in problem


@pytest.mark.parametrize(("resolved", "score"), [(True, 1.0), (False, 0.0)])
def test_results_of_terminal_bench_are_read(resolved: bool, score: float) -> None:  # noqa: FBT001  # a case
    results = {
        "results": [
            {"task_id": "a", "is_resolved": resolved, "failure_mode": "unset", "instruction": "Do it."}
        ]
    }
    run, [sample] = read({"results.json": json.dumps(results)}, model="openai/gpt-x")
    assert (run.tool, sample.sample.prompt.text) == ("harbor", "Do it.")
    assert dict(sample.answers[0].scores) == {"reward": score}


def test_the_accuracy_of_terminal_bench_counts_trials_without_a_verdict() -> None:
    trials = [{"task_id": name, "is_resolved": resolved} for name, resolved in (("a", True), ("b", None))]
    run, samples = read({"results.json": json.dumps({"results": trials, "accuracy": 0.5})}, model="x/y")
    assert [bool(sample.answers[0].failure) for sample in samples] == [False, True]
    assert run.tasks[0].figures == {"accuracy": 0.5}
    assert run.notes == ("accuracy of tasks is 0.5 in the log; the mean of its samples is 1.",)
