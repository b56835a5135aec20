import tomllib
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.errors import TaxonomyError
from calibration.records import Workflow
from calibration.taxonomy import Node, Taxonomy, default_taxonomy, load_taxonomy, taxonomy_from_dict
from tests.classes import OUTCOMES

DEFAULT_TOML = files("calibration").joinpath("taxonomy.toml").read_text(encoding="utf-8")
PATHS = {
    "abandoned": {"output": "no"},
    "hallucinated": {"output": "yes", "fabrication": "yes"},
    "complete": {"output": "yes", "fabrication": "no", "all_subgoals": "yes"},
    "partial_minus": {
        "output": "yes", "fabrication": "no", "all_subgoals": "no", "material_error": "yes",
    },
    "partial_plus": {
        "output": "yes", "fabrication": "no", "all_subgoals": "no", "material_error": "no",
    },
}  # fmt: skip


def changed(node_id: str, **changes: str) -> Taxonomy:
    """Return the default taxonomy with one node changed."""
    taxonomy = default_taxonomy()
    nodes = tuple(replace(n, **changes) if n.id == node_id else n for n in taxonomy.nodes)
    return replace(taxonomy, nodes=nodes)


def with_class(which: str, **changes: Any) -> Taxonomy:
    """Return the default taxonomy with one class changed."""
    taxonomy = default_taxonomy()
    classes = tuple(replace(c, **changes) if c.name == which else c for c in taxonomy.classes)
    return replace(taxonomy, classes=classes)


