"""Examinations (forms, start, further traces, decision) and practice with its lessons."""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from calibration.agreement.annotators import AgainstKey, against_key
from calibration.errors import CalibrationError, InputError, NotAllowedError
from calibration.reviewers.certification import (
    FAILED,
    PASSED,
    TOP_UP,
    Attempt,
    AttemptRule,
    ClassCount,
    ExamDecision,
    NextAttempt,
    NodeWeakness,
    PassRule,
    PracticeTrace,
    decide,
    next_attempt,
    practice_round,
    weaknesses,
)
from calibration.store import Batch, Store
from calibration.store.batches import PracticeRound
from calibration.store.certification import Certificate, Exam
from calibration.taxonomy import Taxonomy
from calibration.text import names_there
from reference_dataset.loader import ReferenceSet
from reference_dataset.records import CanonicalLabel
from reference_dataset.team import private_traces, team_reference

OWN_FORM = "own"
FEWEST, FEWEST_OF_A_CLASS = 40, 3
PRACTICE_FORM = "practice"
NO_SET = (
    "The published reference traces are labelled with other classes than those of your rubric, so "
    "there is nothing to practise on and nobody can be certified yet. Reviewers can label all the "
    "same. Once runs are adjudicated, `asr reference draft` makes a set of them, and `asr "
    "reference add` takes it, or any set with labels of your classes."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """The material of examinations: the dataset with every label, and its private traces."""

    dataset: ReferenceSet
    private: frozenset[str]

    def is_private(self, form: str) -> bool:
        """Return whether every trace of a form is private; a team's own form always is."""
        return form == OWN_FORM or set(self.dataset.forms[form]) <= self.private


def examiner(store: Path, taxonomy: Taxonomy) -> Examiner:
    """Return a team's examination material, the labels of its private sets included."""
    return Examiner(
        dataset=team_reference(store, taxonomy, to_examine=True), private=private_traces(store)
    )


def exams_under_this_tree(store: Store, reviewer_id: str) -> list[Exam]:
    """Return the examinations of a reviewer on the decision tree in force, oldest first."""
    version = store.taxonomy().version
    return [e for e in store.exams_of(reviewer_id) if e.taxonomy_version == version]


def exam_form(dataset: ReferenceSet) -> Counter[str]:
    """Return the classes of the first form to be examined by; empty if there is none."""
    listed = (ids for name, ids in dataset.forms.items() if not name.endswith(PRACTICE_FORM))
    return Counter(dataset.labels[i].outcome for i in next(filter(None, listed), ()))


def choose_form(
    store: Store, by: Examiner, reviewer_id: str, *, since: datetime | None, private_demanded: bool
) -> tuple[str, list[str]]:
    """Return a reviewer's next form and its traces, without those seen since a time."""
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
    taxonomy = store.taxonomy()
    names = [f for f in by.dataset.forms if not f.endswith(PRACTICE_FORM) and f not in used]
    for form in sorted(names, key=lambda f: (not by.is_private(f), f)):
        if private_demanded and not by.is_private(form):
            continue
        left = [i for i in by.dataset.forms[form] if i not in seen]
        if _is_enough(taxonomy, Counter(by.dataset.labels[i].outcome for i in left)):
            return form, left
    if private_demanded:
        raise NotAllowedError(
            f"this team asks for a private form and has none that you have not seen (of {FEWEST} "
            f"traces, {FEWEST_OF_A_CLASS} of each class, or more); a lead adds a set with "
            "`asr reference add FOLDER --name NAME --private`"
        )
    raise NotAllowedError(
        "you have seen too many traces of every form that is left; a lead adds a set of "
        "its own with `asr reference add FOLDER --name NAME --private`"
    )


def own_form(store: Store, by: Examiner, reviewer_id: str, seed: int) -> list[str]:
    """Return a form of the team's own adjudicated traces."""
    wanted = exam_form(by.dataset)
    drawn, there = store.draw_own_form(reviewer_id, wanted, seed)
    if few := _too_few(store.taxonomy(), there, wanted):
        raise NotAllowedError(few)
    return drawn


def no_own_form(store: Store, by: Examiner, reviewer_id: str) -> str:
    """Return why a team's own form is impossible for a person, for leads; empty if possible."""
    wanted = exam_form(by.dataset)
    seen, settled = set(store.seen_traces(reviewer_id)), store.consensus_frame()
    left = settled.loc[~settled["trace_id"].isin(seen), "outcome"]
    return _too_few(store.taxonomy(), Counter(left.tolist()), wanted)


def _too_few(taxonomy: Taxonomy, there: Mapping[str, int], wanted: Mapping[str, int]) -> str:
    if _is_enough(taxonomy, {k: min(there.get(k, 0), n) for k, n in wanted.items()}):
        return ""
    have = ", ".join(f"{there.get(c.name, 0)} {c.title}" for c in taxonomy.classes)
    return (
        f"a further attempt needs {FEWEST} adjudicated traces that its reviewer has not seen, "
        f"{FEWEST_OF_A_CLASS} of each class or more; there are {have}. A lead adjudicates "
        "more on the Adjudicate page"
    )


def _is_enough(taxonomy: Taxonomy, counts: Mapping[str, int]) -> bool:
    return sum(counts.values()) >= FEWEST and all(
        counts.get(name, 0) >= FEWEST_OF_A_CLASS for name in taxonomy.names
    )


def seed_of(*parts: object) -> int:
    """Return a reproducible seed, different for each person and attempt."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6])


def further_traces(
    store: Store, by: Examiner, form: Exam, short: Sequence[str], rule: PassRule
) -> list[str]:
    """Return further traces of the classes not shown, empty if a class has none to add."""
    # Half as many of other classes are mixed in: traces of one class would reveal the answer.
    wanted = dict.fromkeys(short, rule.top_up)
    others = [name for name in store.taxonomy().names if name not in short]
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
    """Return the traces never seen, first those not needed for later examinations."""
    seen = set(store.seen_traces(form.reviewer_id))
    private_only = store.certificate_demand().form == "private"
    forms = by.dataset.forms
    practice = {i for name in forms if name.endswith(PRACTICE_FORM) for i in forms[name]}
    rng = np.random.default_rng(seed_of("pool", form.batch_id))
    ids = sorted(set(by.dataset.labels) - seen)
    drawn = [ids[k] for k in rng.permutation(len(ids))]
    if private_only:
        drawn = [i for i in drawn if i in by.private]
    elif not form.private:
        # Private traces are kept for private forms.
        drawn = [i for i in drawn if i not in by.private]
    return sorted(drawn, key=lambda i: (i not in by.private, i not in practice))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A reviewer's certification under the taxonomy in force."""

    next: NextAttempt
    certificate: Certificate | None  # the valid one
    exam: Exam | None  # open: a form or its further traces
    practice: PracticeRound | None  # unfinished round
    last: Exam | None  # last ended examination
    private_demanded: bool


def standing(
    store: Store, reviewer_id: str, *, now: datetime, rule: AttemptRule | None = None
) -> Standing:
    """Return a reviewer's certification; `now` is UTC without a zone, as in the store."""
    exams = exams_under_this_tree(store, reviewer_id)
    rounds = store.practice_rounds(reviewer_id)
    held = store.certificate_of(reviewer_id)
    version = store.taxonomy().version
    past = [c for c in store.certificates_of(reviewer_id) if c.taxonomy_version == version]
    private = store.certificate_demand().form == "private"
    over = [e for e in exams if e.status in (PASSED, FAILED)]
    return Standing(
        next=next_attempt(
            now,
            [_attempt(e, exams) for e in exams if e.tops_up is None],
            rounds=[r.finished_at for r in rounds if r.finished_at is not None],
            allowed=store.attempts_allowed(reviewer_id),
            # An insufficient certificate does not bar its holder from earning a sufficient one.
            certified_until=max(
                (c.expires_at for c in past if c.private or not private), default=None
            ),
            rule=rule,
        ),
        certificate=held,
        exam=next((e for e in exams if e.status is None), None),
        practice=next((r for r in rounds if r.finished_at is None), None),
        last=over[-1] if over else None,
        private_demanded=private,
    )


def _attempt(form: Exam, exams: Sequence[Exam]) -> Attempt:
    """Return a form with its further traces as one attempt; it ends with the last trace."""
    whole = [e for e in exams if form.batch_id in (e.batch_id, e.tops_up)]
    over = any(e.status in (PASSED, FAILED) for e in whole)
    ends = [e.ended_at for e in whole if e.ended_at is not None]
    return Attempt(started_at=form.started_at, ended_at=max(ends) if over else None)


def start_exam(
    store: Store, by: Examiner, reviewer_id: str, *, now: datetime, rule: AttemptRule | None = None
) -> Exam:
    """Start an examination, or return the open one; private forms come first."""
    stands = standing(store, reviewer_id, now=now, rule=rule)
    if stands.exam is not None:
        return stands.exam
    if not stands.next.may:
        raise NotAllowedError(f"no examination yet: {stands.next.why}")
    form, trace_ids, seed = _form_for(store, by, reviewer_id, stands)
    rng = np.random.default_rng(seed)
    return store.start_exam(
        reviewer_id=reviewer_id,
        form=form,
        private=by.is_private(form),
        trace_ids=[trace_ids[k] for k in rng.permutation(len(trace_ids))],
        traces=[by.dataset.traces[i] for i in trace_ids if i in by.dataset.traces],
        design={"kind": "examination", "form": form, "seed": seed},
    )


def _form_for(
    store: Store, by: Examiner, reviewer_id: str, stands: Standing
) -> tuple[str, list[str], int]:
    number = 1 + sum(e.tops_up is None for e in exams_under_this_tree(store, reviewer_id))
    seed = seed_of(reviewer_id, store.taxonomy().version, number)
    if stands.next.own_form:
        return OWN_FORM, own_form(store, by, reviewer_id, seed), seed
    form, trace_ids = choose_form(
        store, by, reviewer_id, since=stands.next.counted_from,
        private_demanded=stands.private_demanded,
    )  # fmt: skip
    return form, trace_ids, seed


def no_form(store: Store, by: Examiner, reviewer_id: str, stands: Standing) -> str:
    """Return why the next examination has no form, so that no reviewer practises in vain."""
    try:
        _form_for(store, by, reviewer_id, stands)
    except NotAllowedError as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """Canonical and given class by trace, on the form and on the further traces."""

    classes: tuple[str, ...]
    form: dict[str, tuple[str, str]]
    further: dict[str, tuple[str, str]]

    def against_key(self, rule: PassRule) -> AgainstKey:
        """Compare the form with its key."""
        code = {name: k for k, name in enumerate(self.classes)}
        pairs = list(self.form.values())
        return against_key(
            np.array([[code[given]] for _, given in pairs], dtype=int).reshape(-1, 1),
            np.array([code[due] for due, _ in pairs], dtype=int),
            n_classes=len(self.classes),
            confidence_level=rule.confidence_level,
        )[0]

    def counts(self, topped_up: Collection[str]) -> list[ClassCount]:
        """Count hits by class; for topped-up classes on all their traces, else on the form."""
        found = []
        for name in self.classes:
            pairs = [*self.form.values(), *(self.further.values() if name in topped_up else ())]
            given = [g for due, g in pairs if due == name]
            found.append(ClassCount(outcome=name, hits=given.count(name), n=len(given)))
        return found


def marked(store: Store, by: Examiner, form: Exam, further: Exam | None) -> Marked:
    """Compare labels with the key; traces whose key was withdrawn are left out."""

    def pairs(exam: Exam | None) -> dict[str, tuple[str, str]]:
        if exam is None:
            return {}
        given = store.exam_labels(exam.reviewer_id, exam.batch_id)
        due = key(store, by, exam)
        return {i: (due[i], outcome) for i, outcome in given.items() if i in due}

    return Marked(classes=store.taxonomy().names, form=pairs(form), further=pairs(further))


def key(store: Store, by: Examiner, exam: Exam) -> dict[str, str]:
    """Return the canonical classes of an ended examination."""
    settled = store.exam_key(exam.reviewer_id, exam.batch_id)
    if exam.form == OWN_FORM:
        return {trace_id: outcome for trace_id, (outcome, _) in settled.items()}
    return {trace_id: label.outcome for trace_id, label in by.dataset.labels.items()}


def settle(
    store: Store,
    by: Examiner,
    reviewer_id: str,
    *,
    rule: PassRule | None = None,
    attempts: AttemptRule | None = None,
) -> None:
    """Record the results of ended examinations, and add the further traces due; idempotent."""
    rule, valid = rule or PassRule(), (attempts or AttemptRule()).valid
    for exam in exams_under_this_tree(store, reviewer_id):
        if exam.status is None and exam.ended_at is not None:
            decision, body = _decided(store, by, exam, rule)
            exam = store.record_result(
                reviewer_id=reviewer_id, batch_id=exam.batch_id, status=decision.status,
                body=body, valid=valid,
            )  # fmt: skip
        if exam.status == TOP_UP:
            _top_up(store, by, exam, rule)


def _decided(
    store: Store, by: Examiner, exam: Exam, rule: PassRule
) -> tuple[ExamDecision, dict[str, object]]:
    exams = exams_under_this_tree(store, exam.reviewer_id)
    form = next(e for e in exams if e.batch_id == (exam.tops_up or exam.batch_id))
    further = None if exam.tops_up is None else exam
    pairs = marked(store, by, form, further)
    ac1 = pairs.against_key(rule).gwet_ac
    limit = None if ac1.interval is None else ac1.interval[0]
    counts = pairs.counts(topped_up(form))
    decision = decide(limit, counts, topped_up=pairs.classes if further else (), rule=rule)
    if decision.status == TOP_UP and not further_traces(store, by, form, decision.short, rule):
        decision = decide(limit, counts, topped_up=pairs.classes, rule=rule)
    return decision, {
        "ac1_lower_limit": limit,
        "classes": {c.outcome: [c.hits, c.n] for c in decision.classes},
        "short": list(decision.short),
        "reasons": list(decision.reasons),
    }


def topped_up(form: Exam) -> tuple[str, ...]:
    """Return the classes for which a form was topped up."""
    return tuple((form.body or {}).get("short", ())) if form.status == TOP_UP else ()


def _top_up(store: Store, by: Examiner, form: Exam, rule: PassRule) -> None:
    theirs = exams_under_this_tree(store, form.reviewer_id)
    if any(e.tops_up == form.batch_id for e in theirs):
        return
    trace_ids = further_traces(store, by, form, topped_up(form), rule)
    rng = np.random.default_rng(seed_of(form.batch_id, form.reviewer_id))
    store.add_top_up(
        reviewer_id=form.reviewer_id,
        tops_up=form.batch_id,
        trace_ids=[trace_ids[k] for k in rng.permutation(len(trace_ids))],
        traces=[by.dataset.traces[i] for i in trace_ids if i in by.dataset.traces],
        # Not which classes: they would reveal the answers.
        # They come from several forms: the split furthest from training.
        design={"kind": "further traces", "form": "exam_b"},
    )


EVERYBODY = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """The reviewer's own answers beside the canonical label."""

    label: CanonicalLabel
    yours: dict[str, str]
    your_outcome: str


def lesson(
    store: Store, dataset: ReferenceSet, *, reviewer_id: str, batch_id: str
) -> Lesson | None:
    """Return the lesson of the trace that this reviewer labelled last in a practice batch.

    None before the first label, after a skip, without a canonical label, outside practice, and
    during an open examination, which may hold the same traces: nothing canonical comes first.
    """
    purpose = {batch.batch_id: batch.purpose for batch in store.batches()}.get(batch_id)
    last = store.last_label(reviewer_id, batch_id)
    if purpose != "practice" or last is None or last[1] is None:
        return None
    label = dataset.labels.get(last[0])
    if label is None or _is_examined(store, reviewer_id):
        return None
    return Lesson(label=label, yours=store.taxonomy().answers_for(last[1]), your_outcome=last[1])


def _is_examined(store: Store, reviewer_id: str) -> bool:
    exams = exams_under_this_tree(store, reviewer_id)
    return any(exam.ended_at is None for exam in exams)


def practice_score(
    store: Store, dataset: ReferenceSet, *, reviewer_id: str, batch_id: str
) -> tuple[int, int] | None:
    """Return how many traces of a practice batch were right at the first attempt, and of how many.

    None during an open examination, which may hold the same traces.
    """
    if _is_examined(store, reviewer_id):
        return None
    given = [
        label.outcome == dataset.labels[label.trace_id].outcome
        for label in store.first_labels(reviewer_id)
        if label.batch_id == batch_id and label.trace_id in dataset.labels
    ]
    return sum(given), len(given)


def add_practice(
    store: Store, dataset: ReferenceSet, *, form: str = "practice", first: str | None = None
) -> Batch:
    """Store a form of the dataset as a practice batch for all, once.

    The workflows are mixed, in the same order for everybody; `first` names one to begin with.
    """
    if not any(dataset.forms.values()):
        raise CalibrationError(NO_SET)
    trace_ids = list(dataset.forms.get(form, ()))
    if not trace_ids:
        known = names_there(form, sorted(dataset.forms))
        raise InputError(f"the dataset has no form {form!r:.80}; {known}")
    for batch in store.batches():
        everybodys = batch.purpose == "practice" and batch.reviewer_id is None
        if everybodys and batch.design.get("form") == form:
            return batch
    workflows = {trace_id: dataset.traces[trace_id].workflow for trace_id in trace_ids}
    if first is not None and first not in workflows.values():
        known = ", ".join(sorted(set(workflows.values())))
        raise InputError(f"no trace of {form!r} is of workflow {first!r}; there are {known}")
    np.random.default_rng(seed_of("practice", form)).shuffle(trace_ids)
    trace_ids.sort(key=lambda trace_id: first is not None and workflows[trace_id] != first)
    store.ingest([dataset.traces[trace_id] for trace_id in trace_ids])
    return store.add_batch(
        purpose="practice",
        trace_ids=trace_ids,
        labels_wanted=EVERYBODY,
        design={"kind": "form of the reference dataset", "form": form},
    )


def start_practice(store: Store, dataset: ReferenceSet, reviewer_id: str) -> PracticeRound:
    """Start a practice round aimed at a reviewer's errors, or return the open one."""
    # `dataset` must hold no private labels: it is shown.
    for found in store.practice_rounds(reviewer_id):
        if found.finished_at is None:
            return found
    seen = store.seen_traces(reviewer_id)
    names = [n for n in dataset.forms if n.endswith(PRACTICE_FORM)]
    ids = [i for name in names for i in dataset.forms[name] if i in dataset.labels]
    pool = [
        PracticeTrace(
            trace_id=i,
            outcome=dataset.labels[i].outcome,
            nearest_wrong=dataset.labels[i].nearest_wrong,
            seen=seen[i].timestamp() if i in seen else None,
        )
        for i in ids
    ]
    number = len(store.practice_rounds(reviewer_id))
    seed = seed_of("practice", reviewer_id, store.taxonomy().version, number)
    chosen = practice_round(
        store.taxonomy(), pool, _own_answers(store, dataset, reviewer_id),
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return store.start_practice(
        reviewer_id=reviewer_id,
        trace_ids=chosen,
        traces=[dataset.traces[i] for i in chosen],
        design={"kind": "practice round", "form": PRACTICE_FORM, "seed": seed},
    )


def weak_nodes(store: Store, dataset: ReferenceSet, reviewer_id: str) -> tuple[NodeWeakness, ...]:
    """Return a reviewer's errors at each question so far, the weakest first."""
    return weaknesses(store.taxonomy(), _own_answers(store, dataset, reviewer_id))


def _own_answers(store: Store, dataset: ReferenceSet, reviewer_id: str) -> list[tuple[str, str]]:
    """Return canonical and given class of practice traces and of ended examinations."""
    going_on = {e.batch_id for e in store.exams_of(reviewer_id) if e.status not in (PASSED, FAILED)}
    return [
        (dataset.labels[given.trace_id].outcome, given.outcome)
        for given in store.first_labels(reviewer_id)
        if given.trace_id in dataset.labels and given.batch_id not in going_on
    ]
