"""Passphrases, sessions, roles: each rule keeping its word and being broken."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from argon2 import Parameters, PasswordHasher, extract_parameters

from calibration.errors import InputError, NotAllowedError, SignInError
from calibration.store import Store, generated_passphrase, sign_in
from calibration.store.sign_in import Hashes
from calibration.store.store import publish
from tests.store.builders import Clock, empty_store, query
from tests.stores import QUICK

GOOD, OTHER = "correct horse battery", "another good phrase"
HERE, THERE = "192.0.2.7", "198.51.100.9"


@pytest.fixture
def turned(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(sign_in, "utc_now", made)
    return made


@pytest.fixture
def team(store: Store) -> Store:
    """A store with an admin, a lead and a reviewer; the first two have passphrases."""
    for name, role in (("Ada", "admin"), ("Lea", "lead"), ("Rea", "reviewer")):
        store.add_reviewer(name, role=role)
    store.set_passphrase("ada", GOOD)
    store.set_passphrase("lea", OTHER)
    return store


@pytest.fixture(scope="module")
def kept_team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with empty_store(tmp_path_factory.mktemp("kept") / "team.duckdb") as store:
        store.add_reviewer("Ada", role="admin")
        yield store


def page_of_lea(team: Store) -> tuple[str, Store]:
    """Sign Lea in; return the token of her session, and a page she has open."""
    token = team.verify_sign_in("Lea", OTHER, HERE)
    page = team.of_session(token)
    assert page is not None
    return token, page


def fail(store: Store, name: str = "Ada", address: str = HERE) -> float:
    """Sign in with a wrong passphrase; return for how long no further attempt is taken."""
    with pytest.raises(SignInError) as refused:
        store.verify_sign_in(name, "not this passphrase", address)
    return refused.value.wait_s


def test_identities_are_passphrases_or_open_and_never_over_the_heads_of_people(
    store: Store,
) -> None:
    assert store.identities() == "passphrase"
    store.set_identities("open")
    assert store.identities() == "open"
    assert not store.sign_in_is_configured()
    with pytest.raises(NotAllowedError):
        store.make_first_admin("Ada", GOOD)
    store.add_reviewer("Lea", role="lead")
    store.set_passphrase("lea", GOOD)
    store.add_reviewer("Ada", role="admin")
    with pytest.raises(InputError, match="no admin has a passphrase yet"):
        store.set_identities("passphrase")
    store.set_role("lea", "admin")
    store.set_identities("passphrase")
    assert store.identities() == "passphrase"
    assert store.sign_in_is_configured()
    assert query(store, "SELECT count(*) FROM audit WHERE what = 'setting'") == [(2,)]
    with pytest.raises(InputError, match="1 of this store's people sign in with a passphrase"):
        store.set_identities("open")
    with pytest.raises(InputError, match="open, passphrase, oidc, got 'none'"):
        store.set_identities("none")


def test_a_weak_passphrase_is_refused(kept_team: Store) -> None:
    for passphrase, why in (
        ("", "12 to 200 characters, got 0"),
        ("eleven char", "12 to 200 characters, got 11"),
        ("ab " * 67, "12 to 200 characters, got 201"),
        ("abcabcabcabcabc", "5 different characters or more"),
    ):
        with pytest.raises(InputError, match=why):
            kept_team.set_passphrase("ada", passphrase)
    assert not kept_team.access()[0].has_passphrase


@pytest.mark.parametrize(
    ("passphrase", "typed"),
    [
        ("twelve chars", None),
        ("abcde" * 40, None),
        ("ünïcödé pässwörd ✓", None),
        ("pa\u0308sswo\u0308rter hier", "p\u00e4ssw\u00f6rter hier"),  # another normal form
    ],
)
def test_a_good_passphrase_lets_its_owner_in(
    store: Store, passphrase: str, typed: str | None
) -> None:
    store.add_reviewer("Ada", role="admin")
    store.set_passphrase("ada", passphrase)
    person = store.person_of_session(store.verify_sign_in("  ADA ", typed or passphrase, HERE))
    assert person is not None
    assert (person.reviewer_id, person.role) == ("ada", "admin")


def test_nobody_has_no_passphrase_and_what_is_no_hash_is_not_stored(team: Store) -> None:
    with pytest.raises(InputError, match="there is nobody called 'zoe'"):
        team.set_passphrase("zoe", GOOD)
    with pytest.raises(InputError, match="not an Argon2 hash"):
        team.store_hash("rea", GOOD)
    made = {generated_passphrase() for _ in range(50)}
    assert len(made) == 50
    assert all(QUICK.of(p) for p in made)


def test_a_hash_takes_64_mib_and_one_of_another_effort_is_renewed(team: Store) -> None:
    assert extract_parameters(Store.hashes.of_nobody).memory_cost == 64 * 1024
    team.hashes = Hashes(PasswordHasher(time_cost=2, memory_cost=64, parallelism=1))
    team.verify_sign_in("Ada", GOOD, HERE)
    hashes = dict(query(team, "SELECT reviewer_id, hash FROM credential"))
    assert [extract_parameters(hashes[who]).time_cost for who in ("ada", "lea")] == [2, 1]
    assert team.verify_sign_in("Ada", GOOD, HERE)


def test_wrong_and_unknown_are_told_in_the_same_words(team: Store) -> None:
    said = set()
    for name, passphrase in (("Ada", OTHER), ("Nobody", GOOD), ("Rea", GOOD), ("", ""),
                             ("Ada", "x" * 5_000)):  # fmt: skip
        with pytest.raises(SignInError) as refused:
            team.verify_sign_in(name, passphrase, HERE)
        said.add(str(refused.value))
    assert said == {"This name and passphrase do not belong together."}


def test_an_unknown_name_takes_as_long_as_a_known_one(team: Store) -> None:
    """As many passphrases are hashed for either, with the same effort."""
    looked_at: list[Parameters] = []

    class Counted(Hashes):
        def verified(self, hash: str, passphrase: str) -> bool:
            looked_at.append(extract_parameters(hash))
            return super().verified(hash, passphrase)

    team.hashes = Counted(PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))
    fail(team, "Ada", THERE)
    fail(team, "Nobody", "203.0.113.7")
    known, unknown = looked_at
    assert known == unknown


def test_a_name_that_is_nobodys_is_made_to_wait_and_not_written_down(
    team: Store, turned: Clock
) -> None:
    assert [fail(team, "my secret passphrase") for _ in range(5)] == [0, 0, 0, 0, 900]
    assert "secret" not in str(query(team, "SELECT * FROM sign_in"))


def test_the_fifth_wrong_passphrase_makes_wait_and_the_wait_ends(
    team: Store, turned: Clock
) -> None:
    assert [fail(team) for _ in range(4)] == [0, 0, 0, 0]
    assert fail(team) == 15 * 60
    with pytest.raises(SignInError, match=r"Too many attempts\. Try again in 15 minutes\."):
        team.verify_sign_in("Ada", GOOD, HERE)  # right, and not looked at
    # Who is elsewhere, or somebody else, need not wait.
    assert team.verify_sign_in("Ada", GOOD, THERE)
    assert team.verify_sign_in("Lea", OTHER, HERE)
    turned.forward(minutes=14, seconds=59)
    with pytest.raises(SignInError, match=r"Try again in 1 minute\."):
        team.verify_sign_in("Ada", GOOD, HERE)
    turned.forward(seconds=1)
    assert team.verify_sign_in("Ada", GOOD, HERE)
    assert fail(team) == 0  # after a success the count begins anew


def test_the_wait_grows(team: Store, turned: Clock) -> None:
    for _ in range(5):
        fail(team)
    waits = []
    for _ in range(6):
        turned.forward(hours=5)
        waits.append(fail(team) / 60)
    # A day later the first ones no longer count.
    assert waits[:4] == [30, 60, 120, 240]


def test_the_wait_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with empty_store(path) as store:
        store.add_reviewer("Ada", role="admin")
        store.set_passphrase("ada", GOOD)
        for _ in range(5):
            fail(store)
    with Store.open(path) as store, pytest.raises(SignInError, match="Too many attempts"):
        store.verify_sign_in("Ada", GOOD, HERE)


def test_attempts_at_the_same_time_are_all_counted(team: Store) -> None:
    def attempt(_number: int) -> str:
        with pytest.raises(SignInError) as refused:
            team.verify_sign_in("Ada", "not this passphrase", HERE)
        return str(refused.value)

    with ThreadPoolExecutor(20) as pool:
        said = list(pool.map(attempt, range(20)))
    assert sum(words.startswith("Too many") for words in said) == 15


def test_one_address_does_not_try_many_names(
    team: Store, turned: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibration.store.sign_in.FREE_OF_ADDRESS", 6)
    assert [fail(team, f"name {k}", "2001:db8::1") for k in range(6)][-1] == 900
    with pytest.raises(SignInError, match="Too many"):
        team.verify_sign_in("Ada", GOOD, "2001:db8::2")  # the same network
    assert team.verify_sign_in("Ada", GOOD, "2001:db8:0:1::2")


def test_many_addresses_do_not_try_one_name_nor_lock_its_owner_out(
    team: Store, turned: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibration.store.sign_in.FREE_OF_NAME", 6)
    assert team.verify_sign_in("Ada", GOOD, HERE)
    for k in range(6):
        fail(team, "Ada", f"203.0.113.{k}")
    with pytest.raises(SignInError, match="Too many"):
        team.verify_sign_in("Ada", GOOD, THERE)
    assert team.verify_sign_in("Ada", GOOD, HERE)


def test_a_session_ends_when_it_is_not_used_and_an_open_page_with_it(
    team: Store, turned: Clock
) -> None:
    token, page = page_of_lea(team)
    for _ in range(2):  # each use moves its end
        turned.forward(hours=11, minutes=59)
        assert team.person_of_session(token) is not None
    turned.forward(hours=12)
    assert team.person_of_session(token) is None
    with pytest.raises(NotAllowedError, match="your session has ended"):
        page.batches()


def test_a_session_ends_after_a_week_whatever_happens(team: Store, turned: Clock) -> None:
    token = team.verify_sign_in("Lea", OTHER, HERE)
    for hours in [11] * 15 + [2]:  # one hour less than a week
        turned.forward(hours=hours)
        assert team.person_of_session(token) is not None
    turned.forward(hours=1)
    assert team.person_of_session(token) is None


def test_signing_out_ends_this_session_and_no_other_and_no_token_is_nobody(team: Store) -> None:
    one, other = (team.verify_sign_in("Lea", OTHER, HERE) for _ in range(2))
    team.end_session(one)
    for token in (one, "", "x", "ada", "é" * 40):
        assert team.person_of_session(token) is None
        assert team.of_session(token) is None
    assert team.person_of_session(other) is not None


@pytest.mark.parametrize("by", ["new passphrase", "taken"])
def test_sessions_end_with_the_passphrase_and_an_open_page_can_no_more(
    team: Store, by: str
) -> None:
    token, page = page_of_lea(team)
    assert page.trace_frame().empty
    if by == "taken":
        team.take_passphrase("lea")
    else:
        team.set_passphrase("lea", GOOD)
    assert team.person_of_session(token) is None
    with pytest.raises(NotAllowedError, match="your session has ended; sign in again"):
        page.trace_frame()
    if by == "taken":
        fail(team, "Lea")


def test_a_changed_role_holds_for_an_open_page_too(team: Store) -> None:
    token, page = page_of_lea(team)
    team.set_role("lea", "reviewer")
    with pytest.raises(NotAllowedError):
        page.trace_frame()
    again = team.of_session(token)
    assert again is not None
    assert again.actor is not None
    assert again.actor.role == "reviewer"


def test_one_changes_ones_own_passphrase_knowing_the_old_one(team: Store) -> None:
    before, page = page_of_lea(team)
    with pytest.raises(SignInError):
        page.change_passphrase("lea", "not this one", GOOD, HERE)
    with pytest.raises(NotAllowedError, match="only in one's own name"):
        page.change_passphrase("ada", GOOD, OTHER, HERE)
    token = page.change_passphrase("lea", OTHER, GOOD, HERE)
    assert team.person_of_session(before) is None
    assert team.person_of_session(token) is not None
    assert team.verify_sign_in("Lea", GOOD, HERE)


def test_the_first_admin_is_made_once(store: Store) -> None:
    assert store.wants_first_admin()
    with pytest.raises(InputError, match="12 to 200"):
        store.make_first_admin("Ada", "short")
    assert store.reviewers() == []
    token = store.make_first_admin("Ada", GOOD)
    person = store.person_of_session(token)
    assert person is not None
    assert person.role == "admin"
    assert not store.wants_first_admin()
    with pytest.raises(NotAllowedError, match="has its admins already"):
        store.make_first_admin("Eve", OTHER)
    assert [p.name for p in store.reviewers()] == ["Ada"]


def test_the_last_admin_who_can_sign_in_stays_one(team: Store) -> None:
    team.add_reviewer("Abe", role="admin")  # without a passphrase
    for act in (lambda: team.set_role("ada", "lead"), lambda: team.take_passphrase("ada")):
        with pytest.raises(NotAllowedError, match="ada is the only admin"):
            act()
    assert team.set_role("abe", "reviewer").role == "reviewer"
    team.set_role("lea", "admin")
    assert team.set_role("ada", "lead").role == "lead"
    assert query(team, "SELECT count(*) FROM audit WHERE what = 'role'") == [(3,)]
    with pytest.raises(InputError, match="role must be one of"):
        team.set_role("rea", "boss")
    with pytest.raises(InputError, match="there is nobody"):
        team.set_role("zoe", "lead")


def test_people_are_listed_with_how_they_come_in(team: Store, turned: Clock) -> None:
    team.verify_sign_in("Lea", OTHER, HERE)
    fail(team, "Ada")
    listed = [(a.person.name, a.has_passphrase, a.last_sign_in) for a in team.access()]
    assert listed == [("Ada", True, None), ("Lea", True, turned.now), ("Rea", False, None)]


def test_nothing_secret_is_stored_as_it_is_or_reaches_the_snapshot(team: Store) -> None:
    token = team.verify_sign_in("Ada", GOOD, HERE)
    ((hash,),) = query(team, "SELECT hash FROM credential WHERE reviewer_id = 'ada'")
    ((digest,),) = query(team, "SELECT token_hash FROM session")
    everything = str([query(team, f"SELECT * FROM {t}") for t in ("credential", "session",
                                                                  "sign_in", "audit")])  # fmt: skip
    assert hash.startswith("$argon2id$")
    assert GOOD not in everything
    assert token not in everything
    copy = publish(team._db).read_bytes()
    team.close()
    kept = team.path.read_bytes()
    for secret in (hash, digest, HERE):
        assert secret.encode() in kept
        assert secret.encode() not in copy
    assert b"Rea" in copy
