"""Tables that are handed in: their columns by role and the words of their outcome, with menus."""

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import TextInput

from app import session
from app.components.table_reading import as_menus
from calibration.taxonomy import default_taxonomy
from tests.analyses.worlds import World, ids
from tests.app.conftest import NewStore, OpenApp, texts

NAMES = default_taxonomy().names
SUCCESS, FAILED = default_taxonomy().success, default_taxonomy().failed_check


def labelled(made: World) -> None:
    for who in ("Ann", "Ben"):
        made.label(who, dict.fromkeys(made.drawn, "complete"))


def hand_in(app: AppTest, content: str) -> None:
    app.file_uploader(key="verdict_upload").set_value(("v.csv", content.encode(), "text/csv"))
    app.text_input(key="verdict_judge").set_value("judge-1")
    app.run()


def menu(app: AppTest, label: str):  # type: ignore[no-untyped-def]
    (found,) = [box for box in app.selectbox if box.label == label]
    return found


def press(app: AppTest) -> None:
    (button,) = [b for b in app.button if b.label == "Import verdicts"]
    button.click().run()


def stored() -> dict[str, str]:
    frame = session.open_store(session.store_path()).verdict_frame("judge-1")
    return dict(zip(frame["trace_id"], frame["outcome"], strict=True))


def table(header: str, *words: str) -> str:
    rows = [f"{trace},{words[k % len(words)]},note" for k, trace in enumerate(ids(12))]
    return "\n".join((header, *rows))


@pytest.fixture
def judge_page(world: NewStore, open_app: OpenApp) -> AppTest:
    world(labelled)
    return open_app("judge", reviewer="lea")


def test_menus_begin_with_what_was_recognised(judge_page: AppTest) -> None:
    hand_in(judge_page, table("run_id,verdict,comment", "Completed", "abandoned", "NA"))
    assert menu(judge_page, "trace_id").value == "run_id"
    assert menu(judge_page, "outcome").value == "verdict"
    assert menu(judge_page, "Completed (4)").value == "complete"
    assert menu(judge_page, "abandoned (4)").value == "abandoned"
    assert menu(judge_page, "NA (4)").value == "missing"
    said = texts(judge_page)
    assert "v.csv: 12 rows, comma-separated, UTF-8" in said
    press(judge_page)
    assert set(stored().values()) == {"complete", "abandoned", "no_verdict"}


def test_a_word_is_taken_as_its_menu_says(judge_page: AppTest) -> None:
    hand_in(judge_page, table("trace_id,verdict,comment", "complete", "splendid"))
    assert menu(judge_page, "splendid (6)").value == "not clear yet"
    menu(judge_page, "splendid (6)").set_value("partial_plus").run()
    assert menu(judge_page, "complete (6)").disabled
    press(judge_page)
    assert set(stored().values()) == {"partial_plus", "complete"}


def test_a_question_stands_above_the_menus(judge_page: AppTest) -> None:
    hand_in(judge_page, table("trace_id,label,comment", "1", "0"))
    (asked,) = [one.value for one in judge_page.warning]
    assert asked.startswith("v.csv: label holds 0 and 1, and the name does not say which")
    assert "--map" not in asked
    assert "the menus of words (1=pass,0=fail)" in asked
    menu(judge_page, "1 (6)").set_value("fail").run()
    menu(judge_page, "0 (6)").set_value("pass").run()
    assert not judge_page.warning
    press(judge_page)
    held = stored()
    assert {held[trace] for trace in ids(12)[::2]} == {FAILED}
    assert {held[trace] for trace in ids(12)[1::2]} == {SUCCESS}


def test_another_column_can_be_chosen(judge_page: AppTest) -> None:
    rows = [f"{trace},complete,abandoned" for trace in ids(12)]
    hand_in(judge_page, "\n".join(("trace_id,outcome,second", *rows)))
    menu(judge_page, "outcome").set_value("second").run()
    assert menu(judge_page, "abandoned (12)").value == "abandoned"
    press(judge_page)
    assert set(stored().values()) == {"abandoned"}


def test_a_table_without_the_role_is_asked_for(judge_page: AppTest) -> None:
    hand_in(judge_page, table("trace_id,what,comment", "complete", "abandoned"))
    (asked,) = [one.value for one in judge_page.warning]
    assert "--" not in asked
    menu(judge_page, "outcome").set_value("what").run()
    assert not judge_page.warning
    press(judge_page)
    assert set(stored().values()) == {"complete", "abandoned"}


