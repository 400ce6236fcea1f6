"""Which files of tests run in one process, one after the other, because they share what is dear to start."""

from xdist.scheduler import LoadFileScheduling

_STACK = "the stack of tests/e2e/conftest.py"
_STRUCK = "the stack of tests/chaos/conftest.py"
# Beginnings of paths; all other files run wherever there is room.
TOGETHER = {
    **{
        f"tests/chaos/test_{name}.py": _STRUCK
        for name in (
            *("cancelled_runs", "kill_storm", "killed_processes", "killed_rollouts"),
            *("misbehaving_model_server", "mixed_faults", "paused_runs", "wiped_streams"),
        )
    },
    "tests/e2e/pages/test_denied_pages.py": "a site of its own, with keys",
    "tests/e2e/pages/": "the site of tests/e2e/pages/conftest.py",
    "tests/e2e/vllm/": "the engine of tests/e2e/vllm/conftest.py",
    "tests/integration/worker/engines/vllm/": "one program with vLLM",
    "tests/e2e/datasets/test_dataset_": _STACK,
    "tests/e2e/scoring/test_answers.py": _STACK,
    "tests/e2e/runs/test_agents.py": _STACK,
    "tests/e2e/runs/test_readme_code.py": _STACK,
    "tests/e2e/runs/test_rollout": _STACK,
}


class FilesTogether(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Files with the same value in `TOGETHER` are one unit of work."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((name for beginning, name in TOGETHER.items() if file.startswith(beginning)), file)
