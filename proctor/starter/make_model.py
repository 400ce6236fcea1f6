"""Builds the starter model, a small Llama: `python -m proctor.starter.make_model OUT`.

Run by the Python that has vLLM (torch, transformers, tokenizers). Fixed seed, fixed number of steps; the
folder appears complete or not at all, and is built again only when the recipe changed.
"""

import argparse
import random
import shutil
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from proctor.starter.make_rows import DRAWS, SUITE_DIR, is_current, write_stamp
from proctor.starter.render_prompts import Example, held_out_examples, training_examples
from proctor.starter.training_batches import (
    IGNORED,
    PAD_ID,
    TrainingBatches,
    encode,
    make_tokenizer,
    pad,
    plain_text,
)


@dataclass(frozen=True, slots=True)
class Recipe:
    seed: int = 1
    steps: int = 500
    peak_learning_rate: float = 2e-3
    warmup_steps: int = 30
    context_length: int = 2048
    hidden_size: int = 128
    heads: int = 4
    layers: int = 4


def tokenizer_texts(suite_dir: Path, seed: int) -> list[str]:
    """Texts that train the tokenizer: some hundred rendered examples of each task."""
    texts = []
    for task in DRAWS:
        examples = training_examples(suite_dir, task, random.Random(seed))
        texts += [plain_text([example]).text for example in islice(examples, 1500)]
    return texts


def new_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    torch.manual_seed(recipe.seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.hidden_size,
        intermediate_size=recipe.hidden_size * 8 // 3 // 64 * 64,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=recipe.context_length,
        tie_word_embeddings=True,
        initializer_range=recipe.hidden_size**-0.5,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def answer_logits(
    model: LlamaForCausalLM, ids: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and targets where there is an answer to give."""
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    asked = labels[:, 1:] != IGNORED
    return model.lm_head(hidden[asked]).float(), labels[:, 1:][asked]


def learning_rate(recipe: Recipe, step: int) -> float:
    """Linear warm-up, flat, and linearly down over the last 40 %."""
    warm_up = (step + 1) / recipe.warmup_steps
    cool_down = (recipe.steps - step) / (0.4 * recipe.steps)
    return recipe.peak_learning_rate * min(1.0, warm_up, cool_down)


def train(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, suite_dir: Path) -> LlamaForCausalLM:
    # Matrices this small gain little from a second thread, and lose much by it where the cores are busy.
    torch.set_num_threads(1)
    model = new_model(recipe, tokenizer).train()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05, betas=(0.9, 0.98), fused=True)
    training_batches = TrainingBatches(tokenizer, suite_dir, random.Random(recipe.seed))
    started = time.monotonic()
    for step in range(recipe.steps):
        optimizer.param_groups[0]["lr"] = learning_rate(recipe, step)
        batches = training_batches.next_batches()
        rows = sum(len(ids) for ids, _ in batches)
        optimizer.zero_grad()
        for ids, labels in batches:
            loss = torch.nn.functional.cross_entropy(*answer_logits(model, ids, labels))
            (loss * len(ids) / rows).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} of {recipe.steps}, {time.monotonic() - started:.0f} s", flush=True)
    return model.eval()


def is_right(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, example: Example) -> bool:
    """The likeliest choice; without choices: every token of answer and line end is the likeliest one."""
    ids, labels = encode(tokenizer, plain_text([example]))
    with torch.no_grad():
        logits, targets = answer_logits(model, pad([ids], PAD_ID), pad([labels], IGNORED))
    if example.choices:
        first_tokens = [tokenizer(example.delimiter + choice)["input_ids"][0] for choice in example.choices]
        best = max(range(len(first_tokens)), key=lambda index: logits[0, first_tokens[index]].item())
        return example.choices[best] == example.answer
    return bool((logits.argmax(-1) == targets)[:-1].all())


def held_out_accuracy(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, suite_dir: Path
) -> dict[str, float]:
    accuracy = {}
    for task in DRAWS:
        examples = held_out_examples(suite_dir, task)
        accuracy[task] = sum(is_right(model, tokenizer, example) for example in examples) / len(examples)
    return accuracy


def build(out: Path, recipe: Recipe, suite_dir: Path = SUITE_DIR) -> None:
    """Trains in a folder beside OUT and renames it, so that a killed build leaves nothing at OUT."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        complete = Path(scratch) / "model"
        tokenizer = make_tokenizer(tokenizer_texts(suite_dir, recipe.seed), recipe.context_length)
        model = train(recipe, tokenizer, suite_dir).to(torch.bfloat16)
        model.save_pretrained(complete)
        tokenizer.save_pretrained(complete)
        write_stamp(complete, suite_dir)
        for task, accuracy in held_out_accuracy(model, tokenizer, suite_dir).items():
            print(f"{task}: {accuracy:.3f} right on held-out rows")
        if out.exists():
            shutil.move(out, Path(scratch) / "replaced")
        complete.rename(out)


def main() -> None:
    parser = argparse.ArgumentParser(description="build the starter model, unless it is built already")
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out.absolute()
    if is_current(out):
        print(f"the starter model is built already: {out}")
        return
    started = time.monotonic()
    build(out, Recipe())
    print(f"built {out} in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
