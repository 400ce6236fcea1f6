"""Rows of our own making in the form of data sets that tasks of lm-evaluation-harness read.

Every row differs by its number and its split, so that prompts, examples and what code leaves out differ too.
"""

import json
from collections.abc import Callable, Sequence
from random import Random

Row = dict[str, object]
MakeRow = Callable[[Random, int], Row]

SPLITS = ("train", "validation", "test", "dev")
ROWS = 8
_NOUNS = ("cat", "river's edge", "old clock", "Ünï", 'the "box"', "7 apples", "$5", "a  b", "X-ray", "n/a")
_VERBS = ("holds", "leaves", "[title] meets", "follows", "can't see", "is [x] near")


def _words(draw: Random, count: int = 4) -> str:
    return " ".join(draw.choice(_NOUNS if place % 2 == 0 else _VERBS) for place in range(count))


def _distinct(draw: Random, count: int) -> list[str]:
    return [f"{_words(draw, 2)} {place}" for place in range(count)]


def _bbh(draw: Random, number: int) -> Row:
    options = "\n".join(f"({letter}) {text}" for letter, text in zip("ABC", _distinct(draw, 3), strict=True))
    return {"input": f"{_words(draw)}?\nOptions:\n{options}", "target": f"({'ABC'[number % 3]})"}


_BBH_TARGETS = {
    "boolean_expressions": ("True", "False"),
    "hyperbaton": ("(A)", "(B)"),
    "snarks": ("(A)", "(B)"),
    "causal_judgement": ("Yes", "No"),
    "formal_fallacies": ("valid", "invalid"),
    "navigate": ("Yes", "No"),
    "object_counting": tuple(str(number) for number in range(19)),
    "sports_understanding": ("yes", "no"),
    "web_of_lies": ("Yes", "No"),
}


def _bbh_of(config: str) -> MakeRow:
    def make(draw: Random, number: int) -> Row:
        targets = _BBH_TARGETS.get(config)
        return (
            {**_bbh(draw, number), "target": targets[number % len(targets)]}
            if targets
            else _bbh(draw, number)
        )

    return make


def _word_sorting(draw: Random, _: int) -> Row:
    words = draw.sample(("pear", "fig", "plum", "lime", "date"), 4)
    return {"input": f"Sort the words. List: {' '.join(words)}", "target": " ".join(sorted(words))}


def _gpqa(draw: Random, number: int) -> Row:
    right, *wrong = _distinct(draw, 4)
    names = {f"Incorrect Answer {place}": text for place, text in enumerate(wrong, start=1)}
    more = {"Explanation": _words(draw), "Record ID": str(number)}
    return {"Question": f" {_words(draw, 6)}?", "Correct Answer": f"{right} ", **names, **more}


def _ifeval(_: Random, number: int) -> Row:
    asked: Sequence[tuple[str, dict[str, object]]] = (
        ("punctuation:no_comma", {}),
        ("length_constraints:number_words", {"relation": "at least", "num_words": 5}),
        ("keywords:existence", {"keywords": ["river", "stone"]}),
        ("change_case:english_lowercase", {}),
        ("detectable_format:number_bullet_lists", {"num_bullets": 2}),
        ("startend:quotation", {}),
    )
    chosen = [asked[number % len(asked)], asked[(number * 2 + 1) % len(asked)]][: 1 + number % 2]
    return {
        "key": number,
        "prompt": f"Write about river number {number}.",
        "instruction_id_list": [name for name, _ in chosen],
        "kwargs": [options for _, options in chosen],
    }


def _math(draw: Random, number: int) -> Row:
    return {
        "problem": f"What is {number} + {number}, with ${_words(draw, 2)}$?",
        "solution": rf"We add: ${number}+{number}=\boxed{{{2 * number}}}$."
        + ("" if number % 3 else r" So \frac12."),
        "level": "Level 5" if number % 3 else "Level 2",
        "type": "Algebra",
    }


