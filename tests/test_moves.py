"""What counts as moved only."""

import subprocess
from pathlib import Path

import pytest

from tests.moves import differences, main, renames_of

ONE = '''"""Says what it is."""

import os

LIMIT = 3
Row = dict[str, int]


def first(a: int) -> int:
    """Return more."""
    import sys

    return helpers.add(a, LIMIT)


class Box:
    """Holds."""

    size = 1

    def open(self) -> None:
        self.lid = first(1)
'''

TWO = "Row = dict[str, int]\n\n\ndef second():\n    return 2\n"


def test_what_stands_in_another_file_has_only_moved() -> None:
    start, rest = ONE.split("def first")
    first, box = rest.split("class Box")
    merged = '"""Other words."""\n' + TWO + "\nLIMIT = 3\n\nclass Box" + box
    moved = "from x import y\n\ndef first" + first.replace("    import sys\n", "")
    assert "LIMIT = 3" in start
    assert differences([ONE, TWO], [merged, moved]) == []


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("LIMIT)", "4)", ["changed  first"]),
        ("Return more", "Return less", ["changed  first"]),
        ("self.lid", "self.top", ["changed  Box.open"]),
        ("size = 1", "size = 2", ["changed  Box"]),
        ("def open", "def shut", ["changed  Box", "gone     Box.open", "new      Box.shut"]),
        ("LIMIT = 3", "LIMIT = 4", ["gone     LIMIT = 3", "new      LIMIT = 4"]),
        ("class Box:", "class Box(Row):", ["changed  Box"]),
    ],
)
def test_what_has_changed_is_named(old: str, new: str, found: list[str]) -> None:
    assert differences([ONE], [ONE.replace(old, new)]) == found


def test_a_copy_is_no_move() -> None:
    assert differences([TWO], [TWO, TWO]) == ["new      second"]
    assert differences([TWO, TWO, TWO], [TWO]) == ["gone     second (2 times)"]


def test_renamed_names_are_the_same() -> None:
    renames = {"first": "initial", "Box": "Crate", "lid": "cover", "a": "number"}
    head = (
        ONE.replace("first", "initial").replace("Box", "Crate").replace("lid", "cover")
        .replace("(a: int", "(number: int").replace("(a, ", "(number, ")
    )  # fmt: skip
    assert differences([ONE], [head], renames) == []
    assert differences([ONE], [head]) != []


@pytest.mark.parametrize(
    ("old", "new", "becomes"),
    [
        ("helpers.add", "add", "add("),
        ("helpers.*", "*", "add("),
        ("helpers.*", "sums.*", "sums.add("),
        ("helpers.add", "sums.plus", "sums.plus("),
        ("helpers", "sums", "sums.add("),
    ],
)
def test_what_is_used_of_a_module_may_lose_or_change_its_prefix(
    old: str, new: str, becomes: str
) -> None:
    assert differences([ONE], [ONE.replace("helpers.add(", becomes)], {old: new}) == []


def test_keywords_and_global_names_are_renamed_too() -> None:
    base = "def f():\n    global old\n    g(old=old, text='old')\n"
    head = "def f():\n    global new\n    g(new=new, text='old')\n"
    assert differences([base], [head], {"old": "new"}) == []


def test_blocks_of_imports_alone_are_no_statements() -> None:
    assert differences([TWO], ["if TYPE_CHECKING:\n    import x\n\n" + TWO]) == []


def test_names_come_from_files_too_and_contradictions_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "names"
    file.write_text("# why\nold new\n\nm.* *\n")
    assert renames_of(["a=b"], [file]) == {"a": "b", "old": "new", "m.*": "*"}
    with pytest.raises(SystemExit, match="old is renamed twice"):
        renames_of(["old=other"], [file])
    with pytest.raises(SystemExit, match="no old and new name"):
        renames_of(["old"], [])


def test_the_command_compares_a_revision_with_another_or_the_work_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "calibration").mkdir()
    (tmp_path / "calibration" / "one.py").write_text(ONE)
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    (tmp_path / "calibration" / "one.py").rename(tmp_path / "calibration" / "two.py")
    assert main(["HEAD"], tmp_path) == 0
    (tmp_path / "calibration" / "two.py").write_text(ONE.replace("Box", "Crate"))
    assert main(["HEAD", "--renamed", "Box=Crate"], tmp_path) == 0
    assert capsys.readouterr().out == "Code has only moved.\n" * 2
    assert main(["HEAD"], tmp_path) == 1
    assert "gone     Box\n" in capsys.readouterr().out
    git("add", ".")
    git("commit", "-m", "two")
    assert main(["HEAD~1", "HEAD"], tmp_path) == 1
    assert main(["HEAD"], tmp_path) == 0
