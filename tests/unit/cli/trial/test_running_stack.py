"""A stack that stands is used for what was asked for, never for something else of the same name."""

from pathlib import Path

import pytest

from proctor.cli.trial.running_stack import refuse_what_differs
from proctor.stack.errors import RunningStackDiffers
from proctor.stack.options import remote_pool, vllm_pool
from proctor.stack.pools import STARTER_MODEL, ChosenModel, choose_model, write_pools_file
from proctor.stack.state import StackState
from proctor.values.providers.pool import PoolModel, Provider
from proctor.values.providers.pools_file import PoolsFile, parse_pools

POOLS = (
    vllm_pool(
        PoolModel(STARTER_MODEL, "/cache/starter-model", {"max_model_len": 1024}),
        PoolModel("vllm/final", "/a/final"),
        PoolModel("vllm/Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B"),
    ),
    remote_pool(Provider("openai", "http://127.0.0.1:9/v1"), name="remote-openai"),
)
ENVIRON = {
    "PROCTOR_CACHE_DIR": "/cache",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1/",
    "PROCTOR_DATA_DIR": "/data/../data",
}


@pytest.fixture
def stack(tmp_path: Path) -> StackState:
    pools_file = write_pools_file(tmp_path / "pools.yaml", PoolsFile(POOLS))
    reported = {"PROCTOR_POOLS_FILE": str(pools_file), "PROCTOR_DATA_DIR": "/data"}
    return StackState(1, "running", "", "127.0.0.1:3", "", "", environment=reported)


def test_pools_file_is_read_back(tmp_path: Path) -> None:
    written = write_pools_file(tmp_path / "pools.yaml", PoolsFile(POOLS))
    assert parse_pools(written.read_text()).pools == POOLS


@pytest.mark.parametrize(
    "model",
    [
        choose_model(STARTER_MODEL),
        ChosenModel("vllm/final", "/a/b/../final"),
        choose_model("vllm/Qwen/Qwen3-0.6B"),
        choose_model("openai/any"),
        ChosenModel("vllm/unknown", "/x/unknown"),
        choose_model("ollama/any"),
    ],
    ids=lambda model: str(model.name),
)
def test_the_same_and_what_the_stack_does_not_have_are_let_through(
    stack: StackState, model: ChosenModel
) -> None:
    refuse_what_differs(stack, model, ENVIRON)


@pytest.mark.parametrize(
    ("model", "environ", "sentence"),
    [
        (
            ChosenModel("vllm/final", "/b/final"),
            {},
            "vllm/final is /b/final here, but /a/final for the running stack",
        ),
        (ChosenModel(STARTER_MODEL, "/own/starter"), {}, "is /own/starter here, but /cache/starter-model"),
        (
            choose_model("openai/any"),
            {"OPENAI_BASE_URL": "http://h/v1"},
            "is http://h/v1 here, but http://127.0.0.1:9/v1",
        ),
        (
            choose_model("openai/any"),
            {"PROCTOR_DATA_DIR": "/other"},
            "PROCTOR_DATA_DIR is /other here, but /data for",
        ),
        (choose_model("openai/any"), {"PROCTOR_DATA_DIR": ""}, "PROCTOR_DATA_DIR is not set here, but /data"),
    ],
)
def test_something_else_of_that_name_is_refused(
    stack: StackState, model: ChosenModel, environ: dict[str, str], sentence: str
) -> None:
    with pytest.raises(RunningStackDiffers, match=sentence):
        refuse_what_differs(stack, model, {**ENVIRON, **environ})