_CATEGORIES = (
    *("biology", "business", "chemistry", "computer science", "economics", "engineering", "health"),
    *("history", "law", "math", "other", "philosophy", "physics", "psychology"),
)


def _mmlu_pro(draw: Random, number: int) -> Row:
    options = _distinct(draw, 4 + number % 7)
    answer = number * 3 % len(options)
    thought = f"{_words(draw)}. The answer is ({'ABCDEFGHIJ'[answer]})."
    return {
        "question_id": number,
        "question": f"{_words(draw, 6)}?",
        "options": options,
        "answer": "ABCDEFGHIJ"[answer],
        "answer_index": answer,
        "cot_content": f"A: Let's think step by step. {thought}",
        "category": _CATEGORIES[number % len(_CATEGORIES)],
        "src": "made",
    }


def _musr(draw: Random, number: int) -> Row:
    choices = _distinct(draw, 2 + number % 3)
    return {
        "narrative": f"{_words(draw, 8)}.\n{_words(draw, 8)}.",
        "question": f"{_words(draw)}?",
        "choices": repr(choices),
        "answer_index": number % len(choices),
        "answer_choice": choices[number % len(choices)],
    }


def _arc(draw: Random, number: int) -> Row:
    labels = list("12345" if number % 4 == 3 else "ABCDE")[: 3 + number % 3]
    texts = _distinct(draw, len(labels))
    choices = {"text": texts, "label": labels}
    return {
        "id": str(number),
        "question": f"{_words(draw)}?",
        "choices": choices,
        "answerKey": labels[number % 3],
    }


def _hellaswag(draw: Random, number: int) -> Row:
    return {
        "ind": number,
        "activity_label": _words(draw, 2),
        "ctx_a": f"{_words(draw, 4)}.",
        "ctx_b": _words(draw, 2),
        "ctx": "",
        "endings": [f"{text} [step] and  on." for text in _distinct(draw, 4)],
        "label": str(number % 4),
        "split": "val",
    }


def _winogrande(draw: Random, number: int) -> Row:
    first, second = _distinct(draw, 2)
    sentence = f"{_words(draw)} because _ {_words(draw, 2)}."
    return {"sentence": sentence, "option1": first, "option2": second, "answer": str(number % 2 + 1)}


def _truthful(draw: Random, number: int) -> Row:
    right, wrong = _distinct(draw, 2), _distinct(draw, 2 + number % 2)
    question = f"{_words(draw)}?"
    best, labels = right[0], [1] + [0] * len(wrong)
    return {
        "question": question,
        "mc1_targets": {"choices": [best, *wrong], "labels": labels},
        "mc2_targets": {"choices": [*right, *wrong], "labels": [1, 1] + [0] * len(wrong)},
        "best_answer": best,
        "correct_answers": right,
        "incorrect_answers": wrong,
        "type": "made",
        "category": "made",
        "source": "made",
    }


def _mmlu(draw: Random, number: int) -> Row:
    choices = _distinct(draw, 4)
    return {"question": f" {_words(draw)}? ", "choices": choices, "answer": number % 4, "subject": "made"}


def _gsm8k(draw: Random, number: int) -> Row:
    steps = f"{_words(draw)}. It is <<{number}*1000={number * 1000}>>{number * 1000:,}."
    return {
        "question": f"What is {number} * 1000, {_words(draw)}?",
        "answer": f"{steps}\n#### {number * 1000:,}",
    }


def _piqa(draw: Random, number: int) -> Row:
    first, second = _distinct(draw, 2)
    return {"goal": _words(draw), "sol1": first, "sol2": second, "label": number % 2}


def _openbook(draw: Random, number: int) -> Row:
    choices = {"text": _distinct(draw, 4), "label": list("ABCD")}
    return {
        "id": str(number),
        "question_stem": _words(draw),
        "choices": choices,
        "answerKey": f" {'ABCD'[number % 4]}",
    }


