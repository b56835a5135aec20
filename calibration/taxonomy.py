"""The taxonomy as data: classes, credits, decision tree, ceilings, version, fingerprint.

A rubric has two to nine classes and any tree of yes/no questions that reaches each of them once.
`Roles` says what a class means to the software: which one is success, which a reviewer accepts.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from calibration.errors import InputError, TaxonomyError
from calibration.files import read_toml
from calibration.records import MAX_TAG, Workflow

ANSWERS = ("yes", "no")
FEWEST_CLASSES, MOST_CLASSES = 2, 9
# Names become columns, file names and keys.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# What stands where a class could: no label, no verdict, an answer.
RESERVED = frozenset({"no_verdict", "skip", "skipped", "split", "none", "null", "total", *ANSWERS})
MOST_PATTERNS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeClass:
    """One outcome class with its credit."""

    name: str
    title: str
    credit: float
    meaning: str = ""
    flag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One yes/no question; `evidence_on` is the answer that needs a step and a quoted span."""

    id: str
    question: str
    yes: str
    no: str
    rule: str = ""
    evidence_on: str = ""

    def target(self, answer: str) -> str:
        """Return the node or class that an answer leads to."""
        return self.yes if answer == "yes" else self.no


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePattern:
    """A failure that comes back, as a tag: what it is, how one recognises it, and an example."""

    tag: str
    definition: str
    test: str
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """What the classes of a rubric mean to the software, beyond their credit.

    Attributes
    ----------
    success : str
        The class of a successful run.
    acceptable : tuple of str
        The classes that a reviewer accepts, success first.
    failed : str
        The class of a run known only to have failed its check.
    no_output : str, optional
        The class of a run that delivered nothing; None if the rubric has none.
    follow_up : tuple of (str, str)
        Who looks at the runs of a class, by class.
    """

    success: str
    acceptable: tuple[str, ...]
    failed: str
    no_output: str | None = None
    follow_up: tuple[tuple[str, str], ...] = ()


