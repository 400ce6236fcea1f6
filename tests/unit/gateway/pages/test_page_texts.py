"""Figures, hostile text and entered numbers as pages show and read them; scales of intervals."""

import math

import pytest
from starlette.datastructures import ImmutableMultiDict

from proctor.values.metrics.catalogue import METRICS
from proctor.values.metrics.metric import Metric, Unit
from services.gateway.http.errors import FormFaults
from services.gateway.pages import text
from services.gateway.pages.interval_plot import Scale
from services.gateway.pages.order_fields import fields_of
from services.gateway.pages.orders.form import OrderForm


def test_figures_have_thin_spaces_true_minuses_and_a_dash_for_none() -> None:
    assert text.count(1234567) == "1\u2009234\u2009567"
    assert text.percent(-0.0125) == "\u22121.2"
    assert text.score(0.8234) == "82.3"
    # Only what is not done yet is not shown as done.
    assert (text.score(0.9998), text.score(1.0), text.score(-0.9998)) == ("100.0", "100.0", "\u2212100.0")
    assert text.percent(-0.0001) == "0.0"
    assert (text.signed(0.0234), text.signed(-0.011), text.signed(0)) == ("+2.3", "\u22121.1", "0.0")
    assert {text.count(None), text.percent(math.nan), text.duration(None), text.size(None)} == {"\u2013"}


def test_lists_that_are_not_counted_whole_have_more() -> None:
    assert [text.total(number) for number in (1, 1000, 1001)] == ["1", "1\u2009000", "more than 1\u2009000"]


def test_one_day_is_not_counted() -> None:
    assert [text.days(number) for number in (1, 7, 3650)] == ["day", "7 days", "3\u2009650 days"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3.14159, "3.14"),
        (999.7, "1\u2009000"),
        (1_234_567, "1\u2009234\u2009567"),
        (-0.0000123, "\u22120.0000123"),
        (1e-300, "below 0.000001"),
    ],
)
def test_no_figure_is_written_as_a_power_of_ten(value: float, shown: str) -> None:
    assert text.number(value) == shown


def test_a_share_that_is_not_whole_is_not_shown_as_whole() -> None:
    assert [text.percent(share, 0) for share in (0.994, 0.996, 0.99999, 1.0)] == ["99", "99", "99", "100"]
    assert (text.percent(0.99999), text.percent(0.9999, 2)) == ("99.9", "99.99")


def test_a_figure_has_the_unit_of_its_metric_and_of_those_beside_it() -> None:
    # Some metrics are in per cent already; of others a small figure beside a large one is not a share.
    assert text.score(0.8, "bleu_max", 27.3) == "0.8"
    assert (text.score(-0.6, "rougeL_diff,none"), text.score(0.6, "bleu_acc")) == ("\u22120.6", "60.0")
    assert (text.score(0.8, "score", 27.3), text.score(0.8, "score", 0.9, None)) == ("0.8", "80.0")
    assert text.signed(3.2, "bleu_max", 27.3) == "+3.2"


def test_a_name_may_break_after_its_parts_and_stays_text() -> None:
    assert text.breakable("exact_match,none") == "exact_<wbr>match,<wbr>none"
    assert text.breakable("a_b.jsonl.gz") == "a_<wbr>b<wbr>.jsonl<wbr>.gz"
    assert text.breakable("qwen2.5") == "qwen2.5"
    assert text.breakable("a/<b>_") == "a/<wbr>&lt;b&gt;_"


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_a_figure_has_the_unit_of_the_catalogue_however_large_it_is(metric: Metric) -> None:
    is_of_one = metric.unit in (Unit.SHARE, Unit.COEFFICIENT)
    for name in (metric.name, f"{metric.name},strict"):
        assert text.score(0.5, name) == ("50.0" if is_of_one else "0.5")
        # An end of an interval may lie beyond 1.
        assert text.score(1.02, name) == ("102.0" if is_of_one else "1.02")
    assert text.score(0.5, "pass@8") == "50.0"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.033, "33 ms"), (3.14, "3.1 s"), (379, "6 min 19 s"), (3 * 3600, "3 h 00 min"), (90_000, "1 d 1 h")],
)
def test_durations_have_their_two_largest_units(seconds: float, shown: str) -> None:
    assert text.duration(seconds) == shown


def test_range_of_times_is_shown_up_to_four_times_its_low_end() -> None:
    assert text.time_range(30, 120) == "30 s \u2013 2 min 00 s"
    assert {text.time_range(30, 121), text.time_range(0, 1), text.time_range(None, None)} == {""}


def test_characters_that_reorder_or_hide_others_are_shown_by_number_and_long_text_is_cut() -> None:
    assert text.plain("a\u202eb\u200b\x1b[31m\n") == "a⟨U+202E⟩b⟨U+200B⟩⟨U+001B⟩[31m\n"
    assert text.plain("x" * 12, 10) == "xxxxxxxxxx … (2 more characters)"