def test_the_default_tree_reaches_each_class_once_with_the_weights_of_the_method() -> None:
    targets = [t for node in default_taxonomy().nodes for t in (node.yes, node.no)]
    assert sorted(t for t in targets if t in OUTCOMES) == sorted(OUTCOMES)
    assert default_taxonomy().credit == {
        "complete": 1.0, "partial_plus": 0.4, "partial_minus": 0.0,
        "hallucinated": 0.0, "abandoned": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(("outcome", "answers"), PATHS.items())
def test_each_path_derives_its_class_and_a_shorter_one_names_the_open_question(
    outcome: str, answers: dict[str, str]
) -> None:
    taxonomy = default_taxonomy()
    assert taxonomy.outcome(answers) == outcome
    assert taxonomy.outcome(dict(reversed(answers.items()))) == outcome
    assert taxonomy.answers_for(outcome) == answers
    for length, question in enumerate(answers):
        with pytest.raises(TaxonomyError, match=question):
            taxonomy.outcome(dict(list(answers.items())[:length]))


def test_answers_that_lead_nowhere_are_refused_by_name() -> None:
    taxonomy = default_taxonomy()
    with pytest.raises(TaxonomyError, match="'perfect'"):
        taxonomy.answers_for("perfect")
    for answer in ("", "YES", "maybe", "true", " yes"):
        with pytest.raises(TaxonomyError, match=r"'output' needs the answer yes or no"):
            taxonomy.outcome({"output": answer})
    for extra in ("all_subgoals", "unheard_of"):
        with pytest.raises(TaxonomyError, match=f"'{extra}' is not on the path"):
            taxonomy.outcome({"output": "no", extra: "yes"})


def tree(*nodes: tuple[str, str, str]) -> Taxonomy:
    """Return the default taxonomy with other nodes: a name and where yes and no lead."""
    made = tuple(Node(id=name, question="?", yes=yes, no=no) for name, yes, no in nodes)
    return replace(default_taxonomy(), nodes=made)


BROKEN_TREES: list[tuple[Callable[[], Taxonomy], str]] = [
    (lambda: changed("output", no="fabrication"), "'fabrication' is reached twice"),
    (lambda: changed("material_error", no="complete"), "'material_error' reaches .*'complete'"),
    (lambda: changed("output", yes="output"), "'output' is reached twice"),
    (lambda: changed("output", yes="nowhere"), "'output': yes leads to unknown 'nowhere'"),
    (lambda: changed("fabrication", id="output"), "'output' is declared twice"),
    (lambda: changed("fabrication", id="complete"), "'complete' is .*named like a class"),
    (lambda: changed("output", evidence_on="maybe"), "'output': evidence_on"),
    (lambda: tree(), "no node"),
    (lambda: tree(("a", "complete", "b"), ("b", "abandoned", "a")), "'a' is reached twice"),
    (lambda: tree(*CHAIN, ("island", "a", "complete")), "'island' cannot be reached"),
    (lambda: tree(*CHAIN), "no node leads to class 'abandoned'"),
]
CHAIN: list[tuple[str, str, str]] = [
    ("a", OUTCOMES[0], "b"),
    ("b", OUTCOMES[1], "c"),
    ("c", OUTCOMES[2], OUTCOMES[3]),
]


@pytest.mark.parametrize(("build", "message"), BROKEN_TREES)
def test_a_broken_tree_is_refused_with_the_name_of_the_node(
    build: Callable[[], Taxonomy], message: str
) -> None:
    with pytest.raises(TaxonomyError, match=message):
        build()


def test_values_that_are_none_are_refused_by_class_and_workflow() -> None:
    credits: list[Any] = [-0.1, 1.1, float("nan"), float("inf"), "0.4", True, None]
    for credit in credits:
        with pytest.raises(TaxonomyError, match=r"'partial_plus': credit must be in \[0, 1\]"):
            with_class("partial_plus", credit=credit)
    ceilings: list[Any] = [0, -1.0, float("nan"), float("inf"), "2.00", True]
    for ceiling in ceilings:
        with pytest.raises(TaxonomyError, match="'research': ceiling_usd must be a positive amo"):
            replace(default_taxonomy(), workflows=(Workflow(name="research", ceiling_usd=ceiling),))
    with pytest.raises(TaxonomyError, match="version"):
        replace(default_taxonomy(), version=" ")


def test_classes_that_do_not_fit_the_tree_or_each_other_are_refused_by_name() -> None:
    taxonomy = default_taxonomy()
    with pytest.raises(TaxonomyError, match="leads to unknown 'abandoned'"):
        replace(taxonomy, classes=taxonomy.classes[:-1])
    with pytest.raises(TaxonomyError, match="leads to unknown 'complete'"):
        with_class("complete", name="perfect")
    for name in ("", "Done", "no verdict", "no_verdict", "yes", "ä", "a" * 41, "=1"):
        with pytest.raises(TaxonomyError, match="a name is 1 to 40 lower-case letters"):
            with_class("complete", name=name)
    extra = tuple(replace(taxonomy.classes[0], name=f"more_{k}") for k in range(5))
    with pytest.raises(TaxonomyError, match="a rubric has 2 to 9 classes, got 10"):
        replace(taxonomy, classes=(*taxonomy.classes, *extra))
    with pytest.raises(TaxonomyError, match="'complete' is declared twice"):
        replace(taxonomy, classes=(*taxonomy.classes, taxonomy.classes[0]))


def test_a_fork_with_other_weights_and_ceilings_loads(tmp_path: Path) -> None:
    fork = tmp_path / "fork.toml"
    text = DEFAULT_TOML.replace("credit = 0.4", "credit = 0.25")
    fork.write_text(text.replace("ceiling_usd = 2.00", "ceiling_usd = 3.50"), encoding="utf-8")
    taxonomy = load_taxonomy(fork)
    assert taxonomy.credit["partial_plus"] == 0.25
    assert {w.name: w.ceiling_usd for w in taxonomy.workflows}["research"] == 3.5
    fork.write_text(DEFAULT_TOML, encoding="utf-8-sig")  # with a byte order mark
    assert load_taxonomy(fork) == default_taxonomy()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('version = "1.0"', "", "'version' is missing"),
        ("[[nodes]]", "[[knots]]", "'nodes' is missing"),
        ("[[classes]]", "[[sorts]]", "'classes' is missing"),
        ('question = "Did the agent deliver any output for the task?"', "", "'output'.*'question'"),
        ("credit = 0.4", "", "'partial_plus'.*'credit' is missing"),
        ('no = "abandoned"', 'nope = "abandoned"', "'output' has an unknown key 'nope'"),
        ('no = "abandoned"', 'no = ["abandoned"]', "'output': no must be a text"),
        ('title = "Completed"', "title = 1", "'complete': title must be a text"),
        ("ceiling_usd = 2.00", "ceiling_usd = -2.00", "'research': ceiling_usd"),
        ("ceiling_usd = 2.00", "ceiling = 2.00", "ceiling"),
        ("[[nodes]]", "[[nodes", "is not TOML"),
        *(
            ("ceiling_usd = 2.00", f"ceiling_usd = 2.00\n{line}", f"workflow 'research'{message}")
            for line, message in (
                ("credit = 0.3", ": credit must be a table, got 0.3"),
                ('credit = "all"', ": credit must be a table, got 'all'"),
                ("credit = { won = 0.3 }", ": credit names the unknown class 'won'; the classes"),
                (
                    "credit = { partial_plus = 1.3 }",
                    r": credit of 'partial_plus' must be in \[0, 1",
                ),
                (
                    "credit = { partial_plus = nan }",
                    r": credit of 'partial_plus' must be in \[0, 1",
                ),
                ("credit = { partial_plus = true }", r".*must be in \[0, 1\], got True"),
                ("credit = { partial_plus = [1] }", r".*must be in \[0, 1\], got \[1\]"),
                ("credits = { partial_plus = 0.3 }", " has an unknown key 'credits'; it may have"),
                ('"a\\u001bb" = 1', " has an unknown key"),
            )
        ),
        ('version = "1.0"', 'version = "1.0"\nname = "x"', "the file has an unknown key 'name'"),
        ('version = "1.0"', "version = [1]", "version must be a text"),
        ("[workflows.research]", "[[workflows.research]]", "workflow 'research' must be a table"),
        ("credit = 0.4", "credit = " + "9" * 5_000, "TOML .an integer of more than 64 bits.$"),
    ],
)
def test_a_broken_file_is_refused_with_its_path_and_what_is_wrong(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in DEFAULT_TOML
    fork = tmp_path / "fork.toml"
    fork.write_text(DEFAULT_TOML.replace(old, new), encoding="utf-8")
    with pytest.raises(TaxonomyError, match=f"fork.toml: .*{message}"):
        load_taxonomy(fork)


def test_what_is_no_file_of_this_shape_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00\x01")
    for name, says in (
        ("binary.toml", "is not UTF-8"),
        ("none.toml", "cannot be read"),
        ("", "be r"),
    ):
        with pytest.raises(TaxonomyError, match=says):
            load_taxonomy(tmp_path / name)
    with pytest.raises(TaxonomyError, match="somewhere"):
        taxonomy_from_dict({"version": "1", "classes": 3, "nodes": []}, where="somewhere")


def variants() -> list[Taxonomy]:
    base = default_taxonomy()
    first, second = base.workflows[0], base.workflows[1:]
    return [
        base,
        replace(base, version="1.1"),
        with_class("complete", credit=0.9),
        with_class("complete", title="Done"),
        with_class("complete", meaning="Otherwise."),
        with_class("complete", flag="good"),
        replace(base, own_credit={base.workflows[0].name: {"partial_plus": 0.3}}),
        replace(base, own_credit={base.workflows[0].name: {"partial_plus": 0.2}}),
        replace(base, own_credit={base.workflows[1].name: {"partial_plus": 0.3}}),
        changed("output", question="Is there output?"),
        changed("output", rule="None."),
        changed("output", evidence_on="no"),
        changed("output", evidence_on="yes"),
        changed("material_error", yes="partial_plus", no="partial_minus"),
        replace(base, workflows=(replace(first, ceiling_usd=9.0), *second)),
        replace(base, workflows=(replace(first, ceiling_usd=None), *second)),
        replace(base, workflows=(replace(first, unit="page"), *second)),
        replace(base, workflows=second),
    ]


def test_the_fingerprint_changes_with_everything_that_can_move_a_number_or_an_answer() -> None:
    fingerprints = [taxonomy.fingerprint for taxonomy in variants()]
    assert len(set(fingerprints)) == len(fingerprints)
    for taxonomy in variants():
        again = taxonomy_from_dict(taxonomy.to_dict())
        assert (again, again.fingerprint) == (taxonomy, taxonomy.fingerprint)


@st.composite
def trees(draw: st.DrawFn) -> tuple[Node, ...]:
    """Draw a binary tree whose five leaves are the classes, its nodes in any order."""
    open_ends: list[str] = list(draw(st.permutations(OUTCOMES)))
    nodes: list[Node] = []
    while len(open_ends) > 1:
        yes = open_ends.pop(draw(st.integers(0, len(open_ends) - 1)))
        no = open_ends.pop(draw(st.integers(0, len(open_ends) - 1)))
        nodes.append(Node(id=f"n{len(nodes)}", question="?", yes=yes, no=no))
        open_ends.append(nodes[-1].id)
    return nodes[-1], *draw(st.permutations(nodes[:-1]))


@given(nodes=trees())
def test_any_valid_tree_derives_each_class_by_exactly_one_path(nodes: tuple[Node, ...]) -> None:
    taxonomy = Taxonomy(version="x", classes=default_taxonomy().classes, nodes=nodes)
    derived = []
    for chosen in product(("yes", "no", None), repeat=len(nodes)):
        answers = {n.id: a for n, a in zip(nodes, chosen, strict=True) if a is not None}
        try:
            derived.append(taxonomy.outcome(answers))
        except TaxonomyError:
            continue
    assert sorted(derived) == sorted(OUTCOMES)
    for outcome in OUTCOMES:
        assert taxonomy.outcome(taxonomy.answers_for(outcome)) == outcome


@given(nodes=trees(), data=st.data())
def test_redirecting_any_answer_of_a_valid_tree_is_refused(
    nodes: tuple[Node, ...], data: st.DataObject
) -> None:
    position = data.draw(st.integers(0, len(nodes) - 1))
    answer = data.draw(st.sampled_from(["yes", "no"]))
    node = nodes[position]
    anywhere = [*OUTCOMES, *(n.id for n in nodes), "nowhere"]
    target = data.draw(st.sampled_from([t for t in anywhere if t != node.target(answer)]))
    broken = replace(node, yes=target) if answer == "yes" else replace(node, no=target)
    with pytest.raises(TaxonomyError):
        Taxonomy(
            version="x",
            classes=default_taxonomy().classes,
            nodes=(*nodes[:position], broken, *nodes[position + 1 :]),
        )


def two(*credits: float, roles: str = "") -> Taxonomy:
    """Return a rubric of classes a and b, as a file would give it."""
    classes = [{"name": n, "title": n, "credit": c} for n, c in zip("ab", credits, strict=True)]
    node = {"id": "q", "question": "?", "yes": "a", "no": "b"}
    text = tomllib.loads(roles)
    return taxonomy_from_dict({"version": "1", "classes": classes, "nodes": [node], **text})


def test_roles_follow_from_credits_or_are_named() -> None:
    assert (two(1, 0).success, two(0, 1).success) == ("a", "b")
    assert (two(1, 0).acceptable, two(1, 0).failed_check) == (("a",), "b")
    assert (two(1, 0.5).acceptable, two(1, 0.5).failed_check) == (("a",), "b")
    assert two(1, 0).without_output is None
    named = two(1, 0, roles='[roles]\nsuccess = "b"\nacceptable = ["b"]\nfailed = "a"')
    assert (named.success, named.failed_check, named.follow_up) == ("b", "a", {})
    assert taxonomy_from_dict(named.to_dict()) == named
    assert named.fingerprint != two(1, 0).fingerprint
    with pytest.raises(TaxonomyError, match="every class has the credit 1"):
        two(1, 1)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ('success = "c"\nacceptable = ["c"]\nfailed = "b"', "'c' is no class"),
        ('success = "a"\nacceptable = ["b", "a"]\nfailed = "b"', "must begin with 'a'"),
        ('success = "a"\nacceptable = ["a", "b"]\nfailed = "b"', "'b' cannot be acceptable and"),
        ('success = "a"\nacceptable = ["a", "a"]\nfailed = "b"', "a class is named twice"),
        ('success = "a"\nacceptable = "a"\nfailed = "b"', "is not what belongs there"),
        ('success = "a"\nfailed = "b"', "'acceptable' is missing"),
        ('success = "a"\nacceptable = ["a"]\nfailed = "b"\nbest = "a"', "unknown key 'best'"),
        ('success = "a"\nacceptable = ["a"]\nfailed = 1', "is not what belongs there"),
        (
            'success = "a"\nacceptable = ["a"]\nfailed = "b"\nfollow_up = {c = "x"}',
            "'c' is no class",
        ),
    ],
)
def test_roles_that_fit_no_class_are_refused(roles: str, message: str) -> None:
    with pytest.raises(TaxonomyError, match=message):
        two(1, 0, roles=f"[roles]\n{roles}")


