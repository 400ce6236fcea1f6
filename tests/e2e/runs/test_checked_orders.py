"""Tasks are checked by their own solutions before a model is asked."""

from pathlib import Path

import pytest

from proctor.v1.rollout_service_pb2 import ListRolloutsOrdersRequest
from tests.fakes.stack.command_line import CommandLine
from tests.harness.rollout_orders import MEND, harbor_tasks
from tests.harness.stack_harness import StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")


FEWER = "import os\n\nif not os.path.exists('/app/fewer'):\n\n    def test_more():\n        pass\n"


async def check_orders(stack: StackHarness) -> int:
    listed = await stack.client.rollouts.ListRolloutsOrders(ListRolloutsOrdersRequest(page_size=100))
    return sum(order.suite.startswith("check-") for order in listed.orders)


async def test_tasks_that_cannot_be_graded_are_said_before_a_model_is_asked(
    stack: StackHarness, tmp_path: Path
) -> None:
    names = ("good", "wrong", "broken", "unsolved")
    # Of the tests of the first its agent leaves out one.
    harbor_tasks(tmp_path / "tasks", dict.fromkeys(names, MEND) | {"good": f"{MEND}DO touch fewer\n"})
    with (tmp_path / "tasks/good/tests/test_twice.py").open("a") as tests:
        tests.write(FEWER)
    (tmp_path / "tasks/wrong/solution/solve.sh").write_text("true\n")
    (tmp_path / "tasks/broken/tests/test.sh").write_text("nosuchtool --version\n")
    (tmp_path / "tasks/unsolved/solution/solve.sh").unlink()
    entry = '[[tasks]]\nprepared_dir = "tasks/{}"\nmodel = "openai/fake"\n'
    (tmp_path / "all.toml").write_text("".join(map(entry.format, names)))
    (tmp_path / "some.toml").write_text(entry.format("good") + entry.format("unsolved"))
    await stack.model_server.control(reset_stats=True)
    run = CommandLine(stack.client.address, tmp_path / "state")

    async def ordered(name: str, *options: str) -> tuple[int, str]:
        config, data = str(tmp_path / name), str(tmp_path / "data")
        ended = await run("rollouts", "run", config, "--data", data, *options)
        return ended.code, ended.out + ended.err

    before = await check_orders(stack)
    code, said = await ordered("all.toml")
    assert code == 2, said
    assert "wrong cannot be graded here: its solution scores 0 (reward 0)" in said
    assert "broken cannot be graded here: " in said
    assert "nosuchtool: command not found" in said
    assert "No model was asked, since 2 tasks cannot be graded." in said
    assert (await stack.model_server.stats())["requests"] == 0
    code, said = await ordered("some.toml")
    assert (code, "the solutions of 1 of 2 tasks score 1.0" in said) == (0, True), said
    assert "good by openai/fake: 1 of 1 suspicious: score without them none" in said
    assert "unsolved by openai/fake: " not in said
    assert (await stack.model_server.stats())["requests"] > 0
    assert await check_orders(stack) == before + 2
    # What was proved is not proved again, and an order without a check is made at once.
    for name, *options in (("some.toml",), ("all.toml", "--no-check")):
        _, said = await ordered(name, *options)
        assert "checked" not in said
    assert await check_orders(stack) == before + 2
