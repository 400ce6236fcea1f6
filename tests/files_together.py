"""Which files of tests run in one process, one after the other, because they share what is dear to start.

And which run first: those that take longest, so that no core is idle at the end.
"""

_STACK = "the stack of tests/e2e/conftest.py"
_STACK_OF_ROLLOUTS = "another one like it"
_SITE = "the site of tests/e2e/api/conftest.py"
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
    **{f"tests/e2e/api/test_{name}.py": _SITE for name in ("bound_keys", "projects")},
    "tests/e2e/datasets/test_dataset_": _STACK,
    "tests/e2e/scoring/test_answers.py": _STACK,
    "tests/e2e/scoring/test_judging_runs.py": _STACK,
    "tests/e2e/runs/test_agents.py": _STACK,
    "tests/e2e/runs/test_checked_orders.py": _STACK,
    "tests/e2e/runs/test_notices.py": _STACK,
    "tests/e2e/runs/test_readme_code.py": _STACK,
    "tests/e2e/runs/test_schedules.py": _STACK,
    "tests/e2e/runs/test_resting_rollouts.py": _STACK_OF_ROLLOUTS,
    "tests/e2e/runs/test_rollout": _STACK_OF_ROLLOUTS,
}
_FIRST = ("tests/chaos/", "tests/e2e/", "tests/integration/worker/", "tests/integration/stack/")


def rank_of(test: str) -> int:
    """Units run in the order of the rank of their first test."""
    return next((rank for rank, folder in enumerate(_FIRST) if test.startswith(folder)), len(_FIRST))


def unit_of(test: str) -> str:
    """What runs in one process with the test of this id: the name of a group, or its file."""
    file = test.split("::", 1)[0]
    return next((name for beginning, name in TOGETHER.items() if file.startswith(beginning)), file)
