"""Rows of our own making, in the shape of each data set that a suite of the repository reads."""

from dataclasses import dataclass

from services.scheduler.suites.rows.file_rows import FileRows
from services.scheduler.suites.rows.row_source import Provenance, RowSet, RowsReference, SourceRow
from tests.reference.field_rows import made_rows

_PAIR = {"sentence1": "A cat sat.", "sentence2": "An animal sat.", "label": 0, "idx": 0}
_MNLI = {"premise": "A cat sat.", "hypothesis": "An animal sat", "label": 0, "idx": 0}
_MMLU = {
    "question": " What is two and two? ",
    "choices": ["3", "4", "5", "22"],
    "answer": 1,
    "subject": "sums",
}
_MULTIRC = {
    "paragraph": "Ann ate. Bob slept.",
    "question": "Who ate?",
    "answer": 'It\'s "Ann"',
    "idx": {"paragraph": 7, "question": 1, "answer": 2},
    "label": 1,
}
_ARC = {
    "id": "made-1",
    "question": "What melts?",
    "choices": {"text": ["ice", "stone's heat", '"fire"'], "label": ["A", "B", "C"]},
    "answerKey": "A",
}

_GLUE: dict[str, SourceRow] = {
    "cola": {"sentence": "Cats sat.", "label": 1, "idx": 0},
    "sst2": {"sentence": "a fine film ", "label": 1, "idx": 0},
    "mrpc": _PAIR,
    "qqp": {"question1": "Who sat?", "question2": "Which animal sat?", "label": 1, "idx": 0},
    "stsb": {**_PAIR, "label": 3.799999952316284},
    "mnli": _MNLI,
    "qnli": {"question": "Who sat?", "sentence": "A cat sat.", "label": 0, "idx": 0},
    "rte": _PAIR,
    "wnli": _PAIR,
}
_SUPERGLUE: dict[str, SourceRow] = {
    "boolq": {"passage": "Cats sit.", "question": "do cats sit", "label": 1, "idx": 0},
    "cb": _MNLI,
    "copa": {
        "premise": "The cup broke. ",
        "choice1": "It fell down.",
        "choice2": 'Ann\'s "cup" was full.',
        "question": "cause",
        "label": 0,
        "idx": 0,
    },
    "multirc": _MULTIRC,
    "record": {
        "passage": "Ann met Bob's aunt in Rome\n@highlight\nAnn likes Rome\n@highlight\nBob does not ",
        "query": "@placeholder said 'no' to \"her\"",
        "entities": ["Rome", "Bob's aunt", "Ann", "Rome"],
        "answers": ["Bob's aunt", "Ann", "Ann"],
        "idx": {"passage": 3, "query": 5},
    },
    "rte": _MNLI,
    "wic": {
        "word": "bank",
        "sentence1": "A bank of sand.",
        "sentence2": "The bank is shut.",
        "start1": 2,
        "end1": 6,
        "start2": 4,
        "end2": 8,
        "label": 0,
        "idx": 0,
    },
    "wsc.fixed": {
        "text": 'Ann said " hello , Bob ( a friend ) " , so he did n\'t go .',
        "span1_index": 5,
        "span2_index": 13,
        "span1_text": "Bob",
        "span2_text": "he",
        "label": 1,
        "idx": 0,
    },
}
_TRUTHFULQA: dict[str, SourceRow] = {
    "multiple_choice": {
        "question": "Do cats fly?",
        "mc1_targets": {"choices": ["They don't.", "They do."], "labels": [1, 0]},
        "mc2_targets": {"choices": ["They do.", "They don't.", 'No "cat" does.'], "labels": [0, 1, 1]},
    },
    "generation": {
        "question": "Do cats fly? ",
        "best_answer": "No",
        "correct_answers": ["No", " They don't. ", ""],
        "incorrect_answers": ['"Yes"', "They do."],
    },
}
_OF_DATA_SETS: dict[str, dict[str, SourceRow]] = {
    "nyu-mll/glue": _GLUE,
    "aps/super_glue": _SUPERGLUE,
    "truthfulqa/truthful_qa": _TRUTHFULQA,
    "allenai/ai2_arc": {"ARC-Easy": _ARC, "ARC-Challenge": _ARC},
    "openai/openai_humaneval": {
        "": {
            "task_id": "HumanEval/made",
            "prompt": 'def twice(n: int) -> int:\n    """ Two of it.\n    >>> twice(2)\n    4\n    """\n',
            "entry_point": "twice",
            "canonical_solution": "    return 2 * n\n",
            "test": "\n\ndef check(candidate):\n    assert candidate(3) == 6\n\n",
        }
    },
    "google-research-datasets/mbpp": {
        "full": {
            "task_id": 11,
            "text": "Write a function to double a number.",
            "code": "def twice(n):\r\n  return 2 * n",
            "test_list": ["assert twice(1) == 2", "assert twice(2) == 4", "assert twice(3) == 6"],
        }
    },
    "openai/gsm8k": {"main": {"question": "What is 2 + 2?", "answer": "It is <<2+2=4>>4.\n#### 4"}},
    "GBaker/MedQA-USMLE-4-options-hf": {
        "": {
            "sent1": "Which bone?",
            "ending0": "a",
            "ending1": "b",
            "ending2": "c",
            "ending3": "d",
            "label": 3,
        }
    },
    "openlifescienceai/medmcqa": {
        "": {"question": "Which bone?", "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": 2}
    },
    "bigbio/pubmed_qa": {
        "pubmed_qa_labeled_fold0_source": {
            "CONTEXTS": ["Mice ran.", "Mice slept."],
            "QUESTION": "Do mice run?",
            "final_decision": "maybe",
        }
    },
}


def made_row(reference: RowsReference) -> SourceRow:
    if reference.hub_id == "cais/mmlu":
        return _MMLU
    if reference.hub_id not in _OF_DATA_SETS:
        return made_rows(reference.hub_id, reference.config, reference.split)[0]
    return _OF_DATA_SETS[reference.hub_id][reference.config]


@dataclass(frozen=True)
class MadeRows:
    """Two rows of any hub data set: the made one, and the same again as another document. Files are read."""

    def open(self, reference: RowsReference) -> RowSet:
        if reference.file is not None:
            return FileRows().open(reference)
        row = {**made_row(reference), **dict(reference.where)}
        return RowSet([row, {**row, "again": True}], Provenance("test", "", ""))
