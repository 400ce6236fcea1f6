"""The tasks that Proctor and lm-evaluation-harness both put to the small model, and where their rows lie."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.harness.starter_model import REPOSITORY
from tests.reference.golden_reference import folder_of

LIMIT = 200

# Ours say where the rows lie and which version they are; lm-evaluation-harness says both in another way. What
# a letter stands for it does not know: it reads no answers in words.
_OUR_KEYS = ("task", "version", "dataset", "doc_to_choice_text")
_SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class ComparedTask:
    """`yaml`: below the tasks of lm-evaluation-harness, or a task file of ours. `rows`: a JSONL file below
    PROCTOR_DATA_DIR, or in the repository."""

    suite: str
    name: str
    yaml: str
    rows: str
    max_tokens: int | None = None

    @property
    def is_ours(self) -> bool:
        return self.yaml.startswith("suites/")

    def definition(self, lm_eval_tasks: Path) -> Mapping[str, object]:
        """For lm-evaluation-harness: its own task, or ours in its words, over a file instead of a hub."""
        rows = (REPOSITORY if self.is_ours else folder_of("PROCTOR_DATA_DIR")) / self.rows
        over_files = {
            "task": self.name_in_lm_eval,
            "dataset_path": "json",
            "dataset_name": None,
            "dataset_kwargs": {"data_files": dict.fromkeys(_SPLITS, str(rows))},
        }
        if self.is_ours:
            ours = yaml.safe_load((REPOSITORY / self.yaml).read_text(encoding="utf-8"))
            kept = {key: value for key, value in ours.items() if key not in _OUR_KEYS}
            return {**kept, **over_files, "test_split": "test"}
        definition = {"include": str(lm_eval_tasks / self.yaml), **over_files}
        return {**definition, **self._shorter_answers(lm_eval_tasks / self.yaml)}

    @property
    def name_in_lm_eval(self) -> str:
        """Its own tasks keep their names, so that one over files needs another."""
        return f"local_{self.name}"

    def _shorter_answers(self, included: Path) -> Mapping[str, object]:
        if self.max_tokens is None:
            return {}
        generation = yaml.safe_load(included.read_text(encoding="utf-8"))["generation_kwargs"]
        return {"generation_kwargs": {**generation, "max_gen_toks": self.max_tokens}}


# Real rows, of which the small model knows nothing; and then rows of the kind that it has learnt, where the
# choices differ from row to row and answers are right.
COMPARED_TASKS = (
    ComparedTask("glue", "sst2", "glue/sst2/default.yaml", "glue/sst2.validation.jsonl"),
    ComparedTask("glue", "rte", "glue/rte/default.yaml", "glue/rte.validation.jsonl"),
    ComparedTask("superglue", "boolq", "super_glue/boolq/default.yaml", "super_glue/boolq.validation.jsonl"),
    ComparedTask("gsm8k", "gsm8k", "gsm8k/gsm8k.yaml", "gen/gsm8k.test.jsonl", max_tokens=64),
    *(
        ComparedTask("starter", name, f"suites/starter/{name}.yaml", f"suites/starter/data/{name}.test.jsonl")
        for name in ("sentiment", "odd_one", "addition")
    ),
)
