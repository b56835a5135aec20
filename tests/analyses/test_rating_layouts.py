"""Tables of ratings as people have them: the same alpha however they are written, or a question."""

import random
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.analyses.agreement.ratings import Ratings, read_ratings
from calibration.errors import InputError
from calibration.tables.reading import ReadingOptions

Row = dict[str, str]
Given = dict[tuple[str, str], str]
N_TABLES = 400
CLASSES = (("good", "bad"), ("yes", "no", "unsure"), ("1", "2", "3", "4", "5"), ("0", "1"))
ITEMS = ("item", "item_id", "Item ID", "unit", "task_id", "question_id", "doc_id", "image_id")
RATERS = ("rater", "annotator", "annotator_id", "worker_id", "coder", "Reviewer", "user_id")
LABELS = ("label", "annotation", "rating", "verdict", "Judgment", "score")
STEMS = ("annotator_{}", "Rater {}", "coder{}", "reviewer_{}", "label_{}", "annotator_{}_label")


def alpha_of(given: Given) -> float:
    """Return Krippendorff's nominal alpha, counted by hand from the pairs of each item."""
    items: dict[str, list[str]] = defaultdict(list)
    for (item, _), label in given.items():
        items[item].append(label)
    shared = [labels for labels in items.values() if len(labels) > 1]
    total, n = Counter(label for labels in shared for label in labels), sum(map(len, shared))
    differing = sum(
        sum(a != b for a in labels for b in labels) / (len(labels) - 1) for labels in shared
    )
    expected = (n * n - sum(k * k for k in total.values())) / (n - 1)
    return 1 - differing / expected


def alpha_read(ratings: Ratings) -> float:
    return alpha_of(
        {
            (item, rater): ratings.classes[ratings.codes[i, j]]
            for i, item in enumerate(ratings.items)
            for j, rater in enumerate(ratings.raters)
            if ratings.codes[i, j] >= 0
        }
    )


def drawn(chance: random.Random) -> Given:
    """Draw ratings with some disagreement and some missing labels."""
    classes = chance.choice(CLASSES)
    n_raters = chance.randint(2, 4)
    raters = chance.choice((["Ann", "Bo", "Cy", "Di"], ["w1", "w2", "w3", "w4"]))[:n_raters]
    given: Given = {}
    for k in range(chance.randint(14, 40)):
        truth = chance.choice(classes)
        for rater in raters:
            if chance.random() > 0.1:
                label = truth if chance.random() < 0.75 else chance.choice(classes)
                given[f"i{k}", rater] = label
    return given


def written(label: str, chance: random.Random) -> str:
    """Return a label with other capitals, or with blanks around it."""
    label = chance.choice((label, label, label, label.upper(), label.capitalize()))
    return chance.choice(("", "", " ")) + label + chance.choice(("", "", " ", "\u00a0"))


def added(rows: list[Row], labels: list[str], chance: random.Random, *, is_wide: bool) -> None:
    """Add columns that are no ratings: dates, ids, prose, a majority, confidence."""
    n = len(rows)
    days = [f"2026-03-{1 + k % 28:02d}" for k in range(n)]
    columns: dict[str, list[str]] = {
        chance.choice(("created_at", "date", "Submitted At")): days,
        chance.choice(("row_id", "annotation_id", "id")): [str(1000 + k) for k in range(n)],
        "project_id": ["7"] * n,
        chance.choice(("batch_id", "session_id")): [f"s{k % 4}" for k in range(n)],
        chance.choice(("comment", "rationale", "notes")): [
            chance.choice(("", "see above", "this one is " + "very " * 20 + "long")) for _ in rows
        ],
        chance.choice(("final_label", "majority", "gold_label", "consensus")): labels,
        chance.choice(("confidence", "Confidence")): [str(1 + k % 5) for k in range(n)],
        chance.choice(("duration", "lead_time_duration")): [str(3 + k % 40) for k in range(n)],
        chance.choice(("lang", "source", "topic", "model")): [
            chance.choice(("one", "two", "three")) for _ in rows
        ],
        "text": [f"Text number {k % 17} of the table" for k in range(n)],
        "url": ["https://example.org/a"] * n,
    }
    if is_wide:
        columns["agree"] = [chance.choice(("TRUE", "FALSE")) for _ in rows]
    for name in chance.sample(sorted(columns), chance.randint(0, 4)):
        for row, value in zip(rows, columns[name], strict=True):
            row.setdefault(name, value)


