"""Verdicts taken as classes (`--map`, `--rest`), and classes that become one (`--merge`)."""

from typing import Any

import pandas as pd
import pytest

import calibration
from calibration.analyses.evidence.from_files import load_tables
from calibration.analyses.judge.calibration import CalibrationOptions, calibrate_judge
from calibration.analyses.judge.diagnostics import diagnose
from calibration.errors import InputError
from calibration.tables.vocabulary import Recoded, Vocabulary
from tests.classes import OUTCOMES
from tests.cli_runs import Run, data, write_csv

COMPLETE, PARTIAL_PLUS, PARTIAL_MINUS, HALLUCINATED, ABANDONED = OUTCOMES
HUMAN = [OUTCOMES[k * 7 % 5] for k in range(60)]
JUDGE = [OUTCOMES[k * 7 % 5 if k % 4 else (k + 1) % 5] for k in range(200)]
OTHER = {"other": PARTIAL_MINUS}


def table(outcomes: list[str]) -> pd.DataFrame:
    ids = [f"t{k}" for k in range(len(outcomes))]
    return pd.DataFrame({"trace_id": ids, "outcome": outcomes, "workflow": "w"})


def found(human: list[str], said: list[str], **options: Any) -> Any:
    return calibrate_judge(load_tables(table(human), table(said), **options), CalibrationOptions())


def renamed(outcomes: list[str], names: dict[str, str]) -> list[str]:
    return [names.get(name, name) for name in outcomes]


def same(one: Any, other: Any) -> None:
    assert (one.classes, one.credit, one.verdict_names) == (
        other.classes, other.credit, other.verdict_names,
    )  # fmt: skip
    assert one.calibration.estimates == other.calibration.estimates
    assert one.calibration.class_shares == other.calibration.class_shares


def test_mapped_verdicts_count_as_their_class() -> None:
    strange = renamed(JUDGE, {PARTIAL_MINUS: "other", ABANDONED: "gave up", HALLUCINATED: ""})
    known = Vocabulary(mapped=OTHER | {"gave up": ABANDONED})
    one = found(HUMAN, strange, vocabulary=known)
    same(one, found(HUMAN, renamed(JUDGE, {HALLUCINATED: "no_verdict"})))
    counts = [JUDGE.count(name) for name in (PARTIAL_MINUS, ABANDONED)]
    assert one.recoded == tuple(
        Recoded(option="map", outcome=name, into=into, verdicts=n, labels=0)
        for (name, into), n in zip(known.mapped.items(), counts, strict=True)
    )
    assert f"taken as partial_minus: {counts[0]} verdicts other" in one.notes
    # Two words of the judge are enough.
    pass_fail = ["pass" if name == COMPLETE else "fail" for name in JUDGE]
    two = found(
        HUMAN, pass_fail, vocabulary=Vocabulary(mapped={"pass": COMPLETE, "fail": ABANDONED})
    )
    same(two, found(HUMAN, [COMPLETE if v == "pass" else ABANDONED for v in pass_fail]))


def test_the_rest_is_no_verdict() -> None:
    strange = renamed(JUDGE, {PARTIAL_MINUS: "other", ABANDONED: "?", HALLUCINATED: "error"})
    one = found(HUMAN, strange, vocabulary=Vocabulary(mapped=OTHER, rest="no_verdict"))
    same(one, found(HUMAN, renamed(JUDGE, dict.fromkeys([ABANDONED, HALLUCINATED], "no_verdict"))))
    rest = [(of.option, of.outcome, of.into, of.verdicts) for of in one.recoded[1:]]
    assert rest == [
        ("rest", "?", "no_verdict", JUDGE.count(ABANDONED)),
        ("rest", "error", "no_verdict", JUDGE.count(HALLUCINATED)),
    ]
    with pytest.raises(
        InputError, match=r"line \d+, field 'outcome': '\?' is not one of complete.*--map"
    ):
        found(HUMAN, strange, classes=OUTCOMES, vocabulary=Vocabulary(mapped=OTHER))


def test_merged_classes_are_one_of_labels_and_verdicts() -> None:
    parts = [PARTIAL_MINUS, HALLUCINATED]
    merged = Vocabulary(merged={"wrong": parts}, mapped={"other": PARTIAL_MINUS})
    strange = ["other" if k < 9 else name for k, name in enumerate(JUDGE)]
    one = found(HUMAN, strange, vocabulary=merged, credit={"wrong": 0.2})
    names = dict.fromkeys(parts, "wrong")
    said = ["wrong" if k < 9 else name for k, name in enumerate(renamed(JUDGE, names))]
    classes = [COMPLETE, PARTIAL_PLUS, "wrong", ABANDONED]
    credit = one.credit | {"wrong": 0.2}
    same(one, found(renamed(HUMAN, names), said, classes=classes, credit=credit))
    assert one.recoded[1:] == tuple(
        Recoded(
            option="merge", outcome=name, into="wrong", labels=HUMAN.count(name),
            verdicts=JUDGE[9:].count(name) + 9 * (name == PARTIAL_MINUS),
        )
        for name in parts
    )  # fmt: skip
    # The name of a part may stay; its questions are not those of the taxonomy any longer.
    of_taxonomy = load_tables(table(HUMAN), table(JUDGE))
    kept = load_tables(
        table(HUMAN), table(JUDGE), credit={HALLUCINATED: 0.1},
        vocabulary=Vocabulary(merged={HALLUCINATED: parts}),
    )  # fmt: skip
    assert kept.classes == (COMPLETE, PARTIAL_PLUS, HALLUCINATED, ABANDONED)
    assert (of_taxonomy.ours, kept.ours) == (True, False)
    with_nodes, without = (diagnose(of, CalibrationOptions()) for of in (of_taxonomy, kept))
    assert with_nodes.nodes
    assert not without.nodes
    assert all(
        of.question is None for of in calibrate_judge(kept, CalibrationOptions()).disagreements
    )