def _drop(draw: Random, number: int) -> Row:
    date = {"day": "", "month": "", "year": ""}
    as_number: Row = {"number": str(number), "date": date, "spans": []}
    as_spans: Row = {"number": "", "date": date, "spans": ["the old clock", "a cat"][: 1 + number % 2]}
    as_date: Row = {"number": "", "date": {"day": "3", "month": "May", "year": "1900"}, "spans": []}
    kinds = [as_number, as_spans, as_date]
    first, *others = kinds[number % 3 :] + kinds[: 1 + number % 2]
    validated = {key: [other[key] for other in others] for key in ("number", "date", "spans")}
    return {
        "section_id": "made",
        "query_id": str(number),
        "passage": f"{_words(draw, 6)}.",
        "question": f"{_words(draw)}?",
        "answer": {**first, "worker_id": "", "hit_id": ""},
        "validated_answers": {**validated, "worker_id": ["", ""], "hit_id": ["", ""]},
    }


def _race(draw: Random, number: int) -> Row:
    problems = [
        {
            "question": f"{_words(draw)} {end}",
            "answer": "ABCD"[(number + place) % 4],
            "options": _distinct(draw, 4),
        }
        for place, end in enumerate(("?", "  _  .", "?"))
    ]
    return {"article": f"{_words(draw, 8)}.", "problems": repr(problems)}


def _trivia(draw: Random, number: int) -> Row:
    aliases = [*_distinct(draw, 2), "the river"]
    return {
        "question": _words(draw),
        "question_id": str(number),
        "answer": {"aliases": aliases, "normalized_aliases": aliases, "value": aliases[0]},
    }


def _nq(draw: Random, number: int) -> Row:
    return {"question": _words(draw), "answer": ["The river", *_distinct(draw, number % 2)]}


def _aime(draw: Random, number: int) -> Row:
    text = f"{_words(draw)} {number}?"
    solution, answer = _words(draw), number * 7
    named = {"Problem": text, "Solution": solution, "Answer": answer, "ID": str(number)}
    return {**named, "problem": text, "solution": solution, "answer": str(answer), "id": number}


def _belebele(draw: Random, number: int) -> Row:
    answers = {f"mc_answer{place}": text for place, text in enumerate(_distinct(draw, 4), start=1)}
    return {
        "link": "made",
        "question_number": number,
        "flores_passage": f"{_words(draw, 6)}.",
        "question": f" {_words(draw)}? ",
        **answers,
        "correct_answer_num": str(number % 4 + 1),
        "dialect": "made",
    }


def _nli(draw: Random, number: int) -> Row:
    return {"premise": f"{_words(draw)}.", "hypothesis": f"{_words(draw, 2)}", "label": number % 3}


def _mgsm(draw: Random, number: int) -> Row:
    answer = None if number % 4 else f"Step-by-Step Answer: {_words(draw)}. The answer is {number}."
    return {
        "question": f"{'' if number % 4 else 'Question: '}{_words(draw)} {number}?",
        "answer": answer if number else "Step-by-Step Answer: Nothing is left of it. It is 0.",
        "answer_number": number,
        "equation_solution": None,
    }


def _medqa(draw: Random, number: int) -> Row:
    endings = {f"ending{place}": text for place, text in enumerate(_distinct(draw, 4))}
    return {"id": str(number), "sent1": f"{_words(draw)}?", "sent2": "", **endings, "label": number % 4}


def _squad(draw: Random, number: int) -> Row:
    texts = ["The river", *_distinct(draw, 1)] if number % 2 else []
    return {
        "id": str(number),
        "title": "made",
        "context": f"{_words(draw, 6)}.",
        "question": f"{_words(draw)}?",
        "answers": {"text": texts, "answer_start": [0 for _ in texts]},
    }


def _boolq(draw: Random, number: int) -> Row:
    return {"passage": f"{_words(draw, 6)}.", "question": _words(draw), "label": number % 2, "idx": number}


def _lambada(draw: Random, number: int) -> Row:
    return {"text": f"{_words(draw, 6)} {number % 3 * 'Ü'}door"}