def long_table(given: Given, chance: random.Random) -> list[Row]:
    names = tuple(chance.choice(names) for names in (ITEMS, RATERS, LABELS))
    rows = [
        dict(zip(names, (item, rater, written(label, chance)), strict=True))
        for (item, rater), label in given.items()
    ]
    added(rows, list(given.values()), chance, is_wide=False)
    return rows


def wide_table(given: Given, chance: random.Random) -> list[Row]:
    raters = sorted({rater for _, rater in given})
    item, stem = chance.choice(ITEMS), chance.choice(STEMS)
    names = {rater: stem.format(k) for k, rater in enumerate(raters, 1)}
    if chance.random() < 0.3:
        item, names = "item", {rater: rater for rater in raters}
    rows = [
        {item: name}
        | {names[rater]: written(given.get((name, rater), ""), chance) for rater in raters}
        for name in dict.fromkeys(name for name, _ in given)
    ]
    labels = [next(label for (at, _), label in given.items() if at == row[item]) for row in rows]
    added(rows, labels, chance, is_wide=True)
    return rows


def answered(frame: pd.DataFrame) -> Ratings | None:
    """Return the ratings of a frame, None where it is asked what holds them."""
    try:
        return read_ratings(frame)
    except InputError as error:
        if "--" not in str(error):
            raise
    return None


def shuffled(rows: list[Row], chance: random.Random) -> pd.DataFrame:
    """Return a frame with its rows and its columns in another order, most often."""
    columns = list(rows[0])
    chance.shuffle(rows)
    if chance.random() < 0.6:
        chance.shuffle(columns)
    return pd.DataFrame(rows, dtype=object)[columns]


@pytest.mark.parametrize("form", [long_table, wide_table])
def test_a_table_gives_its_alpha_or_a_question(form: Any) -> None:
    n_read = 0
    for seed in range(N_TABLES):
        chance = random.Random(seed)
        given = drawn(chance)
        frame = shuffled(form(given, chance), chance)
        ratings = answered(frame)
        if ratings is None:
            continue
        n_read += 1
        assert alpha_read(ratings) == pytest.approx(alpha_of(given)), (seed, list(frame.columns))
    assert n_read > 0.6 * N_TABLES


def test_a_later_rating_counts_wherever_it_is() -> None:
    for seed in range(120):
        chance = random.Random(seed)
        given = drawn(chance)
        rows = [
            {"item": item, "annotator": rater, "label": label, "updated_at": "2026-03-02 10:00"}
            for (item, rater), label in given.items()
        ]
        changed = chance.sample(rows, 4)
        earlier = [
            row | {"label": "other", "updated_at": f"2026-03-0{1 + k % 2} 09:0{k}"}
            for k, row in enumerate(changed)
        ]
        added(rows, list(given.values()), chance, is_wide=False)
        frame = shuffled(rows + earlier, chance).fillna("")
        ratings = answered(frame)
        if ratings is None:
            continue
        assert alpha_read(ratings) == pytest.approx(alpha_of(given)), (seed, list(frame.columns))
        assert "4 earlier ratings replaced by a later one." in ratings.reading.notes


LONG = pd.DataFrame(
    [
        {"item": f"i{k}", "rater": rater, "label": "good" if (k + j) % 3 else "bad"}
        for k in range(12)
        for j, rater in enumerate(("Ann", "Bo"))
    ]
)
WIDE = LONG.pivot_table(index="item", columns="rater", values="label", aggfunc="first")