def test_credit_of_a_merged_class_is_given_unless_its_parts_agree() -> None:
    equal = Vocabulary(merged={"failed": [HALLUCINATED, ABANDONED]})
    assert found(HUMAN, JUDGE, vocabulary=equal).credit["failed"] == 0.0
    unequal = Vocabulary(merged={"failed": [PARTIAL_PLUS, ABANDONED]})
    with pytest.raises(InputError, match=r"the merged class 'failed' is needed.*--credit failed="):
        found(HUMAN, JUDGE, vocabulary=unequal)
    letters = Vocabulary(merged={"b or c": ["b", "c"]})
    human, said = (["abc"[k % 3] for k in range(n)] for n in (40, 90))
    for credit in ({"a": 1.0, "b": 0.3, "c": 0.3}, {"a": 1.0, "b or c": 0.3}):
        one = found(human, said, vocabulary=letters, credit=credit)
        assert one.credit == {"a": 1.0, "b or c": 0.3}


@pytest.mark.parametrize(
    ("vocabulary", "says"),
    [
        ({"mapped": {"x": COMPLETE}}, "--map: no 'x' in the frame; there are"),
        ({"mapped": {"other": "good"}}, "--map: 'good' is not one of complete"),
        ({"mapped": {COMPLETE: ABANDONED}}, "--map: 'complete' is a class"),
        ({"merged": {"bad": [ABANDONED, "x"]}}, "--merge: 'x' is not one of complete"),
        ({"merged": {"bad": [ABANDONED]}}, "must be made of two classes or more"),
        ({"merged": {"bad": [ABANDONED, ABANDONED]}}, "'abandoned' is merged twice"),
        ({"merged": {COMPLETE: [ABANDONED, HALLUCINATED]}}, "'complete' has a meaning already"),
        ({"merged": {"no_verdict": [ABANDONED, HALLUCINATED]}}, "has a meaning already"),
        ({"merged": {"all": OUTCOMES}}, "--merge leaves one class, 'all'"),
    ],
)
def test_names_that_mean_nothing_are_refused(vocabulary: dict[str, Any], says: str) -> None:
    said = [*JUDGE, "other"]
    options = {"rest": "no_verdict"} | vocabulary
    with pytest.raises(InputError, match=says):
        found(HUMAN, said, vocabulary=Vocabulary(**options))


def test_the_function_on_frames_takes_the_same() -> None:
    said = table(renamed(JUDGE, {PARTIAL_MINUS: "other", ABANDONED: "?"}))
    one = calibration.calibrate(
        table(HUMAN), said, words=OTHER, rest="no_verdict",
        merge={"wrong": [PARTIAL_MINUS, HALLUCINATED]}, credit={"wrong": 0.1},
    )  # fmt: skip
    assert one.analysis.credit["wrong"] == 0.1
    assert [of["option"] for of in one.to_dict()["recoded"]] == ["map", "rest", "merge", "merge"]
    assert any("taken as partial_minus" in note for note in one.notes)


def test_the_command_says_what_it_did(calibrate: Run) -> None:
    strange = renamed(JUDGE, {PARTIAL_MINUS: "other", ABANDONED: "?"})
    human = write_csv("h.csv", "trace_id,outcome", *(f"t{k},{c}" for k, c in enumerate(HUMAN)))
    said = write_csv("v.csv", "trace_id,outcome", *(f"t{k},{c}" for k, c in enumerate(strange)))
    before = write_csv("b.csv", "trace_id,outcome", *(f"t{k},?" for k in range(200)))
    words = ["--human", human, "--verdicts", said, "--map", "other=partial_minus"]
    words += ["--rest", "no_verdict", "--merge", "partial_minus+hallucinated=wrong"]
    words += ["--credit", "wrong=.2"]
    text = calibrate(*words, "--full").stdout
    n = JUDGE.count(ABANDONED)
    assert f"taken as no_verdict: {n} verdicts ?" in text
    assert "merged into wrong: 12 labels and" in text
    shown = data(calibrate(*words, "--json", "--against", before))
    assert shown["recoded"][1] == {
        "option": "rest", "outcome": "?", "into": "no_verdict", "verdicts": n, "labels": 0,
    }  # fmt: skip
    assert shown["credit"]["wrong"] == 0.2
    # The other file is read in the same way.
    assert shown["drift"]["n"] == 200
    for option, value, says in (
        ("--map", "other", "must be WORD=CLASS"),
        ("--merge", "a+b=x,c+d=x", "names 'x' twice"),
        ("--rest", "complete", "is not 'no_verdict'"),
    ):
        assert says in calibrate(*words, option, value, code=2).stderr
