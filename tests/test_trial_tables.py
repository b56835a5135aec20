"""Tables of repeated trials as people have them: one rate, a question, and never another rate."""

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import calibration
from calibration.analyses.reliability.trials import TrialOptions, TrialsAnalysis, analyse_trials
from calibration.errors import CalibrationError, InputError, LeftOutError
from calibration.tables.columns import ALIASES, OUTCOMES, REPEATED_TASKS, TASKS
from calibration.tables.reading import Reading, ReadingOptions
from calibration.tables.scales import CHECKS
from tests.cli_runs import Run, asr, data

__all__ = ["asr"]
# Ways to write a pass and a fail.
WORDS = [
    ("true", "false"), ("TRUE", "FALSE"), ("Yes", "No"), ("t", "f"), ("y", "n"), ("1", "0"),
    ("1.0", "0.0"), ("Pass", "Fail"), ("passed", "failed"), ("success", "failure"),
    ("Successful", "Unsuccessful"), ("correct", "incorrect"), ("Resolved", "Not resolved"),
    ("right", "wrong"), ("C", "I"), ("OK", "not ok"), ("complete", "abandoned"),
    ("pass", "timeout"),
]  # fmt: skip
TASK_NAMES = (*TASKS, *REPEATED_TASKS)
# Columns that say nothing of a trial.
ADDED: dict[str, Any] = {
    "note": lambda k: f"some words, {k}",
    "created_at": lambda k: f"2026-03-{k % 28 + 1:02}T10:00:00",
    "row": lambda k: k,
    "status": lambda k: ["completed", "error"][k % 2],
    "finished": lambda k: ["yes", "no"][k % 3 == 0],
    "error": lambda k: ["", "time-out"][k % 2],
    "exit_code": lambda k: k % 2,
    "tokens": lambda k: 1_000 + k,
    "uuid": lambda k: f"u-{k:05}",
    "reviewer": lambda k: ["Ann", "Bob"][k % 2],
    "majority": lambda k: ["pass", "fail"][k % 2],
    "comment": lambda k: "",
}


def trials(rng: random.Random, *, n_tasks: int = 12, n: int = 3) -> pd.DataFrame:
    rows = [
        (f"t{task}", trial, rng.random() < 0.3 + 0.5 * (task % 2))
        for task in range(n_tasks)
        for trial in range(n)
    ]
    return pd.DataFrame(rows, columns=["task", "trial", "passes"])


def written(frame: pd.DataFrame, words: tuple[str, str], rng: random.Random) -> list[str]:
    """Return the outcomes in words, some in other capitals or between blanks."""
    texts = []
    for passes in frame["passes"]:
        word = words[not passes]
        if rng.random() < 0.3 and not word[:1].isdigit():
            word = rng.choice([word.upper(), word.lower(), word.capitalize()])
        texts.append(word + rng.choice(["", "", " ", "\u00a0"]))
    return texts


def rate(made: TrialsAnalysis) -> float:
    value = made.pass_at_k[1].estimate.value
    assert value is not None
    return value


def reading(made: TrialsAnalysis) -> Reading:
    assert isinstance(made.reading, Reading)
    return made.reading


