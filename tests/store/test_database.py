import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from calibration.errors import InputError, StoreError, StoreLockedError, TaxonomyError
from calibration.store import Store
from calibration.store.database import Database
from calibration.store.schema import migrations
from calibration.taxonomy import default_taxonomy, taxonomy_from_dict
from tests.store.builders import ABANDONED, Desk, empty_store, make_desk, query


def test_a_new_store_has_the_default_taxonomy_and_every_migration_once(tmp_path: Path) -> None:
    assert [one.version for one in migrations()] == list(range(1, len(migrations()) + 1))
    path = tmp_path / "new" / "store.duckdb"
    for _ in range(2):
        with Store.open(path, create=True) as store:
            assert store.taxonomy() == default_taxonomy()
            assert query(store, "SELECT count(*) FROM taxonomy") == [(1,)]
            applied = query(store, "SELECT version, name FROM schema_migration ORDER BY version")
        assert applied == [(one.version, one.name) for one in migrations()]


def test_a_store_of_a_newer_version_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    empty_store(path).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO schema_migration VALUES (9999, 'future', now())")
    with pytest.raises(StoreError, match=r"newer version \(schema 9999\); update asr-calibration"):
        Store.open(path)
    # The refusal lets the file go.
    duckdb.connect(str(path)).close()


def test_a_missing_store_names_the_command_that_makes_one(tmp_path: Path) -> None:
    path = tmp_path / "none.duckdb"
    with pytest.raises(InputError, match=r"none\.duckdb: there is no store here; `asr import"):
        Store.open(path)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\x00" + bytes(5000)])
def test_a_file_that_is_no_database_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "blocked.duckdb"  # a name with "lock" in it is not a lock
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"blocked\.duckdb: cannot be opened") as caught:
        Store.open(path)
    assert not isinstance(caught.value, StoreLockedError)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_a_data_file_that_duckdb_would_open_in_memory_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('{"a": 1}\n')
    with pytest.raises(StoreError, match=f"{name}: cannot be opened as a store"):
        Store.open(path, create=True)
    assert path.read_text() == '{"a": 1}\n'


@pytest.mark.parametrize("name", [":memory:", "md:team", "s3:bucket", "new.jsonl"])
def test_a_store_is_a_file_whatever_its_name_means_to_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with Store.open(name, create=True) as store:
        store.add_reviewer("Ann")
    with Store.open(name) as store:
        assert [r.name for r in store.reviewers()] == ["Ann"]


def test_a_database_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE trace (mine INTEGER)")
    with pytest.raises(StoreError, match=r"other\.duckdb: is a DuckDB file but no store"):
        Store.open(path, create=True)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SHOW TABLES").fetchall() == [("trace",)]


def test_a_store_that_cannot_be_created_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be created"):
        Store.open(tmp_path / "file" / "store.duckdb", create=True)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(tmp_path)


def test_a_store_whose_creation_was_cut_off_gets_its_taxonomy(tmp_path: Path) -> None:
    Database(tmp_path / "store.duckdb", create=True).close()
    with Store.open(tmp_path / "store.duckdb") as store:
        assert store.taxonomy() == default_taxonomy()


def test_opening_with_a_contradicting_taxonomy_lets_the_file_go(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    empty_store(path).close()
    changed = default_taxonomy().to_dict() | {"workflows": {}}
    with pytest.raises(TaxonomyError, match=r"'1\.0' is taken"):
        Store.open(path, taxonomy=taxonomy_from_dict(changed))
    # Another configuration could not open a file that this process still holds.
    duckdb.connect(str(path), read_only=True).close()


HOLDER = """
import sys
from calibration.store import Store
store = Store.open(sys.argv[1], create=True)
print("open", flush=True)
sys.stdin.read()
"""


def test_a_store_that_another_process_holds_is_locked_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    command, pipe = [sys.executable, "-c", HOLDER, str(path)], subprocess.PIPE
    holder = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreLockedError, match=rf"\(process {holder.pid}\) has the store open"):
            Store.open(path)
    finally:
        holder.communicate("")
    Store.open(path).close()


