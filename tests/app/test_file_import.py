"""Verdicts and labels that come in as a file, by the page that lacks them."""

from streamlit.testing.v1 import AppTest

from app import session
from tests.analyses.worlds import World, ids
from tests.app.conftest import NewStore, OpenApp, texts

MIX = ("complete", "partial_plus", "abandoned")


def labelled(made: World) -> None:
    classes = {t: MIX[k % 3] for k, t in enumerate(made.drawn)}
    for who in ("Ann", "Ben"):
        made.label(who, classes)


def table(*rows: str) -> bytes:
    return "\n".join(("trace_id,outcome", *rows)).encode()


def hand_in(app: AppTest, what: str, content: bytes) -> AppTest:
    app.file_uploader(key=f"{what}_upload").set_value((f"{what}.csv", content, "text/csv"))
    (button,) = [b for b in app.button if b.label == f"Import {what}s"]
    button.click().run()
    return app


def test_a_judge_is_imported_where_there_is_none(world: NewStore, open_app: OpenApp) -> None:
    world(labelled)
    app = open_app("judge", reviewer="lea")
    assert "No judge has given a verdict yet" in app.subheader[0].value
    verdicts = table(*(f"{t},{MIX[k % 3]}" for k, t in enumerate(ids(12))), "r999,complete")
    hand_in(app, "verdict", verdicts)
    assert "Name the judge, with its version." in texts(app)
    app.text_input(key="verdict_judge").set_value("judge-1")
    hand_in(app, "verdict", verdicts)
    said = texts(app)
    assert "12 verdicts imported; 1 for traces that are not in the store (r999)." in said
    assert "For the rate:" in said
    assert "No judge has given a verdict" not in said
    held = session.open_store(session.store_path()).verdict_frame("judge-1")
    assert sorted(held["trace_id"]) == ids(12)


def test_a_file_that_is_refused_is_named_as_it_was_handed_in(
    world: NewStore, open_app: OpenApp
) -> None:
    world(labelled)
    app = open_app("judge", reviewer="lea")
    app.text_input(key="verdict_judge").set_value("judge-1")
    hand_in(app, "verdict", table("r000,complete", "r001,splendid"))
    said = texts(app)
    assert "Nothing was imported: verdict.csv, line 3" in said
    assert "asr-import-" not in said
    assert session.open_store(session.store_path()).judge_frame().empty


def test_labels_made_elsewhere_make_the_rate(world: NewStore, open_app: OpenApp) -> None:
    drawn: list[str] = []

    def fill(made: World) -> None:
        drawn.extend(made.drawn)
        made.store.add_reviewer("Ada", role="admin")

    world(fill)
    assert "imported here by an admin" in texts(open_app("asr", reviewer="lea"))
    app = open_app("asr", reviewer="ada")
    assert "has no labels yet" in texts(app)
    rows = [f"{t},{who},complete" for t in drawn for who in ("Ann", "Ben")]
    hand_in(app, "label", "\n".join(("trace_id,reviewer,outcome", *rows)).encode())
    said = texts(app)
    assert "12 labels imported." in said
    assert "has no labels yet" not in said
    held = session.open_store(session.store_path()).label_frame("production-001")
    assert len(held) == 2 * len(drawn)