# The five published classes; a fork of them with other credits or questions keeps what they mean.
PUBLISHED = Roles(
    success="complete",
    acceptable=("complete", "partial_plus"),
    failed="partial_minus",
    no_output="abandoned",
    follow_up=(
        ("partial_minus", "prompt and guard-rail review"),
        ("hallucinated", "model and retrieval"),
        ("abandoned", "infrastructure"),
    ),
)
PUBLISHED_CLASSES = frozenset({*PUBLISHED.acceptable, *dict(PUBLISHED.follow_up)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxonomy:
    """Classes, decision tree, ceilings and catalogue of failure patterns; valid by construction.

    Without `roles` the five published classes have their published ones. In any other rubric the
    class with the most credit is success, classes with credit are acceptable, and a run known only
    to have failed gets the first class with the least credit.

    Raises TaxonomyError if there are fewer than two classes or more than nine, one is unreachable
    or reached twice, a node is unknown, unreachable or on a cycle, a credit outside [0, 1], a
    ceiling not positive, or a role given to no class. The message names it.

    Examples
    --------
    >>> taxonomy = default_taxonomy()
    >>> taxonomy.outcome({"output": "yes", "fabrication": "no", "all_subgoals": "yes"})
    'complete'
    """

    version: str
    classes: tuple[OutcomeClass, ...]
    nodes: tuple[Node, ...]
    workflows: tuple[Workflow, ...] = ()
    roles: Roles | None = None
    patterns: tuple[FailurePattern, ...] = ()

    def __post_init__(self) -> None:
        if not self.version.strip():
            raise TaxonomyError("the version must not be empty")
        _check_classes(self.classes)
        _check_tree(self.nodes, self.names)
        _check_workflows(self.workflows)
        _check_roles(self._roles, self.names)
        _check_patterns(self.patterns)

    @property
    def names(self) -> tuple[str, ...]:
        """The classes in declared order; class codes are positions in it."""
        return tuple(c.name for c in self.classes)

    @property
    def credits(self) -> tuple[float, ...]:
        """Credit of the classes, in the order of `names`."""
        return tuple(c.credit for c in self.classes)

    @property
    def credit(self) -> dict[str, float]:
        """Credit of each class, in declared order."""
        return {c.name: c.credit for c in self.classes}

    def place(self, outcome: str) -> int:
        """Return the code of a class, its position in `names`."""
        return self.names.index(outcome)

    @property
    def places(self) -> dict[str, int]:
        """The code of each class."""
        return {name: place for place, name in enumerate(self.names)}

    @property
    def titles(self) -> dict[str, str]:
        """The name of each class for people.

        Examples
        --------
        >>> default_taxonomy().titles["partial_plus"]
        'Partial-correct'
        """
        titles = [c.title for c in self.classes]
        return {
            c.name: c.title if titles.count(c.title) == 1 else f"{c.title} ({c.name})"
            for c in self.classes
        }

    def question_name(self, node_id: str) -> str:
        """Return a question's number and short name, for people.

        Examples
        --------
        >>> default_taxonomy().question_name("all_subgoals")
        'question 3, all subgoals'
        """
        number = next(k for k, node in enumerate(self.nodes, 1) if node.id == node_id)
        return f"question {number}, {node_id.replace('_', ' ')}"

    @property
    def _roles(self) -> Roles:
        return self.roles or _roles_of(self.classes)

    @property
    def success(self) -> str:
        """The class of a successful run."""
        return self._roles.success

    @property
    def acceptable(self) -> tuple[str, ...]:
        """The classes that a reviewer accepts, success first."""
        return self._roles.acceptable

    @property
    def without_output(self) -> str | None:
        """The class of a run that delivered nothing; None if a rubric has none."""
        return self._roles.no_output

    @property
    def failed_check(self) -> str:
        """The class of a run known only to have failed its check."""
        return self._roles.failed

    @property
    def follow_up(self) -> dict[str, str]:
        """The follow-up for runs of a class."""
        return dict(self._roles.follow_up)

    def meanings(self, tags: Iterable[str]) -> dict[str, str]:
        """Return the definition of each of these tags that is in the catalogue.

        Examples
        --------
        >>> default_taxonomy().meanings(["Loop", "our own tag"])
        {'Loop': 'The agent repeats the same call with the same arguments and learns nothing new.'}
        """
        known = {p.tag.casefold(): p.definition for p in self.patterns}
        return {tag: known[tag.casefold()] for tag in tags if tag.casefold() in known}

    @property
    def root(self) -> Node:
        """The first question."""
        return self.nodes[0]

    def node(self, node_id: str) -> Node:
        """Return a node by its id."""
        return next(n for n in self.nodes if n.id == node_id)

    def outcome(self, answers: Mapping[str, str]) -> str:
        """Return the class for the answers on one path; raise TaxonomyError if they do not fit."""
        visited = self.path(answers)
        extra = sorted(set(answers) - {node.id for node in visited})
        if extra:
            raise TaxonomyError(f"answer to {extra[0]!r} is not on the path of the other answers")
        return visited[-1].target(answers[visited[-1].id])

    def answers_for(self, outcome: str) -> dict[str, str]:
        """Return the answers on the only path to a class; raise TaxonomyError if there is none."""
        if outcome not in self.credit:
            raise TaxonomyError(
                f"class {outcome!r} is unknown; the classes are {', '.join(self.names)}"
            )
        target, answers = outcome, {}
        while target != self.root.id:
            node = next(n for n in self.nodes if target in (n.yes, n.no))
            answers[node.id] = "yes" if node.yes == target else "no"
            target = node.id
        return dict(reversed(answers.items()))

    def paths(self, outcomes: Sequence[str]) -> list[list[tuple[str, str]]]:
        """Return the questions and answers that lead to each class, root first."""
        return [list(self.answers_for(outcome).items()) for outcome in outcomes]

    def first_parting(self, outcomes: Iterable[str]) -> str | None:
        """Return the first question at which the paths to these classes part, None if they do not.

        Examples
        --------
        >>> default_taxonomy().first_parting(["complete", "partial_plus"])
        'all_subgoals'
        """
        for steps in zip(*self.paths(sorted(set(outcomes))), strict=False):
            if len(set(steps)) > 1:
                return str(steps[0][0])
        return None

    def path(self, answers: Mapping[str, str]) -> list[Node]:
        """Return the nodes on the path of complete `answers`, root first."""
        at, visited = self.root.id, []
        while at not in self.names:
            node = self.node(at)
            answer = answers.get(node.id)
            if answer not in ANSWERS:
                raise TaxonomyError(f"node {node.id!r} needs the answer yes or no, got {answer!r}")
            visited.append(node)
            at = node.target(answer)
        return visited

    @property
    def fingerprint(self) -> str:
        """SHA-256 over everything that can affect a number or a reviewer's answer.

        The catalogue of failure patterns does neither: a tag changes no class.
        """
        data = asdict(self)
        del data["patterns"]
        if self.roles is None:  # as before a rubric could name them
            del data["roles"]
        text = json.dumps(data, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `taxonomy_from_dict` reads back."""
        return {
            "version": self.version,
            "classes": [asdict(c) for c in self.classes],
            "nodes": [asdict(n) for n in self.nodes],
            "workflows": {
                w.name: {"ceiling_usd": w.ceiling_usd, "unit": w.unit} for w in self.workflows
            },
            **({} if self.roles is None else {"roles": _roles_data(self.roles)}),
            "tags": {
                p.tag: {"definition": p.definition, "test": p.test, "example": p.example}
                for p in self.patterns
            },
        }


def _check_classes(classes: tuple[OutcomeClass, ...]) -> None:
    if not FEWEST_CLASSES <= len(classes) <= MOST_CLASSES:
        raise TaxonomyError(
            f"a rubric has {FEWEST_CLASSES} to {MOST_CLASSES} classes, got {len(classes)}"
        )
    names = [c.name for c in classes]
    for c in classes:
        if not _NAME.fullmatch(c.name) or c.name in RESERVED:
            raise TaxonomyError(
                f"class {c.name!r:.60}: a name is 1 to 40 lower-case letters, digits and _, starts "
                f"with a letter, and cannot be {', '.join(sorted(RESERVED))}"
            )
        if names.count(c.name) > 1:
            raise TaxonomyError(f"class {c.name!r} is declared twice")
        if not _is_number(c.credit) or not 0 <= c.credit <= 1:
            raise TaxonomyError(f"class {c.name!r}: credit must be in [0, 1], got {c.credit!r}")
    if len({c.credit for c in classes}) == 1:
        raise TaxonomyError(
            f"every class has the credit {classes[0].credit:g}: no rate tells runs apart"
        )


def _roles_of(classes: tuple[OutcomeClass, ...]) -> Roles:
    """Return the roles that follow from names and credits."""
    if {c.name for c in classes} == PUBLISHED_CLASSES:
        return PUBLISHED
    best = sorted((c for c in classes if c.credit > 0), key=lambda c: -c.credit)
    if len(best) > 1 and best[0].credit == best[1].credit:
        raise TaxonomyError(
            f"classes {best[0].name!r} and {best[1].name!r} have the same, highest credit: say in "
            "[roles] which one is success"
        )
    least = min(c.credit for c in classes)
    failed = next(c.name for c in classes if c.credit == least)
    acceptable = tuple(c.name for c in best if c.name != failed)
    return Roles(success=best[0].name, acceptable=acceptable, failed=failed)


def _check_roles(roles: Roles, names: Sequence[str]) -> None:
    named = {
        "success": (roles.success,),
        "acceptable": roles.acceptable,
        "failed": (roles.failed,),
        "no_output": () if roles.no_output is None else (roles.no_output,),
        "follow_up": tuple(name for name, _ in roles.follow_up),
    }
    for role, given in named.items():
        for name in given:
            if name not in names:
                raise TaxonomyError(f"[roles] {role}: {name!r:.60} is no class of this rubric")
        if len(set(given)) != len(given):
            raise TaxonomyError(f"[roles] {role}: a class is named twice")
    if roles.acceptable[:1] != (roles.success,):
        raise TaxonomyError(f"[roles] acceptable: must begin with {roles.success!r}, the success")
    for bad in (roles.failed, roles.no_output):
        if bad in roles.acceptable:
            raise TaxonomyError(f"[roles] {bad!r} cannot be acceptable and a failure")


def _check_tree(nodes: tuple[Node, ...], outcomes: Sequence[str]) -> None:
    if not nodes:
        raise TaxonomyError("the tree has no node")
    by_id: dict[str, Node] = {}
    for node in nodes:
        if node.id in by_id or node.id in outcomes:
            raise TaxonomyError(f"node {node.id!r} is declared twice or named like a class")
        if node.evidence_on not in ("", *ANSWERS):
            raise TaxonomyError(f"node {node.id!r}: evidence_on must be yes or no")
        by_id[node.id] = node
    reached: dict[str, str] = {}
    pending = [nodes[0].id]
    seen = set(pending)
    while pending:
        node = by_id[pending.pop(0)]
        for answer in ANSWERS:
            target = node.target(answer)
            if target in outcomes:
                if target in reached:
                    raise TaxonomyError(
                        f"node {node.id!r} reaches class {target!r} a second time "
                        f"(node {reached[target]!r} already does)"
                    )
                reached[target] = node.id
            elif target not in by_id:
                raise TaxonomyError(f"node {node.id!r}: {answer} leads to unknown {target!r}")
            elif target in seen:
                raise TaxonomyError(
                    f"node {target!r} is reached twice (again from node {node.id!r})"
                )
            else:
                seen.add(target)
                pending.append(target)
    for node in nodes:
        if node.id not in seen:
            raise TaxonomyError(f"node {node.id!r} cannot be reached from {nodes[0].id!r}")
    for name in outcomes:
        if name not in reached:
            raise TaxonomyError(
                f"no node leads to class {name!r}; the tree starts at {nodes[0].id!r}"
            )


def _check_workflows(workflows: tuple[Workflow, ...]) -> None:
    names = [w.name for w in workflows]
    for w in workflows:
        if names.count(w.name) > 1:
            raise TaxonomyError(f"workflow {w.name!r} is declared twice")
        ceiling = w.ceiling_usd
        if ceiling is not None and not (_is_number(ceiling) and 0 < ceiling < float("inf")):
            raise TaxonomyError(
                f"workflow {w.name!r}: ceiling_usd must be a positive amount, got {ceiling!r}"
            )
        if not isinstance(w.unit, str) or not w.unit.strip():
            raise TaxonomyError(f"workflow {w.name!r}: unit must be a text, got {w.unit!r}")


def _check_patterns(patterns: tuple[FailurePattern, ...]) -> None:
    if len(patterns) > MOST_PATTERNS:
        raise TaxonomyError(f"{len(patterns)} tags are too many; {MOST_PATTERNS} at most")
    names = [p.tag.casefold() for p in patterns]
    for p in patterns:
        if names.count(p.tag.casefold()) > 1:
            raise TaxonomyError(f"tag {p.tag!r} is declared twice")
        plain = " ".join(re.split(r"[;,\s]+", p.tag)).strip()  # as the desk keeps it
        if p.tag != plain or not 0 < len(p.tag) <= MAX_TAG:
            raise TaxonomyError(
                f"tag {p.tag!r:.80} must have 1 to {MAX_TAG} characters, no comma or semicolon "
                "and no two spaces in a row"
            )
        for key in ("definition", "test", "example"):
            if not getattr(p, key).strip():
                raise TaxonomyError(f"tag {p.tag!r}: {key} must not be empty")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _checked(
    kind: type[OutcomeClass | Node | FailurePattern], what: str, data: Mapping[str, Any]
) -> dict[str, Any]:
    """Check the keys of a class, node or tag, so that an error names it."""
    name = data.get("name", data.get("id", data.get("tag")))
    known = {f.name: f for f in fields(kind)}
    for key, value in data.items():
        if key not in known:
            raise TaxonomyError(f"{what} {name!r} has an unknown key {key!r}")
        if key != "credit" and not isinstance(value, str):
            raise TaxonomyError(f"{what} {name!r}: {key} must be a text, got {value!r}")
    for key, item in known.items():
        if item.default is MISSING and key not in data:
            raise TaxonomyError(f"{what} {name!r}: {key!r} is missing")
    return dict(data)


def _roles_data(roles: Roles) -> dict[str, Any]:
    """Return roles as plain data; TOML has no null."""
    data = asdict(roles) | {"follow_up": dict(roles.follow_up)}
    return {key: value for key, value in data.items() if value not in (None, {})}


def _roles_from(data: Mapping[str, Any]) -> Roles:
    """Read the table [roles], so that an error names the key."""
    known = {f.name: f for f in fields(Roles)}
    if not isinstance(data, Mapping):
        raise TaxonomyError("[roles] must be a table")
    for key, value in data.items():
        if key not in known:
            raise TaxonomyError(
                f"[roles] has an unknown key {key!r:.60}; known: {', '.join(known)}"
            )
        texts = value.values() if key == "follow_up" and isinstance(value, Mapping) else value
        if key in ("acceptable", "follow_up"):
            right = isinstance(texts, Iterable) and not isinstance(texts, str)
            right = right and all(isinstance(text, str) for text in texts)
        else:
            right = isinstance(value, str)
        if not right:
            raise TaxonomyError(f"[roles] {key}: {value!r:.60} is not what belongs there")
    for key, item in known.items():
        if item.default is MISSING and key not in data:
            raise TaxonomyError(f"[roles] {key!r} is missing")
    follow_up = data.get("follow_up", {})
    return Roles(
        success=data["success"],
        acceptable=tuple(data["acceptable"]),
        failed=data["failed"],
        no_output=data.get("no_output"),
        follow_up=tuple(follow_up.items()),
    )


def taxonomy_from_dict(data: Mapping[str, Any], *, where: str = "taxonomy") -> Taxonomy:
    """Build a taxonomy from plain data (TOML or JSON); `where` names it in errors.

    Without `tags` it has the catalogue of failure patterns of the package.
    """
    try:
        return Taxonomy(
            version=str(data["version"]),
            classes=tuple(
                OutcomeClass(**_checked(OutcomeClass, "class", c)) for c in data["classes"]
            ),
            nodes=tuple(Node(**_checked(Node, "node", n)) for n in data["nodes"]),
            workflows=tuple(
                Workflow(name=name, **settings)
                for name, settings in data.get("workflows", {}).items()
            ),
            roles=_roles_from(data["roles"]) if "roles" in data else None,
            patterns=tuple(
                FailurePattern(**_checked(FailurePattern, "tag", {**of, "tag": tag}))
                for tag, of in (data["tags"] if "tags" in data else _published()["tags"]).items()
            ),
        )
    except TaxonomyError as error:
        raise TaxonomyError(f"{where}: {error}") from error
    except KeyError as error:
        raise TaxonomyError(f"{where}: {error.args[0]!r} is missing") from error
    except (TypeError, AttributeError) as error:
        raise TaxonomyError(f"{where}: {error}") from error


def load_taxonomy(path: Path) -> Taxonomy:
    """Read a forked taxonomy from a TOML file."""
    try:
        data = read_toml(path)
    except InputError as error:
        raise TaxonomyError(str(error)) from error
    return taxonomy_from_dict(data, where=str(path))


@cache
def default_taxonomy() -> Taxonomy:
    """Return the taxonomy of the package."""
    return taxonomy_from_dict(_published())


@cache
def _published() -> dict[str, Any]:
    text = files("calibration").joinpath("taxonomy.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def default_credits(taxonomy: Taxonomy) -> tuple[float, ...]:
    """Return the published credits in the order of a taxonomy's classes; of another rubric its own.

    Examples
    --------
    >>> default_credits(default_taxonomy())
    (1.0, 0.4, 0.0, 0.0, 0.0)
    """
    published = default_taxonomy().credit
    if set(taxonomy.names) != set(published):
        return taxonomy.credits
    return tuple(published[name] for name in taxonomy.names)


def ready_rubrics() -> dict[str, Path]:
    """Return the rubrics that come with the package beside the default one, by name.

    Examples
    --------
    >>> sorted(ready_rubrics())
    ['three_class', 'two_class']
    """
    folder = Path(str(files("calibration").joinpath("rubrics")))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}