@pytest.mark.parametrize(
    ("given", "read"),
    [("7", 7), ("-3", -3), ("0.5", 0.5), (".5", 0.5), ("1e9", "1e9"), ("nan", "nan"), ("9" * 40, "9" * 40)],
)
def test_only_plain_numbers_are_read_as_numbers(given: str, read: object) -> None:
    assert text.entered(given) == read


def test_scale_holds_all_figures_at_round_ticks_within_its_bounds() -> None:
    scale = Scale.around([0.8, 0.83, 0.97, None], within=(0, 1))
    assert (scale.low, scale.high) == (0.8, 1.0)
    assert scale.at(0.8) == 0
    assert scale.at(1.2) == 100
    assert 0 < scale.width(0.83, 0.9) < 100
    assert Scale.around([]).ticks


@pytest.mark.parametrize(
    ("figures", "labels"),
    [
        ((0.999, 1.0), ["99.90", "100.00"]),
        ((0.7, 0.95), ["70", "95"]),
        ((0.0, 0.025), ["0.0", "2.5"]),
        ((-0.0004, 0.0006), ["\u22120.04", "0.06"]),
        ((1200.0, 1206.0), ["1\u2009200", "1\u2009206"]),
        ((2.5, 2.5), ["2.44", "2.56"]),
    ],
)
def test_labels_of_a_scale_are_distinct_and_as_short_as_its_step(
    figures: tuple[float, float], labels: list[str]
) -> None:
    ticks = Scale.around(figures).ticks
    shown = [text.tick(each, ticks) for each in ticks]
    assert len(set(shown)) == len(shown)
    assert [shown[0], shown[-1]] == labels


@pytest.mark.parametrize("seconds", [0.000_3, 0.0028, 0.17, 1.4, 17.0, 90.0, 4000.0])
def test_labels_of_times_are_distinct(seconds: float) -> None:
    shown = [text.duration_tick(each) for each in Scale.around([0.0, seconds]).ticks]
    assert len(set(shown)) == len(shown)


def test_a_short_time_on_an_axis_is_not_rounded() -> None:
    ticks = (0.0, 0.0005, 0.25, 1.25, 75.0)
    assert [text.duration_tick(each) for each in ticks] == ["0 s", "0.5 ms", "250 ms", "1.25 s", "1 min 15 s"]


def test_fields_are_those_that_an_engine_takes() -> None:
    assert "context_tokens" not in {field.name for field in fields_of("vllm")}
    assert [field.name for field in fields_of("anthropic")] == ["temperature", "max_tokens"]
    top_k = next(field for field in fields_of("gemini") if field.name == "top_k")
    assert (top_k.low, top_k.high) == ("1", "100")
    assert len(fields_of("unknown")) == 7


def form(**given: str) -> OrderForm:
    return OrderForm({"model": "vllm/starter", "benchmark": "suite:starter", **given}, {})


def test_form_becomes_an_order_with_its_numbers_and_custom_parameters() -> None:
    order = form(limit="7", temperature="0.5", custom='{"min_p": 0.1}', priority="low").to_order()
    assert (order.model, order.suite, order.limit, order.params.temperature) == (
        "vllm/starter",
        "starter",
        7,
        0.5,
    )
    assert order.params.provider_params["min_p"] == 0.1


def test_data_set_is_ordered_with_its_metric_and_without_a_suite() -> None:
    given = [("model", "vllm/starter"), ("benchmark", "dataset:ds_1"), ("metric", "exact_match")]
    order = OrderForm.of(ImmutableMultiDict(given)).to_order()
    assert (order.suite, order.dataset_id, order.metrics[0].name) == ("", "ds_1", "exact_match")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"model": ""}, "model"),
        ({"model": "starter"}, "model"),
        ({"benchmark": ""}, "benchmark"),
        ({"limit": "0"}, "limit"),
        ({"temperature": "3"}, "temperature"),
        ({"custom": "["}, "custom"),
        ({"custom": "[1]"}, "custom"),
        ({"priority": "urgent"}, "priority"),
    ],
)
def test_fault_is_at_its_field(given: dict[str, str], field: str) -> None:
    with pytest.raises(FormFaults) as refused:
        form(**given).to_order()
    assert set(refused.value.faults) == {field}


def test_address_with_the_earlier_name_of_a_parameter_is_read() -> None:
    assert OrderForm.of(ImmutableMultiDict({"subject": "suite:starter"})).benchmark == "starter"
    both = ImmutableMultiDict({"subject": "suite:old", "benchmark": "dataset:ds_1"})
    assert OrderForm.of(both).benchmark == "ds_1"


def test_address_of_a_form_holds_what_is_entered_and_no_more() -> None:
    assert form(limit="7", request_id="x", unknown="y").link() == (
        "/runs/new?model=vllm%2Fstarter&benchmark=suite%3Astarter&limit=7"
    )
