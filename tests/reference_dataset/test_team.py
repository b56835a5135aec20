"""A team's own sets and decisions, on top of the published dataset."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from calibration.cli import main
from calibration.errors import InputError
from calibration.store import Store
from calibration.taxonomy import default_taxonomy
from reference_dataset.loader import load_reference, published, rows
from reference_dataset.team import add_set, layer, override_label, overrides, team_reference

TAXONOMY = default_taxonomy()
OWN_IDS = [f"own-{k:03d}" for k in range(1, 4)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "asr.duckdb"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Three published traces under ids and a family of their own."""
    head = {"canary": "c", "version": "1", "licence": "ours"}
    by_id = {row.data["trace_id"]: row.data for row in rows(published() / "labels.jsonl")}
    traces, labels = [head], [head]
    for new, row in zip(OWN_IDS, rows(published() / "traces" / "research.jsonl"), strict=False):
        traces.append(row.data | {"trace_id": new, "family": "own"})
        labels.append(by_id[row.data["trace_id"]] | {"trace_id": new})
    (tmp_path / "mine" / "traces").mkdir(parents=True)
    for file, lines in (("traces/own.jsonl", traces), ("labels.jsonl", labels)):
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (tmp_path / "mine" / file).write_text(text)
    (tmp_path / "mine" / "forms.toml").write_text(f"[practice]\ntraces = {json.dumps(OWN_IDS)}\n")
    return tmp_path / "mine"


@pytest.mark.parametrize("private", [False, True])
def test_an_own_set_comes_beside_the_published_one(store: Path, own: Path, private: bool) -> None:
    added = add_set(store, own, name="ours", private=private)
    # They are published ones under other ids: that is counted, as anybody can read their labels.
    assert (added.n, added.n_published) == (3, 3)
    merged = team_reference(store, TAXONOMY)
    assert set(merged.traces) == set(load_reference().traces) | set(OWN_IDS)
    assert merged.forms["ours/practice"] == tuple(OWN_IDS)
    assert merged.forms["practice"] == load_reference().forms["practice"]
    # The labels of a private set are shown to nobody.
    assert set(OWN_IDS) & set(merged.labels) == (set() if private else set(OWN_IDS))


def test_a_set_is_added_once_under_a_plain_name(store: Path, own: Path) -> None:
    for name in ("", "a/b", "..", "a b"):
        with pytest.raises(InputError, match="name must be"):
            add_set(store, own, name=name, private=False)
    assert team_reference(store, TAXONOMY) == load_reference()
    add_set(store, own, name="ours", private=False)
    with pytest.raises(InputError, match="a set of this name exists already"):
        add_set(store, own, name="ours", private=False)
    with pytest.raises(InputError, match="'own-001' is taken"):
        add_set(store, own, name="again", private=False)


def test_a_set_whose_labels_do_not_hold_is_refused(store: Path, own: Path) -> None:
    path = own / "labels.jsonl"
    path.write_text(path.read_text().replace('"quote": "', '"quote": "nowhere to be found ', 1))
    with pytest.raises(InputError, match=r"labels\.jsonl, line 2: quotes: .*nothing was added"):
        add_set(store, own, name="ours", private=False)
    assert not layer(store).exists()


def test_a_published_label_can_be_decided_otherwise_with_a_reason(store: Path) -> None:
    trace_id, label = next(iter(load_reference().labels.items()))
    other = "abandoned" if label.outcome != "abandoned" else "complete"
    override_label(store, TAXONOMY, trace_id=trace_id, outcome=other, reason=" Our rule 7. ")
    decided = team_reference(store, TAXONOMY).labels[trace_id]
    assert decided.outcome == other
    assert decided.answers == TAXONOMY.answers_for(other)
    assert decided.overridden == "Our rule 7."
    assert load_reference().labels[trace_id] == label
    # The last decision counts, and the earlier one stays.
    override_label(store, TAXONOMY, trace_id=trace_id, outcome=label.outcome, reason="after all")
    assert [o.outcome for o in overrides(store)] == [other, label.outcome]
    assert team_reference(store, TAXONOMY).labels[trace_id].outcome == label.outcome


def test_a_decision_names_a_trace_a_class_and_a_reason(store: Path) -> None:
    for trace_id, outcome, reason, message in (
        ("research-999", "complete", "because", "no trace 'research-999'"),
        ("research-001", "perfect", "because", "perfect"),
        ("research-001", "complete", "  ", "reason must say why"),
    ):
        with pytest.raises(InputError, match=message):
            override_label(store, TAXONOMY, trace_id=trace_id, outcome=outcome, reason=reason)
    assert overrides(store) == []


def test_the_command_adds_a_set_and_puts_it_in_front_of_reviewers(store: Path, own: Path) -> None:
    runner = CliRunner()
    Store.open(store, create=True).close()
    added = ["reference", "add", str(own), "--name", "ours", "--store", str(store)]
    assert runner.invoke(main, added).output.startswith("3 traces added as ours\n3 of them have")
    practise = ["reference", "practise", "--form", "ours/practice", "--store", str(store), "--json"]
    assert json.loads(runner.invoke(main, practise).output) == {"batch_id": "practice-001", "n": 3}
    with Store.open(store) as opened:
        assert sorted(opened.batch_items("practice-001")["trace_id"]) == OWN_IDS
