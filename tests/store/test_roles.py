"""Every call of the store by every role: what it may, and what is refused at the door."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import CalibrationError, NotAllowedError
from calibration.records import ROLES, LabelDraft, Reviewer
from calibration.store.store import Store

# Of whoever holds the file, and not calls of a person.
OF_THE_HOLDER = {"open", "open_to_read", "keeper", "close", "path", "acting_as", "of_session"}
CALLS = sorted(
    name
    for name, _ in inspect.getmembers(Store, inspect.isfunction)
    if not name.startswith("_") and name not in OF_THE_HOLDER
)
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
    parameters = inspect.signature(getattr(Store, call)).parameters
    given: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if name == "self" or parameter.default is not inspect.Parameter.empty:
            continue
        given[name] = "none such"
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
    lowest, oneself, or_lead = getattr(Store, call).opened_to
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
    except (CalibrationError, AttributeError, TypeError, ValueError, Exception):  # noqa: BLE001
        return False  # it got past the door with names that stand for nothing
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