def wide(**more: Any) -> pd.DataFrame:
    """Return a row an item with Ann and Bo, and further columns."""
    return WIDE.reset_index().assign(**more)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (wide().rename(columns={"item": "task_id"}), "Ann, Bo may be raters or what was rated"),
        (wide().rename(columns={"Ann": "fluency"}), "fluency may say something of the item"),
        (wide(label="good"), "label may say something of the item"),
        (wide(Cy=[f"2026-01-{k + 1:02d}" for k in range(12)]), "Cy holds dates"),
        (wide(Cy=["a" * 81] * 12), "texts of more than 80 characters"),
        (wide(Cy=[f"v{k}" for k in range(12)]), "another value in nearly every row"),
        (wide(Cy="blue"), "shares no value"),
        (wide(machine="good")[["item", "Ann", "machine"]], "two raters or more; Ann is one"),
        (
            wide(human_label="good").rename(columns={"Ann": "judge_a", "Bo": "judge_b"}),
            "human_label holds the same values",
        ),
        (
            wide().assign(Bo=["x"] * 12).rename(columns={"Ann": "rater_1", "Bo": "rater_2"}),
            "rater_1 and rater_2 never agree: names of the reviewers?",
        ),
        (
            wide(rater_1_verdict="good").rename(columns={"Ann": "rater_1", "Bo": "rater_2"}),
            "names of the reviewers?",
        ),
        (LONG.assign(label=pd.Series([["good"]] * 24)), "lists or objects"),
        (LONG.iloc[::2], "every item has one rating"),
        (LONG.drop(columns="rater"), "no column names the rater of a row"),
        (LONG.rename(columns={"item": "thing"}), "--column item=NAME"),
        (LONG.rename(columns={"rater": "annotator"}).assign(rating="x"), "may both hold the label"),
        (LONG.assign(label="?"), "--map ?="),
        (
            LONG.assign(
                label=[("yes", "1")[k % 2] if k % 5 else ("no", "0")[k % 2] for k in range(24)]
            ),
            "no word is of both",
        ),
        (
            wide(response_a="x", response_b="y").rename(
                columns={"item": "prompt_id", "Ann": "score_a", "Bo": "score_b"}
            ),
            "score_a, score_b may be raters or what was rated",
        ),
        (pd.concat([LONG, LONG.assign(rater="Ann", label="x")]), "no time says which is later"),
        (
            pd.concat([LONG.assign(aspect="tone"), LONG.assign(aspect="truth", label="x")]),
            "--where aspect=tone",
        ),
    ],
)
def test_what_is_not_clear_is_asked(frame: pd.DataFrame, says: str) -> None:
    with pytest.raises(InputError) as refused:
        read_ratings(frame)
    assert says in str(refused.value)


def test_a_question_is_answered_by_an_option() -> None:
    plain = alpha_read(read_ratings(LONG))
    agents = wide().rename(columns={"item": "task_id"})
    assert alpha_read(read_ratings(agents, ReadingOptions(raters=("Ann", "Bo")))) == plain
    both = pd.concat([LONG.assign(aspect="tone"), LONG.assign(aspect="truth", label="x")])
    tone = ReadingOptions(where=(("aspect", "tone"),))
    assert alpha_read(read_ratings(both, tone)) == plain
    named = LONG.rename(columns={"item": "thing", "rater": "who", "label": "said"})
    roles = ReadingOptions(columns={"item": "thing", "rater": "who", "label": "said"})
    found = read_ratings(named, roles)
    assert alpha_read(found) == plain
    assert found.reading.columns == {"item": "thing", "rater": "who", "label": "said"}
    named_twice = LONG.replace({"label": {"bad": "?"}})
    mapped = read_ratings(named_twice, ReadingOptions(mapped={"?": "bad"}))
    assert alpha_read(mapped) == plain


def test_words_are_joined_and_missing_ones_counted() -> None:
    frame = LONG.copy()
    frame.loc[0, "label"], frame.loc[3, "label"], frame.loc[5, "label"] = "NA", "Good ", "None"
    found = read_ratings(frame)
    assert found.classes == ("bad", "good")
    assert found.reading.missing_words == {"NA": 1, "None": 1}
    assert found.reading.words == {"label": {"Good": "good"}}
    assert "1 label written NA was taken as missing." in found.reading.notes
    assert (found.codes < 0).sum() == 2
    numbers = LONG.replace({"label": {"good": "2.0", "bad": "10"}})
    numbers.loc[numbers.label == "2.0", "label"] = ["2", "2.0"] * 8
    assert read_ratings(numbers).classes == ("2", "10")
    exact = read_ratings(LONG.replace({"label": {"bad": "NA"}}), classes=["good", "NA"])
    assert not (exact.codes < 0).any()


def test_labels_of_the_rubric_are_its_classes_in_order() -> None:
    frame = LONG.replace({"label": {"good": "COMPLETE", "bad": "Partial-plus"}})
    found = read_ratings(frame)
    assert found.classes[:2] == ("complete", "partial_plus")
    assert np.unique(found.codes).tolist() == [0, 1]


def test_rows_without_a_rater_are_left_out_and_counted() -> None:
    frame = LONG.copy()
    frame.loc[4, "rater"] = ""
    reading = read_ratings(frame).reading
    assert reading.left_out_line == (
        "Left out: 1 of 24 rows (1 without a rater, first line 5: 'i2')"
    )
    assert (reading.rows, reading.used, reading.max_left_out) == (24, 23, None)
    assert not reading.is_over_limit