@pytest.mark.parametrize("seed", range(60))
def test_a_table_of_any_names_gives_its_rate_or_a_question(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    frame = trials(rng)
    expected = frame.groupby("task")["passes"].mean().mean()
    group = rng.choice([OUTCOMES[0], CHECKS, CHECKS, OUTCOMES[2], OUTCOMES[3]])
    columns = {
        rng.choice(TASK_NAMES): frame["task"],
        rng.choice(ALIASES["trial"][:-1]): frame["trial"],
        rng.choice(group): written(frame, rng.choice(WORDS), rng),
    }
    for name in rng.sample(sorted(ADDED), k=rng.randint(0, 6)):
        columns.setdefault(name, [ADDED[name](k) for k in range(len(frame))])
    table = pd.DataFrame(columns)
    table = table[rng.sample(list(table.columns), k=table.shape[1])]
    table = table.sample(frac=1, random_state=seed)
    spellings = [list(table.columns), [name.upper() for name in table.columns],
                 [name.replace("_", " ").title() for name in table.columns]]  # fmt: skip
    table.columns = pd.Index(rng.choice(spellings))
    file = tmp_path / "t.csv"
    table.to_csv(file, index=False, encoding=rng.choice(["utf-8", "utf-8-sig"]))
    options = TrialOptions(ks=(1,), n_resamples=100)
    try:
        made = analyse_trials(file, options)
    except InputError as question:
        message = str(question)
    else:
        message = ""
        assert rate(made) == pytest.approx(expected), columns.keys()
        assert (made.n_trials, made.n_tasks) == (len(frame), 12)
        again = calibration.pass_at_k(pd.read_csv(file, dtype=str, keep_default_na=False), [1])
        assert again.estimates["pass@1"].value == rate(made)
    # A question names the option that answers it.
    assert not message or "--" in message, message


@pytest.mark.parametrize("words", WORDS)
def test_each_pair_of_words_is_read(words: tuple[str, str]) -> None:
    frame = trials(random.Random(1))
    table = frame.assign(passed=[words[not passes] for passes in frame["passes"]])
    made = analyse_trials(table.drop(columns="passes"), TrialOptions(ks=(1,)))
    assert rate(made) == pytest.approx(frame["passes"].mean())
    assert reading(made).left_out == ()


def test_rows_left_out_stop_the_rate_from_two_in_a_hundred_on(asr: Run) -> None:
    rows = ["task_id,trial,passed", *(f"t{k % 25},{k // 25},{'yes' if k % 2 else 'no'}"
                                       for k in range(100))]  # fmt: skip
    rows[7:9] = ["t6,0,pending", "t7,0,maybe"]
    Path("t.csv").write_text("\n".join(rows), "utf-8")
    said = asr("trials", "t.csv").stdout.splitlines()
    assert said[:3] == [
        "Read passed as outcome.",
        "Left out: 2 of 100 rows (1 not finished, first line 8: 'pending'; 1 outcome unknown, "
        "first line 9: 'maybe')",
        "49.0% to 51.0% if the 2 runs left out failed or passed.",
    ]
    for page in (["--html", "t.html"], ["--markdown"], ["--full"]):
        assert "Left out: 2 of 100 rows" in asr("trials", "t.csv", *page).stdout
    made = asr("trials", "t.csv", "--json")
    assert "Left out: 2 of 100 rows" in made.stderr
    assert data(made)["reading"]["left_out_share"] == 0.02
    rows[9] = "t8,0,"
    Path("t.csv").write_text("\n".join(rows), "utf-8")
    refused = asr("trials", "t.csv", "--json", code=1)
    found = json.loads(refused.stdout)
    assert found["pass_at_k"] is found["pass_hat_k"] is None
    assert found["reading"]["bounds"] == [found["missing_outcome"]["low"],
                                          found["missing_outcome"]["high"]]  # fmt: skip
    assert "left out 3 of 100 rows" in refused.stderr
    low, high = found["missing_outcome"]["limits"]
    assert low < found["missing_outcome"]["low"] < found["missing_outcome"]["high"] < high
    asr("trials", "t.csv", "--max-left-out", ".03")
    read = asr("trials", "t.csv", "--map", "maybe=fail,pending=fail").stdout
    assert "Left out: 1 of 100 rows (1 without an outcome, first line 10)" in read
    for command in (["reliability", "t.csv"], ["plan", "trials", "t.csv", "--half-width", ".1"]):
        assert "left out 3 of 100 rows" in asr(*command, code=1).stderr
    # An audit has no limit: it names tasks.
    assert "Left out: 3 of 100 rows" in asr("tasks", "audit", "t.csv").stdout
    with pytest.raises(LeftOutError):
        calibration.pass_at_k(pd.read_csv("t.csv"))
    made_anyway = calibration.pass_at_k(pd.read_csv("t.csv"), max_left_out=0.03)
    assert isinstance(made_anyway.reading, Reading)
    assert made_anyway.reading.left_out_runs == 3


def test_the_latest_of_two_results_counts_where_it_is_asked_for() -> None:
    frame = trials(random.Random(2)).assign(finished_on="2026-03-04 10:00")
    table = frame.assign(success=frame["passes"])
    later = table[:6].assign(success=~table["success"][:6], finished_on="2026-03-04 11:00")
    both = pd.concat([later, table]).drop(columns="passes")
    with pytest.raises(LeftOutError, match=r"6 of 36 runs \(12 rows\)"):
        analyse_trials(both, TrialOptions())
    with pytest.raises(InputError, match="--latest needs a column of times"):
        analyse_trials(both, TrialOptions(), reading=ReadingOptions(latest=True))
    columns = {"started_at": "finished_on"}
    options = ReadingOptions(latest=True, columns=columns)
    made = analyse_trials(both, TrialOptions(ks=(1,)), reading=options)
    passes = table["success"].copy()
    passes[:6] = ~passes[:6]
    assert rate(made) == pytest.approx(passes.mean())
    assert [(rows.code, rows.rows) for rows in reading(made).left_out] == [("superseded", 6)]
    slashed = both.assign(finished_on=both["finished_on"].str.replace("2026-03-04", "03/04/2026"))
    with pytest.raises(InputError, match="--dates dmy"):
        analyse_trials(slashed, TrialOptions(), reading=options)


def test_words_are_decided_on_all_rows_and_on_both_tables() -> None:
    frame = trials(random.Random(3))
    table = frame.assign(passed=[["wrong", "right"][one] for one in frame["passes"]], arm="a")
    # Alone, "right" says nothing; beside "wrong" of the other arm it is a pass.
    best = table.assign(passed="right", arm="b")
    both = pd.concat([table, best]).drop(columns="passes")
    made = analyse_trials(both, TrialOptions(), reading=ReadingOptions(where=(("arm", "b"),)))
    assert rate(made) == 1.0
    only = best.drop(columns=["passes", "arm"])
    earlier = table.drop(columns=["passes", "arm"])
    made = analyse_trials(only, TrialOptions(), baseline=earlier)
    assert rate(made) == 1.0
    assert isinstance(made.reading, tuple)
    with pytest.raises(InputError, match="--map right=CLASS"):
        analyse_trials(only, TrialOptions())


def test_runs_under_a_perturbation_are_no_trials() -> None:
    frame = trials(random.Random(5)).rename(columns={"passes": "success"})
    plain = analyse_trials(frame, TrialOptions(ks=(1,)))
    faults = frame.assign(success=False, perturbation="fault")
    both = pd.concat([frame.assign(perturbation=["None", "none", ""] * 12), faults])
    made = analyse_trials(both, TrialOptions(ks=(1,)))
    assert rate(made) == rate(plain)
    assert [(rows.code, rows.rows) for rows in reading(made).left_out] == [("perturbed_arm", 36)]
    assert reading(made).left_out_line == ""


def test_costs_are_read_by_one_convention_and_never_in_another_currency() -> None:
    frame = trials(random.Random(4)).rename(columns={"passes": "success"})
    read = analyse_trials(frame.assign(cost=["0,25", "$1.234,50"] * 18), TrialOptions(retries=0))
    assert read.retries.expected_usd == pytest.approx((0.25 + 1234.5) / 2)
    with pytest.raises(InputError, match=r"EUR.*--column cost_usd="):
        analyse_trials(frame.assign(cost="0.25 EUR"), TrialOptions())
    with pytest.raises(InputError, match="--decimal comma or --decimal point"):
        analyse_trials(frame.assign(cost="1,234"), TrialOptions())
    made = analyse_trials(
        frame.assign(cost="1,234"), TrialOptions(retries=0), reading=ReadingOptions(decimal="comma")
    )
    assert made.retries.expected_usd == pytest.approx(1.234)
    with pytest.raises(CalibrationError):
        analyse_trials(frame[:0], TrialOptions())
