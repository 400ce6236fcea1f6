"""Which judges of a run are read as a panel."""

from proctor.values.judging.panels import asked_of_panels


def test_several_models_that_answer_one_question_are_a_panel_named_by_its_newest_run() -> None:
    judges = [
        ("correctness, yes-no", "a", "4"),
        ("correctness, 1-5", "b", "3"),
        ("correctness, yes-no", "b", "2"),
        ("correctness, yes-no", "a", "1"),
    ]
    assert asked_of_panels(judges) == ["4"]


def test_one_model_alone_is_none_however_often_it_was_asked() -> None:
    assert asked_of_panels([("correctness, yes-no", "a", "2"), ("correctness, yes-no", "a", "1")]) == []
