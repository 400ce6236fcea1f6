"""The starter model on vLLM, for tests of the real engine: what `make vllm` makes."""

import os
from pathlib import Path

import pytest

from proctor.stack.defaults import starter_model_dir
from proctor.stack.options import vllm_pool
from proctor.stack.vllm.environment import find_vllm_python
from proctor.values.providers.pool import Pool, PoolModel

REPOSITORY = Path(__file__).resolve().parents[2]
SUITE = REPOSITORY / "suites" / "starter"
MODEL, OTHER = "vllm/starter", "vllm/other"
# Samples of its three tasks.
SAMPLES = 500


def starter_pool(*more: PoolModel) -> Pool:
    """A pool that serves the starter model first, then `more`; skips the test where it cannot be served."""
    python, model = find_vllm_python(os.environ), starter_model_dir(os.environ)
    if python is None or not model.is_dir():
        pytest.skip("vLLM or the starter model is not installed: `make vllm` makes both")
    return vllm_pool(PoolModel(MODEL, str(model)), *more)
