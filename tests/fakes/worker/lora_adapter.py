"""A LoRA adapter over a tiny Llama, in the folder form of peft; runs in vLLM's environment."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

RANK = 4


def make_adapter(base: Path, folder: Path, *, seed: int, rank: int = RANK) -> Path:
    """Random and strong, so that it answers otherwise than its base."""
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    width = config["hidden_size"]
    height = config["num_attention_heads"] * config["head_dim"]
    torch.manual_seed(seed)
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        tensors[f"{name}.lora_A.weight"] = torch.randn(rank, width)
        tensors[f"{name}.lora_B.weight"] = torch.randn(height, rank)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    reported = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(base),
        "r": rank,
        "lora_alpha": 16,
        "target_modules": ["q_proj"],
        "bias": "none",
    }
    (folder / "adapter_config.json").write_text(json.dumps(reported), encoding="utf-8")
    return folder