def test_a_file_that_is_no_table_is_said(judge_page: AppTest) -> None:
    hand_in(judge_page, "")
    (asked,) = [one.value for one in judge_page.warning]
    assert asked.startswith("v.csv: ")
    press(judge_page)
    assert "Nothing was imported: v.csv" in texts(judge_page)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("--column cost_usd= leaves them out", "(none) in the menu cost_usd leaves them out"),
        ("a: --scale 1-5, or another", "a: the scale 1-5, or another"),
        ("needs --map", "needs the menus of words"),
        ("--decimal comma or --decimal point", "decimal comma or decimal point"),
    ],
)
def test_options_are_spoken_of_as_menus(said: str, shown: str) -> None:
    assert as_menus(said) == shown


def test_repeated_runs_have_the_same_menus(world: NewStore, open_app: OpenApp) -> None:
    world(labelled)
    app = open_app("reliability", reviewer="lea")
    rows = [f"c{k // 3},{k % 3},{'fine' if k % 2 else 'broken'}" for k in range(12)]
    content = "\n".join(("case,attempt,passed", *rows))
    app.file_uploader(key="reliability_runs_upload").set_value(
        ("r.csv", content.encode(), "text/csv")
    )
    app.run()
    (asked,) = [one.value for one in app.warning]
    assert asked.startswith("r.csv: passed: no value is a class or says pass or fail")
    menu(app, "fine (6)").set_value("pass").run()
    menu(app, "broken (6)").set_value("fail").run()
    assert not app.warning
    assert menu(app, "task_id").value == "case"
    (button,) = [b for b in app.button if b.label == "Measure"]
    button.click().run()
    assert "Measured on a file; nothing of it is stored." in texts(app)


def test_a_word_that_is_no_outcome_is_a_question(judge_page: AppTest) -> None:
    hand_in(judge_page, table("trace_id,verdict,comment", "complete", "splendid"))
    (asked,) = [one.value for one in judge_page.warning]
    assert asked == "Say in the menus of words what 'splendid' is taken as."
    assert "asr calibrate" not in texts(judge_page)
    menu(judge_page, "splendid (6)").set_value("missing").run()
    assert not judge_page.warning


def test_runs_left_out_over_the_limit_are_a_question_with_a_field(
    world: NewStore, open_app: OpenApp
) -> None:
    world(labelled)
    app = open_app("reliability", reviewer="lea")
    rows = [f"t{k // 4},{k % 4},{('yes', 'no', 'NA')[k % 3]}" for k in range(80)]
    content = "\n".join(("task,attempt,passed", *rows)).encode()
    app.file_uploader(key="reliability_runs_upload").set_value(("t.csv", content, "text/csv"))
    app.run()
    (asked,) = [one.value for one in app.warning]
    assert asked.startswith("t.csv: left out 26 of 80 rows")
    assert "enter 0.33 as the largest share left out" in asked
    assert "--" not in asked
    (share,) = [one for one in app.text_input if one.label == "Largest share left out"]
    share.set_value("33%").run()
    assert not app.warning
    next(b for b in app.button if b.label == "Measure").click().run()
    assert "Nothing was measured" not in texts(app)
    assert "Left out: 26 of 80 rows" in texts(app)


def test_a_setting_that_cannot_be_read_is_named_and_the_others_hold(
    world: NewStore, open_app: OpenApp
) -> None:
    world(labelled)
    app = open_app("reliability", reviewer="lea")
    rows = [f"t{k // 4},{k % 4},{(5, 2, 4, 'NA')[k % 4]}" for k in range(80)]
    content = "\n".join(("task,attempt,score", *rows)).encode()
    app.file_uploader(key="reliability_runs_upload").set_value(("t.csv", content, "text/csv"))
    app.run()

    def typed(label: str) -> TextInput:
        return next(one for one in app.text_input if one.label == label)

    typed("Scale of scores").set_value("1-5").run()
    typed("Largest share left out").set_value("abc").run()
    asked = [one.value.replace("\\", "") for one in app.warning]
    assert (
        "Largest share left out: 'abc' cannot be read; enter a share, such as 0.1 or 10%." in asked
    )
    # The scale still holds: what is asked is what it was.
    assert any(one.startswith("t.csv: left out 20 of 80 rows") for one in asked)
    typed("Largest share left out").set_value("30%").run()
    assert not app.warning
    typed("Largest share left out").set_value("nan").run()
    assert any("'nan' cannot be read" in one.value for one in app.warning)
