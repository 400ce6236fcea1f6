"""The ten tasks of a coding agent, each by tools of `proctor mcp` alone."""

import pytest

from proctor.client.errors import ClientError
from tests.e2e.harness.agent import Refusal, agent
from tests.harness.keyed_suite import SUITE
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

OTHER = "openai/other"


async def test_agent_does_the_ten_tasks(stack: StackHarness) -> None:
    async with agent(stack) as one:
        listed = (await one.call("list_suites"))["suites"]
        assert SUITE in {each["suite"] for each in listed}
        [task] = (await one.call("list_suites", suite=SUITE))["tasks"]
        models = (await one.call("list_models", containing="fake"))["models"]
        assert MODEL in {each["model"] for each in models}

        order = {"model": MODEL, "suite": SUITE, "limit": 20}
        assert "price" not in await one.call("estimate_run", order=order)
        first = await one.call("order_run", order=order)
        ended = await one.call("wait_for_run", run_id=first["run_id"], seconds=120)
        assert (ended["state"], ended["is_final"], ended["recorded"]) == ("completed", True, 20)
        assert one.progress[-1][:2] == (20, 20)

        listed_runs = await one.call("list_runs", model=MODEL, benchmark=SUITE)
        assert first["run_id"] in {each["run_id"] for each in listed_runs["runs"]}
        results = await one.call("results", run_id=first["run_id"])
        by_client = await stack.client.results(first["run_id"])
        assert [each["mean"] for each in results["figures"]] == [each.mean for each in by_client.figures]
        assert all(each["ci_low"] <= each["mean"] <= each["ci_high"] for each in results["figures"])

        second = await one.call("order_run", order={**order, "model": OTHER})
        await one.call("wait_for_run", run_id=second["run_id"], seconds=120)
        compared = await one.call("compare", run_ids=[first["run_id"], second["run_id"]])
        assert {each["verdict"] for each in compared["differences"]}
        by_name = await one.call("compare", models=[MODEL, OTHER], benchmark=SUITE)
        assert [each["model"] for each in by_name["runs"]] == [MODEL, OTHER]

        runs = {"run_id": second["run_id"], "base_run_id": first["run_id"]}
        few = await one.call("gate", **runs)
        assert (few["verdict"], [each["verdict"] for each in few["tasks"]]) == (
            "inconclusive",
            ["inconclusive"],
        )
        assert (await one.call("gate", **runs, margin_points=100))["verdict"] == "pass"

        wrong = await one.call("read_answers", run_id=second["run_id"], task=task["task"])
        every = await one.call("read_answers", run_id=second["run_id"], which="all")
        scored = [each for each in every["answers"] if all(score == 0 for score in each["scores"].values())]
        assert [each["sample"] for each in wrong["answers"]] == [each["sample"] for each in scored]
        assert all(each["prompt"] and each["target"] for each in every["answers"])


async def test_agent_names_judges_and_decides_between_two_models(stack: StackHarness) -> None:
    order = {
        "model": MODEL,
        "suite": SUITE,
        "limit": 5,
        "judges": [{"model": OTHER, "prompt": "helpfulness"}],
        "until_decided": {"against_model": OTHER, "margin_points": 1, "alpha": 0.1},
    }
    async with agent(stack) as one:
        ordered = await one.call("order_run", order=order)
        run = await stack.client.run(ordered["run_id"])
        assert ordered["against_run_id"] == run.order.until_decided.against_run_id
        wanted = run.order.until_decided
        assert (wanted.against_model, wanted.margin_points, wanted.alpha) == (OTHER, 1, 0.1)
        assert [(judge.model, judge.prompt) for judge in run.order.judges] == [(OTHER, "helpfulness")]
        with pytest.raises(Refusal, match="judge"):
            await one.call("order_run", order={**order, "judges": [{"model": OTHER, "prompt": "absent"}]})


async def test_agent_learns_why_a_run_waits_and_cancels_it(stack: StackHarness) -> None:
    async with agent(stack) as one:
        order = {"model": MODEL, "suite": SUITE, "limit": 5}
        run_id = (await one.call("order_run", order=order))["run_id"]
        await one.call("wait_for_run", run_id=run_id, seconds=120)
        over = await one.call("explain_wait", run_id=run_id)
        assert over["explanation"] == "The run is completed: it waits for nothing."

        await stack.model_server.control(latency_seconds=3)
        try:
            run_id = (await one.call("order_run", order=order))["run_id"]
            said = await one.call("explain_wait", run_id=run_id)
            assert said["explanation"]
            assert said["workers"]
            assert (await one.call("wait_for_run", run_id=run_id, seconds=0.1))["is_final"] is False
            assert (await one.call("cancel_run", run_id=run_id))["state"] == "cancelled"
        finally:
            await stack.model_server.control(latency_seconds=0)
        # Only a closed run can be retried.
        await one.call("wait_for_run", run_id=run_id, seconds=120)
        await one.call("retry_run", run_id=run_id)
        assert (await one.call("wait_for_run", run_id=run_id, seconds=120))["state"] == "completed"


async def test_refusals_reach_the_agent_as_sentences(stack: StackHarness) -> None:
    with pytest.raises(ClientError) as refused:
        await stack.client.run("00000000-0000-0000-0000-000000000000")
    async with agent(stack) as one:
        with pytest.raises(Refusal) as said:
            await one.call("results", run_id="00000000-0000-0000-0000-000000000000")
        assert refused.value.message in str(said.value)
        with pytest.raises(Refusal, match="Supported: keyed"):
            await one.call("order_run", order={"model": MODEL, "suite": "absent"})
        with pytest.raises(Refusal, match="There is no suite absent"):
            await one.call("list_suites", suite="absent")


async def test_tools_say_which_of_them_change_something(stack: StackHarness) -> None:
    async with agent(stack) as one:
        tools = (await one.client.list_tools()).tools
        assert all(tool.description and tool.annotations for tool in tools)
        changing = {tool.name for tool in tools if tool.annotations and not tool.annotations.read_only_hint}
        assert changing == {"order_run", "retry_run", "cancel_run"}
        described = {
            f"{tool.name}.{name}": "description" in schema or "$ref" in schema
            for tool in tools
            for name, schema in tool.input_schema["properties"].items()
        }
        assert all(described.values()), described