def test_the_catalogue_of_tags_moves_no_fingerprint_and_has_a_default() -> None:
    taxonomy = default_taxonomy()
    # Reports of before the catalogue name it.
    assert taxonomy.fingerprint.startswith("ec0b12baa8927015")
    data = taxonomy.to_dict()
    del data["tags"]  # a store or a file of before
    assert taxonomy_from_dict(data) == taxonomy
    assert taxonomy_from_dict(data | {"tags": {}}).patterns == ()
    assert len(taxonomy.patterns) == 13


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"a": {"definition": "x", "test": "y"}}, "tag 'a': 'example' is missing"),
        ({"a": {"definition": "", "test": "y", "example": "z"}}, "definition must not be empty"),
        ({"a": {"definition": "x", "test": 1, "example": "z"}}, "test must be a text"),
        ({"a": {"why": "x"}}, "unknown key 'why'"),
        ({"a;b": {"definition": "x", "test": "y", "example": "z"}}, "no comma or semicolon"),
        ({"a" * 81: {"definition": "x", "test": "y", "example": "z"}}, "1 to 80 characters"),
        ({t: {"definition": "x", "test": "y", "example": "z"} for t in ("a", "A")}, "twice"),
        ({f"t{k}": {"definition": "x", "test": "y", "example": "z"} for k in range(101)}, "many"),
        ({"a": 1}, "taxonomy: "),
        ("a", "taxonomy: "),
    ],
)
def test_a_catalogue_that_does_not_hold_is_refused(tags: Any, message: str) -> None:
    with pytest.raises(TaxonomyError, match=message):
        taxonomy_from_dict(default_taxonomy().to_dict() | {"tags": tags})


def test_document_and_handbook_have_the_catalogue() -> None:
    root = Path(__file__).parents[1]
    document = (root / "docs" / "evaluation.md").read_text(encoding="utf-8")
    handbook = (root / "reference_dataset" / "HANDBOOK.md").read_text(encoding="utf-8")
    rows = [line for line in document.splitlines() if line.startswith("| `")]
    items = [line for line in handbook.splitlines() if line.startswith("* `")]
    patterns = default_taxonomy().patterns
    assert rows[-len(patterns) :] == [
        f"| `{p.tag}` | {p.definition} | {p.test} | {p.example} |" for p in patterns
    ]
    assert items == [f"* `{p.tag}`: {p.definition} Test: {p.test}" for p in patterns]
    assert f"The catalogue has {len(patterns)}" in document
    own = document.rpartition("```toml\n")[2].partition("```")[0]
    taxonomy = taxonomy_from_dict(default_taxonomy().to_dict() | tomllib.loads(own))
    assert [p.tag for p in taxonomy.patterns] == ["promised_a_callback"]
