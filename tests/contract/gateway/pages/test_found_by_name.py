"""Names and ids lead to what has them: filters by model, runs over one data set, the search, unknown ids."""

import pytest

from proctor.v1 import file_service_pb2 as file_pb2
from tests.contract.gateway.pages.shown_pages import RUN_ID, Shown, running, show
from tests.fakes.gateway.dataset_runs import DATASET
from tests.fakes.gateway.dataset_service import stored_dataset
from tests.fakes.gateway.gateway_harness import GatewayHarness

LISTS = ("/runs", "/rollouts")


def links(shown: Shown) -> list[str]:
    return [attributes.get("href") or "" for tag, attributes in shown.elements if tag == "a"]


@pytest.fixture(autouse=True)
def kept(harness: GatewayHarness) -> None:
    harness.scheduler.ordered_models = ["azure/gpt", "openai/gpt", "vllm/a"]
    harness.scheduler.put(running())
    harness.scheduler.datasets.kept[DATASET] = stored_dataset(DATASET, name="rows.jsonl")


@pytest.mark.parametrize("path", [*LISTS, "/compare"])
async def test_models_that_were_ordered_are_offered_by_the_field(harness: GatewayHarness, path: str) -> None:
    shown = await show(harness, path)
    offered = [attributes.get("value") for tag, attributes in shown.elements if tag == "option"]
    assert set(harness.scheduler.ordered_models) <= set(offered)
    assert [a for tag, a in shown.elements if tag == "input" and a.get("list") == "models"]


@pytest.mark.parametrize("path", ["/runs", "/rollouts"])
async def test_part_that_has_no_field_asks_for_no_models(harness: GatewayHarness, path: str) -> None:
    await show(harness, path, headers={"HX-Request": "true", "HX-Request-Type": "partial"})
    assert harness.scheduler.model_names_asked == 0
    await show(harness, path)
    assert harness.scheduler.model_names_asked == 1


@pytest.mark.parametrize("path", LISTS)
async def test_part_of_a_name_is_not_looked_for_while_it_is_typed(harness: GatewayHarness, path: str) -> None:
    shown = await show(harness, path)
    [form] = [a for tag, a in shown.elements if tag == "form" and "filters" in str(a.get("class"))]
    assert "from:#model" not in str(form["hx-trigger"])


async def test_name_of_models_of_several_providers_offers_them(harness: GatewayHarness) -> None:
    shown = await show(harness, "/rollouts?model=gpt")
    assert shown.status == 422
    assert "Several providers have a model gpt" in shown.html
    assert {"/rollouts?model=azure%2Fgpt", "/rollouts?model=openai%2Fgpt"} <= set(links(shown))
    # The form keeps what was entered.
    assert 'value="gpt"' in shown.html
    assert list(harness.scheduler.rollouts.listed) == []


async def test_page_of_a_model_of_several_providers_offers_them(harness: GatewayHarness) -> None:
    shown = await show(harness, "/models/gpt")
    assert (shown.status, {"/models/azure/gpt", "/models/openai/gpt"} <= set(links(shown))) == (300, True)


async def test_name_of_several_models_is_said_where_runs_are_chosen(harness: GatewayHarness) -> None:
    shown = await show(harness, "/compare?q=gpt")
    assert (shown.status, "Several providers have a model gpt" in shown.html) == (200, True)