WRITER = """
import sys
from itertools import count
from calibration.records import LabelDraft
from calibration.store import Store
store = Store.open(sys.argv[1])
for number in count():
    trace = store.queue("ann", sys.argv[2], limit=1).items[0].trace_id
    token = f"killed-{number}"
    store.record_label(LabelDraft(client_token=token, trace_id=trace, reviewer_id="ann",
                                  batch_id=sys.argv[2], answers={"output": "no"}))
    print(token, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_every_acknowledged_label_survives_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    desk = make_desk(path, 200)
    desk.store.close()
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), desk.batch], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    acknowledged = [writer.stdout.readline().strip() for _ in range(15)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += writer.stdout.read().split()
    writer.wait()
    writer.stdout.close()
    with Store.open(path) as store:
        assert store.acknowledged("ann", desk.batch, acknowledged) == set(acknowledged)
        done = store.queue("ann", desk.batch).done
    # One more may have been stored before it could be acknowledged.
    assert len(acknowledged) <= done <= len(acknowledged) + 1


class AbandonedRunError(BaseException):
    """Stands for the exception by which Streamlit ends a callback."""


INSERT = "INSERT INTO agent VALUES ('m', 'v', 'agent-z')"


def test_anything_raised_inside_a_write_undoes_it(store: Store) -> None:
    for error in (ValueError, KeyboardInterrupt, AbandonedRunError):
        with pytest.raises(error), store._db.write() as cursor:  # noqa: PT012
            cursor.execute(INSERT)
            raise error
    with pytest.raises(StoreError, match=r"nothing was stored \(Constraint Error"):  # noqa: PT012
        with store._db.write() as cursor:
            cursor.execute(INSERT)
            cursor.execute(INSERT.replace("-z", "-y"))
    assert query(store, "SELECT * FROM agent") == []
    store.add_reviewer("Ann")  # the lock is free again


def test_a_failing_commit_is_reported_and_not_hidden_by_the_rollback(store: Store) -> None:
    with store._db._connection.cursor() as other:
        other.begin()
        other.execute(INSERT)
        with pytest.raises(StoreError, match="nothing was stored"):  # noqa: PT012
            with store._db.write() as cursor:
                cursor.execute(INSERT)
                other.commit()
    store.add_reviewer("Ann")


def test_two_handles_on_one_file_in_one_process_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    desk = make_desk(path, 12, labels_wanted=2)
    with desk.store, Store.open(path) as other:

        def work(reviewer: str, mine: Desk) -> None:
            while left := mine.queue(reviewer):
                mine.label(left[0], reviewer, answers=ABANDONED)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, ("ann", "bob"), (desk, replace(desk, store=other))))
        assert len(desk.labelled()) == 24
        assert desk.state("ann") == desk.state("bob") == "finished"


def test_a_python_variable_never_stands_in_for_a_table(store: Store) -> None:
    nobody = pa.table({"a": [1]})
    assert nobody.num_rows == 1
    with pytest.raises(StoreError, match=r"cannot be read .*nobody does not exist"):
        query(store, "SELECT * FROM nobody")


def test_reads_go_on_while_a_write_is_open(desk: Desk) -> None:
    with desk.store._db.write() as cursor:
        cursor.execute(INSERT)
        assert len(desk.store.trace_frame()) == 5
        assert desk.store.for_review(desk.traces)
        assert desk.store.last_label("ann", desk.batch) is None
        assert query(desk.store, "SELECT count(*) FROM agent WHERE tag = 'agent-z'") == [(0,)]


def test_a_draft_can_be_rewritten_while_an_older_read_is_open(desk: Desk) -> None:
    (first, *_) = desk.queue()
    desk.save(first, answers={"output": "yes"})
    with desk.store._db.read() as reader:
        reader.begin()
        reader.execute("SELECT count(*) FROM draft").fetchall()
        desk.label(first)
        desk.undo()
        desk.save(first, answers={"output": "no"})
        assert desk.drafts() == [desk.draft(first, answers={"output": "no"})]