def _page(draw: Random, number: int) -> Row:
    parts = f" = Title {number} = \n\n {_words(draw, 6)} @-@ ( {_words(draw, 2)} ) , 1 @,@ 000 's ;"
    return {"page": f'{parts} " {_words(draw, 2)} " ° 1 @.@ 5 . \n = = Part = = \n', "text": parts}


def _babilong(draw: Random, number: int) -> Row:
    place = ("kitchen", "garden", "The river")[number % 3]
    return {"input": f" {_words(draw, 8)}. ", "question": f"Where is {number}? ", "target": place}


def _graph(draw: Random, number: int) -> Row:
    nodes = [f"node{number}", f"node{number + 1}"][: 1 + number % 2]
    return {"prompt": f"{_words(draw, 8)} {number}", "answer_nodes": nodes, "prompt_chars": number}


def _exam(draw: Random, number: int) -> Row:
    options = _distinct(draw, 4)
    facts = {"Dificultad": ("C1", "C2", "B1", "B2")[number % 4], "Fuente": "made"}
    return {
        "Instrucción": f"Read {number % 3}",
        "Pregunta": f"{_words(draw)}?",
        "Pista": None,
        "Opciones": options,
        "Respuesta": [options[number % 4]],
        "Metadata": facts,
        "Prompt": "",
        "Subtarea": ("text", "frase", "oracions", "definició")[number % 4],
    }


MAKERS: dict[str, MakeRow] = {
    "RMT-team/babilong-1k-samples": _babilong,
    "openai/graphwalks": _graph,
    "gplsi/cieacova": _exam,
    "EleutherAI/lambada_openai": _lambada,
    "cimec/lambada": _lambada,
    "EleutherAI/wikitext_document_level": _page,
    "NeelNanda/pile-10k": _page,
    "Idavidrein/gpqa": _gpqa,
    "wis-k/instruction-following-eval": _ifeval,
    "google/IFEval": _ifeval,
    "DigitalLearningGmbH/MATH-lighteval": _math,
    "EleutherAI/hendrycks_math": _math,
    "TIGER-Lab/MMLU-Pro": _mmlu_pro,
    "TAUR-Lab/MuSR": _musr,
    "allenai/ai2_arc": _arc,
    "Rowan/hellaswag": _hellaswag,
    "allenai/winogrande": _winogrande,
    "truthfulqa/truthful_qa": _truthful,
    "cais/mmlu": _mmlu,
    "openai/gsm8k": _gsm8k,
    "madrylab/gsm8k-platinum": _gsm8k,
    "giovanivaldrighi/mmlu": _mmlu,
    "baber/piqa": _piqa,
    "allenai/openbookqa": _openbook,
    "EleutherAI/drop": _drop,
    "EleutherAI/race": _race,
    "mandarjoshi/trivia_qa": _trivia,
    "google-research-datasets/nq_open": _nq,
    "Maxwell-Jia/AIME_2024": _aime,
    "math-ai/aime25": _aime,
    "facebook/belebele": _belebele,
    "facebook/xnli": _nli,
    "juletxara/mgsm": _mgsm,
    "GBaker/MedQA-USMLE-4-options-hf": _medqa,
    "aps/super_glue": _boolq,
    "rajpurkar/squad_v2": _squad,
}


def made_rows(data_set: str, config: str, split: str) -> list[Row]:
    """Rows of a split, more where tasks leave most of them out. Raises `KeyError` for an unknown set."""
    make = MAKERS.get(data_set)
    if data_set == "SaylorTwift/bbh":
        make = _word_sorting if config == "word_sorting" else _bbh_of(config)
    if make is None:
        raise KeyError(data_set)
    draw = Random(f"{data_set} {config} {split}")
    count = 5 * len(_CATEGORIES) if data_set == "TIGER-Lab/MMLU-Pro" else ROWS
    return [json.loads(json.dumps(make(draw, number))) for number in range(count)]
