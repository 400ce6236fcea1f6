"""Tasks to run in lm-evaluation-harness and here: rows, examples, and what a model is made to say to them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

from tests.reference.field_answers import ANSWERS
from tests.reference.field_rows import made_rows
from tests.reference.golden_reference import folder_of
from tests.reference.instruction_rows import instruction_answer, instruction_rows

Row = dict[str, object]
Rows = Callable[[], list[Row]]
Said = Callable[[Row], Sequence[str]]


def nothing(_: Row) -> Sequence[str]:
    """Choices are weighed, not said."""
    return ("",)


@dataclass(frozen=True)
class Case:
    """`yaml`: the task's file there. `names`: what our metrics are called there, where it differs.

    The first row is answered with the first of what may be `said` to it, the second with the second …
    """

    suite: str
    task: str
    yaml: str
    rows: Rows
    pool: Rows
    shots: int = 0
    said: Said = nothing
    names: Mapping[str, str] = field(default_factory=dict)

    def answers(self) -> list[str]:
        said = [self.said(row) for row in self.rows()]
        return [options[index % len(options)] for index, options in enumerate(said)]


def real(file: str, count: int) -> Rows:
    """The first rows of a file of the mirror."""

    def read() -> list[Row]:
        with (folder_of("PROCTOR_DATA_DIR") / file).open(encoding="utf-8") as lines:
            return [json.loads(line) for line in islice(lines, count)]

    return read


def truthful_choices() -> list[Row]:
    """Real questions and answers as choices of mc1 and mc2; in mc2 a right one is not always the first."""
    rows = real("gen/truthfulqa_gen.validation.jsonl", 200)()
    return [_truthful_choice(row, is_third=index % 3 == 0) for index, row in enumerate(rows)]


def _truthful_choice(row: Row, *, is_third: bool) -> Row:
    right, wrong = cast("list[str]", row["correct_answers"]), cast("list[str]", row["incorrect_answers"])
    labelled = [(answer, 1) for answer in right] + [(answer, 0) for answer in wrong]
    if is_third:
        labelled.reverse()
    return {
        "question": row["question"],
        "mc1_targets": {"choices": [right[0], *wrong], "labels": [1] + [0] * len(wrong)},
        "mc2_targets": {"choices": [one for one, _ in labelled], "labels": [label for _, label in labelled]},
    }


def sums(row: Row) -> Sequence[str]:
    """Right and wrong, with and without the four hashes, with separators, signs, and nothing to read."""
    answer = str(row["answer"])
    number = answer.rpartition("#### ")[2]
    return (
        f" {answer}",
        f" So the answer is ${number}.",
        f" It is {number}.\n#### {number}",
        f" #### {number} apples, not 7",
        " #### -12",
        f" Either 1,000 or {number}.00",
        " I do not know.",
        f" ####{number}",
        "",
    )


def letters(row: Row) -> Sequence[str]:
    """The right letter in several dresses, another one, and none."""
    right = "ABCD"[cast("int", row["answer"])]
    return (
        f" {right}",
        f"{right}.",
        f" ({right})\nB",
        right.lower(),
        f"\n{right}",
        "E",
        f"{right} {right}",
        " ",
    )


def truths(row: Row) -> Sequence[str]:
    """Right, wrong, both, neither, nothing."""
    right, wrong = cast("list[str]", row["correct_answers"]), cast("list[str]", row["incorrect_answers"])
    both = f"{right[-1]} . But {wrong[0]}"
    return (f" {right[0]}.", wrong[-1], both, "I have no comment.", "", "Ünï “quoted” 7,5 words")


def named(row: Row) -> Sequence[str]:
    """A right name of the answer in two dresses, another one, and nothing."""
    answer = row["answer"]
    names = cast("list[str]", answer["aliases"] if isinstance(answer, dict) else answer)
    return (f" {names[0]}", f"a {names[-1].upper()}!", " the moon", "river", " ")


def any_answer(row: Row) -> Sequence[str]:
    """What fits some questions and not others; which it is depends on the row."""
    start = len(json.dumps(row)) % len(ANSWERS)
    return (*ANSWERS[start:], *ANSWERS[:start])


def formulas(row: Row) -> Sequence[str]:
    """The right number in two dresses, another one, and nothing."""
    right = row.get("answer", row.get("Answer")) or str(row["solution"]).partition("boxed{")[2].split("}")[0]
    return (f" We get ${right}$.", f" ${right}$", " $-1$", "")


def _made(data_set: str, config: str = "") -> tuple[Rows, Rows]:
    """Rows and examples of our own making in the form of a data set that the mirror lacks."""
    return lambda: made_rows(data_set, config, "test"), lambda: made_rows(data_set, config, "train")


_GSM8K = real("gen/gsm8k.test.jsonl", 180)
_GSM8K_POOL = real("gen/gsm8k.train_head.jsonl", 200)
_ANATOMY = real("mmlu/anatomy.test.jsonl", 135)
_ANATOMY_POOL = real("mmlu/anatomy.dev.jsonl", 5)
_ARC = real("gen/arc_easy.validation.jsonl", 549)
_TRUTHS = real("gen/truthfulqa_gen.validation.jsonl", 40)
_RECORD = real("super_glue/record.train_sample.jsonl", 32)
_CB = real("super_glue/cb.validation.jsonl", 6)
_MISMATCHED = real("glue/mnli.validation_mismatched_partial.jsonl", 62)
_MMLU = "mmlu/{}/mmlu_anatomy.yaml"
# Its examples are of the split that is called validation, which is evaluated in other tasks.
_MMLU_PRO = _made("TIGER-Lab/MMLU-Pro")[0]
# So is the only split of this one, which is called train.
_AIME = _made("Maxwell-Jia/AIME_2024")[0]
# As of mmlu_pro, the examples are of the split that is called validation.
_LAMBADA = _made("cimec/lambada")[0]
_MUSR = "leaderboard/musr/musr"
# Expressions are compared here, texts of them there.
_AS_MATH = {"math": "exact_match"}
_TRUTHFULQA = "truthfulqa/truthfulqa_{}.yaml"

CASES = (
    Case("gsm8k", "gsm8k", "gsm8k/gsm8k.yaml", _GSM8K, _GSM8K_POOL, 5, sums),
    Case(
        "mmlu_generative",
        "mmlu_anatomy_generative",
        _MMLU.format("generative"),
        _ANATOMY,
        _ANATOMY_POOL,
        2,
        letters,
    ),
    Case(
        "mmlu_continuation",
        "mmlu_anatomy_continuation",
        _MMLU.format("continuation"),
        _ANATOMY,
        _ANATOMY_POOL,
        5,
    ),
    Case("arc", "arc_easy", "arc/arc_easy.yaml", _ARC, _ARC, 3),
    Case("arc", "arc_challenge", "arc/arc_challenge.yaml", _ARC, _ARC),
    Case("truthfulqa", "truthfulqa_gen", _TRUTHFULQA.format("gen"), _TRUTHS, _TRUTHS, 0, truths),
    Case("truthfulqa", "truthfulqa_mc1", _TRUTHFULQA.format("mc1"), truthful_choices, truthful_choices, 2),
    Case(
        "truthfulqa",
        "truthfulqa_mc2",
        _TRUTHFULQA.format("mc2"),
        truthful_choices,
        truthful_choices,
        names={"mc2": "acc"},
    ),
    Case(
        "superglue",
        "record",
        "super_glue/record/default.yaml",
        _RECORD,
        _RECORD,
        1,
        names={"squad_em": "em", "squad_f1": "f1"},
    ),
    Case("hellaswag", "hellaswag", "hellaswag/hellaswag.yaml", *_made("Rowan/hellaswag"), 3),
    Case("piqa", "piqa", "piqa/piqa.yaml", *_made("baber/piqa"), 2),
    Case("openbookqa", "openbookqa", "openbookqa/openbookqa.yaml", *_made("allenai/openbookqa"), 4),
    Case("open_questions", "triviaqa", "triviaqa/default.yaml", *_made("mandarjoshi/trivia_qa"), 3, named),
    Case(
        "open_questions",
        "nq_open",
        "nq_open/nq_open.yaml",
        *_made("google-research-datasets/nq_open"),
        5,
        named,
    ),
    Case("race", "race", "race/race.yaml", *_made("EleutherAI/race"), 2),
    Case("xnli", "xnli_de", "xnli/xnli_de.yaml", *_made("facebook/xnli"), 3),
    Case(
        "belebele",
        "belebele_deu_Latn",
        "belebele/belebele_deu_Latn.yaml",
        *_made("facebook/belebele"),
        2,
    ),
    Case(
        "mgsm",
        "mgsm_direct_de",
        "mgsm/direct/mgsm_direct_de.yaml",
        *_made("juletxara/mgsm"),
        2,
        any_answer,
    ),
    Case(
        "mgsm",
        "mgsm_native_cot_th",
        "mgsm/native_cot/mgsm_native_cot_th.yaml",
        *_made("juletxara/mgsm"),
        2,
        any_answer,
    ),
    Case(
        "mmlu_pro",
        "mmlu_pro_computer_science",
        "mmlu_pro/mmlu_pro_computer_science.yaml",
        _MMLU_PRO,
        _MMLU_PRO,
        5,
        any_answer,
    ),
    Case("musr", "musr_team_allocation", f"{_MUSR}_team_allocation.yaml", *_made("TAUR-Lab/MuSR"), 1),
    Case(
        "bbh",
        "bbh_zeroshot_navigate",
        "bbh/zeroshot/navigate.yaml",
        *_made("SaylorTwift/bbh", "navigate"),
        0,
        any_answer,
    ),
    Case(
        "bbh",
        "bbh_cot_zeroshot_formal_fallacies",
        "bbh/cot_zeroshot/formal_fallacies.yaml",
        *_made("SaylorTwift/bbh", "formal_fallacies"),
        0,
        any_answer,
    ),
    Case(
        "hendrycks_math",
        "hendrycks_math_algebra",
        "hendrycks_math/hendrycks_math_algebra.yaml",
        *_made("EleutherAI/hendrycks_math"),
        0,
        formulas,
        _AS_MATH,
    ),
    Case("winogrande", "winogrande", "winogrande/default.yaml", *_made("allenai/winogrande"), 3),
    Case("lambada", "lambada_openai", "lambada/lambada_openai.yaml", *_made("EleutherAI/lambada_openai")),
    Case("lambada", "lambada_standard", "lambada/lambada_standard.yaml", _LAMBADA, _LAMBADA, 2),
    Case("wikitext", "wikitext", "wikitext/wikitext.yaml", *_made("EleutherAI/wikitext_document_level")),
    Case(
        "minerva_math",
        "minerva_math_algebra",
        "minerva_math/minerva_math_algebra.yaml",
        *_made("EleutherAI/hendrycks_math"),
        4,
        formulas,
        {"math": "math_verify"},
    ),
    Case("ifeval", "ifeval", "ifeval/ifeval.yaml", instruction_rows, instruction_rows, 0, instruction_answer),
    Case("aime", "aime24", "aime/aime24.yaml", _AIME, _AIME, 0, formulas, _AS_MATH),
    Case("aime", "aime25", "aime/aime25.yaml", *_made("math-ai/aime25"), 0, formulas, _AS_MATH),
    # Six rows, so that one of the three labels is neither expected nor chosen.
    Case("superglue", "cb", "super_glue/cb/default.yaml", _CB, _CB, 1),
    Case("glue", "mnli_mismatch", "glue/mnli/mismatch.yaml", _MISMATCHED, _MISMATCHED, 2),
)
