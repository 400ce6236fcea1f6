"""The pools of a stack that nobody has told which to have."""

from pathlib import Path

from proctor.stack.default_pools import default_pools
from proctor.stack.stack_options import RemotePool, ServedModel, VllmPool, starter_model_dir


def test_vllm_serves_the_starter_model_once_it_is_built(tmp_path: Path) -> None:
    environ = {"PROCTOR_VLLM_PYTHON": "/vllm/python", "PROCTOR_CACHE_DIR": str(tmp_path)}
    assert default_pools(environ, tmp_path) == ()
    folder = starter_model_dir(environ)
    folder.mkdir()
    model = ServedModel("vllm/starter", str(folder))
    assert default_pools(environ, tmp_path) == (VllmPool((model,), python=Path("/vllm/python")),)


def test_a_key_or_a_server_brings_the_remote_pool(tmp_path: Path) -> None:
    none = {"PROCTOR_CACHE_DIR": str(tmp_path)}
    assert default_pools({**none, "OPENAI_API_KEY": "x"}, tmp_path) == (
        RemotePool("https://api.openai.com/v1"),
    )
    assert default_pools({**none, "OPENAI_BASE_URL": "http://here/v1"}, tmp_path) == (
        RemotePool("http://here/v1"),
    )
