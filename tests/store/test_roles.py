"""Every call of the store by every role: what it may, and what is refused at the door."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import NotAllowedError
from calibration.records import ROLES, LabelDraft, Reviewer, Verdict, Workflow
from calibration.store import SavedView, TraceFilter
from calibration.store.store import Store
from tests.store.builders import ABANDONED, COMPLETE, Desk, make_desk, make_trace, token

# Of whoever holds the file, and not calls of a person.
OF_THE_HOLDER = {"open", "open_to_read", "keeper", "close", "path", "acting_as", "by_way_of",
                 "of_session"}  # fmt: skip

CALLS = sorted(
    name
    for name, _ in inspect.getmembers(Store, inspect.isfunction)
    if not name.startswith("_") and name not in OF_THE_HOLDER
)

NOT_IN_ONES_NAME = {
    "batches", "certificate_demand", "end_session", "handbook_additions", "identities",
    "is_simulated", "store_id", "production_mix", "taxonomy", "workflows",
}  # fmt: skip

# Written out, not read off the calls: whoever opens one wider has to say so here too. What is in
# neither is for leads and above.
FOR_REVIEWERS = NOT_IN_ONES_NAME | {
    # In one's own name.
    "acknowledged", "add_top_up", "change_passphrase", "draw_own_form", "last_label", "own_flags",
    "own_labels", "own_skips", "queue", "record_exposure", "record_flag", "record_label",
    "record_result", "record_skip", "record_undo", "reopen", "save_draft", "start_exam",
    "start_practice",
    # Of oneself; leads may ask about others.
    "attempts_allowed", "certificate_of", "certificates_of", "exam_key", "exam_labels",
    "exam_traces", "exams_of", "first_labels", "has_open_items", "practice_rounds", "seen_traces",
}  # fmt: skip

FOR_ADMINS = {
    "access", "add_reviewer", "audit_trail", "import_consensus", "import_labels", "link",
    "make_first_admin",
    "person_of_session", "set_certificate_demand", "set_identities", "set_passphrase",
    "set_role", "set_taxonomy", "sign_in_by_provider", "sign_in_is_configured", "store_hash",
    "take_passphrase", "unlink", "verify_sign_in", "wants_first_admin", "write_backup",
}  # fmt: skip

ANN = Reviewer(reviewer_id="ann", name="Ann")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("roles") / "s.duckdb"
    with Store.open(path, create=True) as store:
        for role in ROLES:
            store.add_reviewer(f"the {role}", role=role)
        store.add_reviewer("Ann")
        yield store


def attempt(store: Store, call: str, named: str) -> None:
    """Make a call with arguments that are no more than names; only its refusal matters."""
    parameters = inspect.signature(getattr(Store, call)).parameters.values()
    given: dict[str, Any] = {
        p.name: "none such" for p in parameters if p.name != "self" and p.default is p.empty
    }
    opened_to, oneself, _ = getattr(Store, call).opened_to
    if oneself == "draft.reviewer_id":
        given["draft"] = LabelDraft(
            client_token="t", trace_id="none", reviewer_id=named, batch_id="none", answers={}
        )
    elif oneself is not None:
        given[oneself] = named
    assert opened_to in ROLES
    getattr(store, call)(**given)


@pytest.mark.parametrize("call", CALLS)
def test_every_call_says_who_may_make_it(call: str) -> None:
    assert hasattr(getattr(Store, call), "opened_to"), f"{call}: add @open_to"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("call", CALLS)
def test_the_matrix_of_roles_and_calls(store: Store, call: str, role: str) -> None:
    _, oneself, or_lead = getattr(Store, call).opened_to
    lowest = "reviewer" if call in FOR_REVIEWERS else "admin" if call in FOR_ADMINS else "lead"
    if lowest == "reviewer":
        assert (oneself is not None) is (call not in NOT_IN_ONES_NAME)
    person = Reviewer(reviewer_id=f"the-{role}", name=f"the {role}", role=role)
    bound = store.acting_as(person)
    may = ROLES.index(role) >= ROLES.index(lowest)
    assert refused(bound, call, person.reviewer_id) is not may
    if oneself is not None:
        for_others = may and or_lead and role != "reviewer"
        assert refused(bound, call, "ann") is not for_others


def refused(store: Store, call: str, named: str) -> bool:
    try:
        attempt(store, call, named)
    except NotAllowedError:
        return True
    except Exception:  # noqa: BLE001  it got past the door with names that stand for nothing
        return False
    return False


def test_a_reviewer_is_told_what_is_not_theirs(store: Store) -> None:
    bound = store.acting_as(ANN)
    with pytest.raises(NotAllowedError, match="label_frame: this is for leads and above"):
        bound.label_frame("production-001")
    with pytest.raises(NotAllowedError, match="record_skip: only in one's own name"):
        bound.record_skip(
            client_token="1", trace_id="t", reviewer_id="the-lead", batch_id="b", reason="r"
        )


def test_whoever_holds_the_file_may_do_everything(store: Store) -> None:
    assert not any(refused(store, call, "ann") for call in ("reviewers", "batches", "label_state"))


def work_of_a_lead(desk: Desk, store: Store, me: str) -> tuple[set[str], set[str]]:
    """Make the writes that are for leads; return those done and those refused."""
    trace = desk.traces[0]
    named: dict[str, Any] = {"client_token": token(), "adjudicator": me}
    settled: dict[str, Any] = {"batch_id": desk.batch, "answers": COMPLETE, "cause": "slip"}
    verdict = Verdict(judge_id="judge", trace_id=trace, outcome="complete")
    blind: dict[str, Any] = {"client_token": token(), "answers": COMPLETE}

    def settle() -> None:
        served = store.serve_adjudication(adjudicator=me, batch_id=desk.batch, trace_ids=[trace])
        assert served is not None
        store.queue(me, served.batch_id, limit=1)
        store.record_label(desk.draft(trace, me, batch_id=served.batch_id, **blind))
        store.adjudicate(trace_id=trace, **named, **settled)

    acts: dict[str, Callable[[], object]] = {
        "ingest": lambda: store.ingest([make_trace(99)]),
        "set_workflow": lambda: store.set_workflow(Workflow(name="research", ceiling_usd=1.0)),
        "add_batch": lambda: store.add_batch(purpose="production", trace_ids=desk.traces[:2]),
        "add_verdicts": lambda: store.add_verdicts([verdict]),
        "adjudicate": settle,
        "withdraw_consensus": lambda: store.withdraw_consensus(
            trace_id=trace, **named | {"client_token": token()}
        ),
        "release_leases": lambda: store.release_leases(
            batch_id=desk.batch, reviewer_id="ann", by=me
        ),
        "decide_proposal": lambda: store.decide_proposal(
            client_token=token(), proposal_id="p", question="output", text="Say no.",
            trace_ids=[trace], status="accepted", decided_by=me,
        ),
        "allow_attempt": lambda: store.allow_attempt(
            client_token=token(), reviewer_id="ann", by=me, reason="She was ill."
        ),
        "save_view": lambda: store.save_view("mine", SavedView(chosen=TraceFilter())),
        "forget_view": lambda: store.forget_view("mine"),
    }  # fmt: skip
    found: tuple[set[str], set[str]] = set(), set()
    for name, act in acts.items():
        try:
            act()
        except NotAllowedError:
            found[1].add(name)
        else:
            found[0].add(name)
    return found


@pytest.mark.parametrize("role", ROLES)
def test_an_admin_does_all_that_a_lead_does(role: str, tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "d.duckdb", labels_wanted=2, reviewers=("Ann", "Bob"))
    me = desk.store.add_reviewer("Mo", role=role)
    for name in ("ann", "bob"):
        desk.queue(name)
        desk.label(desk.traces[0], name, answers=COMPLETE if name == "ann" else ABANDONED)
    done, refused = work_of_a_lead(desk, desk.store.acting_as(me), me.reviewer_id)
    assert (len(done), len(refused)) == ((0, 11) if role == "reviewer" else (11, 0))
    desk.store.close()
