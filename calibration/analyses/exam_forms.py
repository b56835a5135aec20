"""What an examination is made of: the form, and the traces that top it up."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from calibration.errors import NotAllowedError
from calibration.records import OUTCOMES
from calibration.reviewing.certification import PassRule
from calibration.store import Store
from calibration.store.certification import Exam
from calibration.taxonomy import Taxonomy
from reference_dataset.loader import ReferenceSet
from reference_dataset.team import private_traces, team_reference

OWN_FORM = "own"
FEWEST, FEWEST_OF_A_CLASS = 40, 3
PRACTICE_FORM = "practice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """What examinations are made of: the dataset with every label, and which traces are private."""

    dataset: ReferenceSet
    private: frozenset[str]

    def is_private(self, form: str) -> bool:
        """Return whether every trace of a form is private; a form of our own always is."""
        return form == OWN_FORM or set(self.dataset.forms[form]) <= self.private


def examiner(store: Path, taxonomy: Taxonomy) -> Examiner:
    """Read what a team examines by, the labels of its private sets included."""
    return Examiner(
        dataset=team_reference(store, taxonomy, to_examine=True), private=private_traces(store)
    )


def exams_under_this_tree(store: Store, reviewer_id: str) -> list[Exam]:
    """Return the examinations of a reviewer on the decision tree in force, oldest first."""
    version = store.taxonomy().version
    return [e for e in store.exams_of(reviewer_id) if e.taxonomy_version == version]


def choose_form(
    store: Store, by: Examiner, reviewer_id: str, *, since: datetime | None, private_demanded: bool
) -> tuple[str, list[str]]:
    """Return the next form of a reviewer and its traces, without those seen since a time.

    Raises
    ------
    NotAllowedError
        If there is none; the message says what a lead can do.
    """
    used = {
        e.form
        for e in exams_under_this_tree(store, reviewer_id)
        if since is None or e.started_at >= since
    }
    seen = {
        trace_id
        for trace_id, at in store.seen_traces(reviewer_id).items()
        if since is None or at >= since
    }
    names = [f for f in by.dataset.forms if not f.endswith(PRACTICE_FORM) and f not in used]
    for form in sorted(names, key=lambda f: (not by.is_private(f), f)):
        if private_demanded and not by.is_private(form):
            continue
        left = [i for i in by.dataset.forms[form] if i not in seen]
        if _is_enough(Counter(by.dataset.labels[i].outcome for i in left)):
            return form, left
    if private_demanded:
        raise NotAllowedError(
            f"this team asks for a private form and has none that you have not seen (of {FEWEST} "
            f"traces, {FEWEST_OF_A_CLASS} of each class, or more); a lead adds a set with "
            "`asr reference add FOLDER --name NAME --private`"
        )
    raise NotAllowedError(
        "there is no form left of which you have not seen too many traces; a lead adds a set of "
        "its own with `asr reference add FOLDER --name NAME --private`"
    )


def own_form(store: Store, by: Examiner, reviewer_id: str, seed: int) -> list[str]:
    """Return a form made of the team's own adjudicated traces.

    Raises
    ------
    NotAllowedError
        If there are too few that the reviewer has not seen.
    """
    labels = by.dataset.labels
    wanted = Counter(labels[i].outcome for i in by.dataset.forms["exam_a"])
    drawn, there = store.draw_own_form(reviewer_id, wanted, seed)
    if few := _too_few(store.taxonomy(), there, wanted):
        raise NotAllowedError(few)
    return drawn


def no_own_form(store: Store, by: Examiner, reviewer_id: str) -> str:
    """Return why there is no form of the team's own traces for a person; empty: there is one.

    For leads, who decide on a further attempt; nobody draws the traces of somebody else.
    """
    labels = by.dataset.labels
    wanted = Counter(labels[i].outcome for i in by.dataset.forms["exam_a"])
    seen, settled = set(store.seen_traces(reviewer_id)), store.consensus_frame()
    left = settled.loc[~settled["trace_id"].isin(seen), "outcome"]
    return _too_few(store.taxonomy(), Counter(left.tolist()), wanted)


def _too_few(taxonomy: Taxonomy, there: Mapping[str, int], wanted: Mapping[str, int]) -> str:
    if _is_enough({k: min(there.get(k, 0), n) for k, n in wanted.items()}):
        return ""
    have = ", ".join(f"{there.get(c.name, 0)} {c.title}" for c in taxonomy.classes)
    return (
        f"a further attempt needs {FEWEST} adjudicated traces that its reviewer has not seen, "
        f"{FEWEST_OF_A_CLASS} of each class or more; there are {have}. A lead adjudicates "
        "more on the Adjudicate page"
    )


def _is_enough(counts: Mapping[str, int]) -> bool:
    return sum(counts.values()) >= FEWEST and all(
        counts.get(name, 0) >= FEWEST_OF_A_CLASS for name in OUTCOMES
    )


def seed_of(*parts: object) -> int:
    """Return a seed that is another one for each person and attempt, and the same tomorrow."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6])


def further_traces(
    store: Store, by: Examiner, form: Exam, short: Sequence[str], rule: PassRule
) -> list[str]:
    """Return further traces of the classes not shown, with half as many of the others among them.

    Eight traces of one class would tell their answer. Empty when no class can be topped up.
    """
    wanted = dict.fromkeys(short, rule.top_up)
    others = [name for name in OUTCOMES if name not in short]
    veils = -(-rule.top_up * len(short) // 2)
    for k in range(veils if others else 0):
        wanted[others[k % len(others)]] = wanted.get(others[k % len(others)], 0) + 1
    if form.form == OWN_FORM:
        drawn, there = store.draw_own_form(form.reviewer_id, wanted, seed_of(form.batch_id))
        return drawn if all(there[name] for name in short) else []
    pool = _pool(store, by, form)
    found: dict[str, list[str]] = {name: [] for name in wanted}
    for trace_id in pool:
        outcome = by.dataset.labels[trace_id].outcome
        if outcome in found and len(found[outcome]) < wanted[outcome]:
            found[outcome].append(trace_id)
    return [i for ids in found.values() for i in ids] if all(found[name] for name in short) else []


def _pool(store: Store, by: Examiner, form: Exam) -> list[str]:
    """Return the traces never seen, those first that cost no later examination."""
    seen = set(store.seen_traces(form.reviewer_id))
    private_only = store.certificate_demand().form == "private"
    practice = set(by.dataset.forms[PRACTICE_FORM])
    rng = np.random.default_rng(seed_of("pool", form.batch_id))
    ids = sorted(set(by.dataset.labels) - seen)
    drawn = [ids[k] for k in rng.permutation(len(ids))]
    if private_only:
        drawn = [i for i in drawn if i in by.private]
    elif not form.private:
        # Private traces are kept for private forms.
        drawn = [i for i in drawn if i not in by.private]
    return sorted(drawn, key=lambda i: (i not in by.private, i not in practice))