async def test_runs_over_one_data_set_say_so_and_stay_so_under_other_filters(harness: GatewayHarness) -> None:
    shown = await show(harness, f"/runs?dataset={DATASET}")
    assert "Only runs over the data set" in shown.html
    assert "rows.jsonl" in shown.html
    assert {f"/datasets/{DATASET}", "/runs"} <= set(links(shown))
    [field] = [a for tag, a in shown.elements if tag == "input" and a.get("name") == "dataset"]
    assert (field["type"], field["value"]) == ("hidden", DATASET)
    # Its runs are kept when it is deleted.
    gone = await show(harness, f"/runs?dataset=ds_{'f' * 32}")
    assert (gone.status, f"ds_{'f' * 32}" in gone.html) == (200, True)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (DATASET, f"/datasets/{DATASET}"),
        ("rows.jsonl", f"/datasets/{DATASET}"),
        ("batch_1", "/batches/batch_1"),
        ("file-1", "/batches/files?file=file-1"),
        ("starter", "/runs?suite=starter"),
        ("vllm/a", "/runs?model=vllm%2Fa"),
        ("LLM/", "/runs?model=vllm%2Fa"),
        ("gp", "/runs?model=gp"),
        ("start", "/suites?q=start"),
        ("nothing", "/runs?model=nothing"),
        ("facade", "/runs?model=facade"),
        (RUN_ID[:8], f"/runs/{RUN_ID}"),
        (RUN_ID[:6].upper(), f"/runs/{RUN_ID}"),
        (RUN_ID[:-1], f"/runs/{RUN_ID}"),
        ("", "/runs"),
    ],
)
async def test_search_opens_what_has_the_name(harness: GatewayHarness, wanted: str, found: str) -> None:
    shown = await show(harness, f"/search?q={wanted}")
    assert (shown.status, shown.headers["Location"]) == (303, found)


async def test_first_digits_of_several_ids_list_their_runs(harness: GatewayHarness) -> None:
    other = running()
    other.run_id = f"{RUN_ID[:8]}-0000-4000-8000-000000000000"
    harness.scheduler.put(other)
    found = (await show(harness, f"/search?q={RUN_ID[:8]}")).headers["Location"]
    assert found == f"/runs?id={RUN_ID[:8]}"
    shown = await show(harness, found)
    assert {f"/runs/{RUN_ID}", f"/runs/{other.run_id}", "/runs"} <= set(links(shown))
    assert "Only runs whose id begins with" in shown.html
    # A text that is not the beginning of an id is ignored, as other filters that are not understood.
    assert "begins with" not in (await show(harness, "/runs?id=zzz")).html


@pytest.mark.parametrize(
    ("text", "model", "models"),
    [
        ("GP", "", ["azure/gpt", "openai/gpt"]),
        ("azure/gpt", "azure/gpt", []),
        ("azure", "azure/gpt", []),
        ("nothing", "nothing", []),
        ("", "", []),
    ],
)
async def test_runs_are_of_the_models_that_have_the_text_in_their_names(
    harness: GatewayHarness, text: str, model: str, models: list[str]
) -> None:
    shown = await show(harness, f"/runs?model={text}")
    assert (shown.status, f'value="{text}"' in shown.html) == (200, True)
    asked = harness.scheduler.listed[-1]
    assert (asked.model, [*asked.models]) == (model, models)


async def test_a_file_that_was_searched_is_shown_alone(harness: GatewayHarness) -> None:
    wanted = harness.scheduler.files.put("in.jsonl", b"x", file_pb2.FILE_PURPOSE_BATCH)
    harness.scheduler.files.put("other.jsonl", b"y", file_pb2.FILE_PURPOSE_BATCH)
    shown = await show(harness, f"/batches/files?file={wanted.file_id}")
    assert ("in.jsonl" in shown.html, "other.jsonl" in shown.html) == (True, False)
    assert "/batches/files" in links(shown)
    assert (await show(harness, "/batches/files?file=file-zzz")).status == 404
    # However many newer ones there are, its Delete asks about it, and leads to the list.
    ask = f"/batches/files?file={wanted.file_id}&ask={wanted.file_id}"
    assert ask in links(shown)
    asked = await show(harness, ask)
    assert f'action="/batches/files/{wanted.file_id}/delete"' in asked.html
    assert 'name="back" value="/batches/files"' in asked.html
    assert f"/batches/files?file={wanted.file_id}" in links(asked)


@pytest.mark.parametrize(
    ("path", "start"),
    [
        (f"/datasets/ds_{'f' * 32}", "/datasets"),
        ("/batches/batch_zzz", "/batches"),
        ("/suites/zzz", "/suites"),
        ("/runs/zzz", "/runs"),
        ("/nothing", "/runs"),
    ],
)
async def test_unknown_id_leads_to_the_list_of_its_kind(
    harness: GatewayHarness, path: str, start: str
) -> None:
    shown = await show(harness, path)
    assert shown.status == 404
    assert f"start at the {'data sets' if start == '/datasets' else start[1:]}" in shown.html
    main = shown.html.partition("<main")[2]
    assert f'<a class="button main" href="{start}">' in main
