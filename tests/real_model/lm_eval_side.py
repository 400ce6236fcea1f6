"""lm-evaluation-harness over a completions server: its command line, its tasks, the files that it writes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.values.providers.pool import PoolModel
from tests.real_model.compared_tasks import COMPARED_TASKS, LIMIT
from tests.real_model.examined_side import ExaminedSide, ExaminedTask, Said
from tests.reference.lm_eval_venv import lm_eval_python, run_in_lm_eval

CONCURRENT = 32
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Completions:
    """A server, what it serves, and how many tokens a prompt and its answer may have."""

    base_url: str
    served: PoolModel
    max_model_len: int


def examine_with_lm_eval(completions: Completions, folder: Path) -> ExaminedSide:
    """Asks everything; takes as long as that takes."""
    tasks, tokenizer, output = folder / "tasks", folder / "tokenizer", folder / "output"
    write_tasks(tasks)
    write_tokenizer(Path(completions.served.path), tokenizer)
    run_in_lm_eval(
        [
            *("-m", "lm_eval", "--model", "local-completions"),
            *("--model_args", model_arguments(completions, tokenizer)),
            *("--tasks", ",".join(task.name_in_lm_eval for task in COMPARED_TASKS)),
            *("--include_path", tasks, "--output_path", output, "--log_samples"),
            *("--limit", str(LIMIT), "--num_fewshot", "0"),
        ]
    )
    [results] = output.glob("*/results_*.json")
    figures = json.loads(results.read_text(encoding="utf-8"))["results"]
    return {
        task.name: examined_task(results.parent, task.name_in_lm_eval, figures) for task in COMPARED_TASKS
    }


def write_tasks(folder: Path) -> None:
    folder.mkdir()
    [its_tasks] = lm_eval_python().parents[1].glob("lib/python*/site-packages/lm_eval/tasks")
    for task in COMPARED_TASKS:
        definition = json.dumps(task.definition(its_tasks))
        (folder / f"{task.name_in_lm_eval}.yaml").write_text(definition, encoding="utf-8")


def write_tokenizer(model: Path, folder: Path) -> None:
    """The model's own, under the name that its class has in transformers 4."""
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    written = json.loads((model / "tokenizer_config.json").read_text(encoding="utf-8"))
    kept = {key: value for key, value in written.items() if key.endswith("_token")}
    config = {**kept, "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def model_arguments(completions: Completions, tokenizer: Path) -> str:
    """`max_length` as the server has it: of that it keeps a place for the token that must be produced."""
    arguments = {
        "model": completions.served.name,
        "base_url": f"{completions.base_url}/completions",
        "tokenizer_backend": "huggingface",
        "tokenizer": tokenizer,
        "max_length": completions.max_model_len,
        "num_concurrent": CONCURRENT,
        "max_retries": 1,
    }
    return ",".join(f"{name}={value}" for name, value in arguments.items())


def examined_task(folder: Path, name: str, results: Mapping[str, Mapping[str, Any]]) -> ExaminedTask:
    [samples] = folder.glob(f"samples_{name}_*.jsonl")
    file = samples.read_bytes()
    lines = [json.loads(line) for line in file.splitlines()]
    filters = list(dict.fromkeys(line["filter"] for line in lines))
    figures = {
        metric if len(filters) == 1 else f"{metric},{filtered_by}": results[name][f"{metric},{filtered_by}"]
        for filtered_by in filters
        for metric in lines[0]["metrics"]
    }
    return ExaminedTask(said_in(lines), figures, file)


def said_in(lines: Sequence[Line]) -> list[Said]:
    """One per document; a document has a line per filter."""
    has_several = len({line["filter"] for line in lines}) > 1
    scores: dict[int, dict[str, float]] = {}
    for line in lines:
        suffix = f",{line['filter']}" if has_several else ""
        named = {f"{metric}{suffix}": float(line[metric]) for metric in line["metrics"]}
        scores.setdefault(line["doc_id"], {}).update(named)
    documents = {line["doc_id"]: line for line in lines}
    return [said_of(documents[doc_id], scores[doc_id]) for doc_id in sorted(documents)]


def said_of(line: Line, scores: Mapping[str, float]) -> Said:
    """Where choices were weighed, each response is a log-probability and whether it is the likeliest text."""
    second = [argument["arg_1"] for argument in line["arguments"].values()]
    responses = [response for [response] in line["resps"]]
    is_text = isinstance(second[0], dict)
    return Said(
        doc_id=line["doc_id"],
        prompt_hash=line["prompt_hash"],
        choices=() if is_text else tuple(second),
        logprobs=() if is_text else tuple(float(logprob) for logprob, _ in responses),
        text=responses[0] if is_text else "",
        scores=scores,
    )
