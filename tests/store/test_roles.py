"""Every call of the store by every role: what it may, and what is refused at the door."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import NotAllowedError
from calibration.records import ROLES, LabelDraft, Reviewer
from calibration.store.store import Store

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
    "is_simulated", "production_mix", "taxonomy", "workflows",
}  # fmt: skip

# Written out, not read off the calls: whoever opens one wider has to say so here too. What is in
# neither is for leads and above.
FOR_REVIEWERS = NOT_IN_ONES_NAME | {
    # In one's own name.
    "acknowledged", "add_top_up", "change_passphrase", "draw_own_form", "last_label", "own_flags",
    "own_labels", "queue", "record_exposure", "record_flag", "record_label", "record_result",
    "record_skip", "record_undo", "reopen", "save_draft", "start_exam", "start_practice",
    # Of oneself; leads may ask about others.
    "attempts_allowed", "certificate_of", "certificates_of", "exam_key", "exam_labels",
    "exam_traces", "exams_of", "first_labels", "has_open_items", "practice_rounds", "seen_traces",
}  # fmt: skip

FOR_ADMINS = {
    "access", "add_reviewer", "audit_trail", "import_labels", "make_first_admin",
    "person_of_session", "set_certificate_demand", "set_identities", "set_passphrase",
    "set_role", "set_taxonomy", "sign_in_is_configured", "store_hash", "take_passphrase",
    "verify_sign_in", "wants_first_admin", "write_backup",
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
