"""The tokenizer, and examples as token batches: several questions in a row, a loss on the answers only."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from proctor.starter.make_rows import DRAWS
from proctor.starter.render_prompts import Example, training_examples

PAD, BOS, END = "<|pad|>", "<|bos|>", "<|end|>"
_ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
_CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


# The `ignore_index` of PyTorch's cross entropy by default.
IGNORED = -100
# The first of the tokenizer's special tokens.
PAD_ID = 0
_CHAT_SHARE = 0.12
_FEWSHOT_SHARE = 0.08
# Rows of a step: adding takes the most practice.
_ROWS = {"addition": 76, "odd_one": 14, "sentiment": 10}
Batch = tuple[torch.Tensor, torch.Tensor]


def make_tokenizer(texts: Sequence[str], context_length: int) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2048,
        special_tokens=[PAD, BOS, END, *_ROLES],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=list(_ROLES),
        model_max_length=context_length,
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = _CHAT_TEMPLATE
    return wrapped


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text and the character ranges in it that the model has to learn to write."""

    text: str
    answers: tuple[tuple[int, int], ...]


def plain_text(examples: Sequence[Example]) -> MarkedText:
    """Questions as a few-shot prompt has them; the line end after an answer is part of it."""
    text, answers = "", []
    for example in examples:
        text += (example.separator if text else "") + example.prompt
        start = len(text)
        text += example.delimiter + example.answer
        answers.append((start, len(text) + 1))
    end = len(text) + 1
    answers.append((end, end + len(END)))
    return MarkedText(text + "\n" + END, tuple(answers))


def chat_text(tokenizer: PreTrainedTokenizerFast, examples: Sequence[Example]) -> MarkedText:
    """The same questions as turns of a conversation, by the tokenizer's own chat template."""
    messages: list[dict[str, str]] = []
    text, answers = "", []
    for example in examples:
        messages.append({"role": "user", "content": example.prompt})
        start = len(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        messages.append({"role": "assistant", "content": example.answer})
        text = tokenizer.apply_chat_template(messages, tokenize=False)
        answers.append((start, len(text)))
    return MarkedText(text, tuple(answers))


def encode(tokenizer: PreTrainedTokenizerFast, marked: MarkedText) -> tuple[list[int], list[int]]:
    """Token ids and labels; a token is learnt when it begins inside an answer."""
    encoded = tokenizer(marked.text, return_offsets_mapping=True)
    ids: list[int] = encoded["input_ids"]
    labels = [
        token if any(start <= begin < end for start, end in marked.answers) else IGNORED
        for token, (begin, _) in zip(ids, encoded["offset_mapping"], strict=True)
    ]
    return ids, labels


def pad(rows: Sequence[Sequence[int]], filler: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])


class TrainingBatches:
    """Hands out the batches of a step: token ids and labels, a pair for each task, as narrow as possible."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, suite_dir: Path, rng: random.Random) -> None:
        self._tokenizer = tokenizer
        self._rng = rng
        self._examples = {task: training_examples(suite_dir, task, rng) for task in DRAWS}

    def next_batches(self) -> list[Batch]:
        """Mostly single questions, now and then fewer rows of few-shot prompts."""
        is_fewshot = self._rng.random() < _FEWSHOT_SHARE
        return [self._batch(task, rows, is_fewshot=is_fewshot) for task, rows in _ROWS.items()]

    def _batch(self, task: str, rows: int, *, is_fewshot: bool) -> Batch:
        encoded = []
        for _ in range(rows // 3 if is_fewshot else rows):
            examples = list(islice(self._examples[task], self._rng.randint(2, 5) if is_fewshot else 1))
            is_chat = self._rng.random() < _CHAT_SHARE
            marked = chat_text(self._tokenizer, examples) if is_chat else plain_text(examples)
            encoded.append(encode(self._tokenizer, marked))
        return pad([ids for ids, _ in encoded], PAD_ID), pad([labels for _, labels in encoded], IGNORED)
