"""How ratings are laid out: a row a rating, or a column a rater.

`rating_layout` says which columns of a table name the item, the rater and the label, or which hold
the labels of one rater each, and asks where the table does not say it. `latest_of` says which of
several ratings of one person on one item is the later one.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NoReturn

from calibration.errors import InputError
from calibration.tables import words
from calibration.tables.columns import (
    ALIASES,
    ARMS,
    MOST_NAMED,
    OTHER_IDS,
    REPEATS,
    Header,
    Sample,
    chosen_columns,
    normalised,
)

ROLES = ("item", "rater", "label", "updated_at")
MOST_LABELS = 50  # different labels of one table
MOST_PROPOSED = 10  # different values of a column that is proposed as labels or raters
MOST_CRITERIA = 20  # values of a column that tells several ratings of one person apart
LONG_TEXT = 80  # characters of a value that is no label
FEW_ROWS = 10  # up to here all values may differ, and two raters may never agree
DIFFERENT = 0.8  # from this share of different values on, a column holds no labels
# Up to this share of the ratings, people rated items again: of any column, and of our own name.
REPLACED = {False: 0.2, True: 0.5}

# Words of a header that say of its column that it is no rater's.
_SUMMARY = (
    "final majority consensus gold golden truth groundtruth adjudicated adjudication aggregated "
    "mean median average avg agree agreement disagreement resolution expected reference predicted "
    "pseudo suggested machine vote votes"
)
_PROSE = (
    "comment comments note notes remark remarks reason reasons rationale explanation justification "
    "text message query prompt response url path"
)
_ABOUT = (
    "date time timestamp datetime index split category domain status confidence duration tags tag"
)
NO_RATER = frozenset(f"{_SUMMARY} {_PROSE} {_ABOUT} id uuid at".split())
# Of these it is not clear whether they say something of the item or are a rater.
_QUALITIES = (
    "fluency coherence relevance helpfulness accuracy correctness quality consistency completeness "
    "faithfulness clarity tone toxicity safety harmlessness honesty style grammar usefulness "
    "truthfulness factuality groundedness informativeness conciseness readability overall"
)
_UNCLEAR = frozenset(
    "round batch difficulty language lang model system version group variant condition source "
    "dataset fold page row line length tokens cost criterion question aspect dimension "
    f"{_QUALITIES}".split()
)
# Never what tells two ratings of one person on one item apart.
_NEVER_APART = frozenset(
    f"{_PROSE} id uuid at date time timestamp datetime index confidence duration seconds".split()
)
_CRITERIA = frozenset(
    "criterion criteria question aspect dimension metric attribute rubric measure facet".split()
)
_MAY_HOLD_LABELS = ("judge", "expert", "evaluator", "reviewer", "user", "annotator", "coder")
_PERSONS = (
    "rater|annotator|reviewer|worker|performer|coder|labeler|labeller|evaluator|expert|user|judge|"
    "grader|assessor|scorer|human|person|participant"
)
_GIVEN = "label|annotation|rating|score|verdict|judgment|judgement|grade"
_NUMBERED = re.compile(
    rf"(?:(?P<before>{_GIVEN})_)?(?P<stem>{_PERSONS}|{_GIVEN})(?:_?\d{{1,3}}|_[a-z])"
    rf"(?:_(?P<after>{_GIVEN}))?"
)
# Beside score_a and score_b, what was rated: the scores are of two answers, not of two raters.
_RATED = re.compile(
    r"(?:model|response|answer|output|system|completion|candidate|summary|assistant|reply|agent)"
    r"_?(?:\d{1,3}|[a-z])(?:_name|_id|_text)?"
)
_DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}([ T].*)?|\d{13}|1\d{9}"
)
_NESTED = re.compile(r"\[.*\]|\{.*\}", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingLayout:
    """Where the ratings of a table are.

    `layout` : a row a rating, or a row an item. `item` : the columns that name it together, none
    where rows are numbered. `rater`, `label` : the columns of a row that is one rating. `raters` :
    the columns of the raters of a row that is one item. `times` : columns that may say when a
    rating was given. `not_read` : the other columns, in order.
    """

    layout: Literal["long", "wide", "annotations"]
    item: tuple[str, ...]
    rater: str = ""
    label: str = ""
    raters: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, str | None]:
        """The column by role."""
        return {
            "item": self.item[0] if self.item else None,
            "rater": self.rater or None,
            "label": self.label or None,
        }


def rating_layout(
    columns: Iterable[str],
    sample: Sample,
    *,
    place: str,
    chosen: Mapping[str, str | None] | None = None,
    raters: Sequence[str] = (),
    apart: Sequence[str] = (),
    is_certain: bool = False,
) -> RatingLayout:
    """Return how a table of ratings is laid out.

    Parameters
    ----------
    columns : iterable of str
        The header.
    sample : Sample
        The first rows.
    place : str
        The name of the table in messages.
    chosen : mapping of str to (str or None), optional
        The column by role (item, rater, label, updated_at) that the user named.
    raters : sequence of str
        The columns of the raters, where the user named them.
    apart : sequence of str
        Columns that are read for something else, and are no raters.
    is_certain : bool
        Whether the classes were named, so that what is no label will be refused.

    Raises
    ------
    InputError
        If it is not clear which columns hold ratings: a question that names them.

    Examples
    --------
    >>> wide = Sample({"item": ["1", "2"], "Ann": ["a", "b"], "Bo": ["a", "a"], "note": ["", "x"]})
    >>> found = rating_layout(["item", "Ann", "Bo", "note"], wide, place="a.csv")
    >>> found.layout, found.item, found.raters, found.not_read
    ('wide', ('item',), ('Ann', 'Bo'), ('note',))
    """
    table = _Table(
        header=Header.of(columns, place, ROLES), sample=sample, chosen=chosen or {}, apart=apart
    )
    table.by_role.update(chosen_columns(table.header, table.chosen, ROLES))
    if raters:
        return _wide(table, tuple(raters))
    if {"rater", "label"} & table.by_role.keys():
        return _long(table)
    return _unasked(table, is_certain=is_certain)


@dataclass(slots=True, kw_only=True)
class _Table:
    """A table whose layout is looked for; `by_role` holds the columns that the user named."""

    header: Header
    sample: Sample
    chosen: Mapping[str, str | None]
    apart: Sequence[str]
    by_role: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return self.header.place

    @property
    def n_rows(self) -> int:
        return max(map(len, self.sample.texts.values()), default=0)

    def others(self) -> list[str]:
        """Return the columns without a role that the user named."""
        used = {*self.by_role.values(), *self.apart}
        return [name for name in self.header.columns if name not in used]

    def folded(self, column: str) -> set[str]:
        return {words.fold(value) for value in self.sample.values(column)}

    def refuse(self, message: str) -> NoReturn:
        raise InputError(f"{self.place}: {message}")


def _unasked(table: _Table, *, is_certain: bool) -> RatingLayout:
    """Return the layout of a table of which the user named no rater and no label."""
    header = table.header
    rater = _rater_column(table)
    groups = _numbered(table)
    if rater is not None:
        if _is_own(header) or _label_columns(table, rater):
            return _long(table)
        if groups:
            table.refuse(_not_clear([rater, *(name for group in groups for name in group)]))
    if groups:
        return _numbered_wide(table, groups, is_certain=is_certain)
    first = header.columns[0] if header.columns else ""
    if normalised(first) == "item":
        return _own_wide(table, is_certain=is_certain)
    if rater is not None:
        return _long(table)
    likely = _likely(table)
    table.refuse(_not_clear(likely or table.others()))


def _not_clear(names: Sequence[str]) -> str:
    """Say that columns may hold ratings, or not, and what to name."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    listed = ", ".join(names[:MOST_NAMED]) + more
    verb = (
        "may be a rater or what was rated"
        if len(names) == 1
        else ("may be raters or what was rated")
    )
    return (
        f"it is not clear which columns hold ratings: {listed or 'none'} {verb}; "
        f"{_raters_option(names[:2])}, or --column item=,rater=,label= for a row a rating"
    )


def _raters_option(names: Sequence[str]) -> str:
    quoted = [f'"{name}"' if "," in name else name for name in names[:MOST_NAMED]]
    text = ",".join(quoted) + (",..." if len(names) > MOST_NAMED else "")
    return f"--raters '{text}'" if re.search(r"[^\w,.:-]", text) else f"--raters {text}"


# --- what a column may hold ----------------------------------------------------------------------


def is_no_rater(header: str) -> bool:
    """Return whether a header says of itself that its column is no rater's.

    >>> is_no_rater("final label"), is_no_rater("created_at"), is_no_rater("Ann")
    (True, True, False)
    """
    return bool(NO_RATER & set(normalised(header).split("_"))) or not normalised(header)


def is_numbered_rater(header: str) -> bool:
    """Return whether a header is one of several raters, or of their labels, by number.

    >>> is_numbered_rater("Annotator 1"), is_numbered_rater("score_b"), is_numbered_rater("Ann")
    (True, True, False)
    """
    return _NUMBERED.fullmatch(normalised(header)) is not None


def may_be_label(sample: Sample, column: str, most: int = MOST_LABELS) -> bool:
    """Return whether the values of a column may be labels: few, short, and no dates."""
    values = sample.values(column)
    different = set(values)
    return (
        0 < len(different) <= most
        and not (len(values) > FEW_ROWS and len(different) > DIFFERENT * len(values))
        and all(len(value) <= LONG_TEXT for value in different)
        and not _holds_dates(values)
    )


def _holds_dates(values: Sequence[str]) -> bool:
    return bool(values) and sum(map(bool, map(_DATE.fullmatch, values))) > len(values) / 2


def _likely(table: _Table, *but: str) -> list[str]:
    """Return the columns that may be proposed as labels or as a rater's."""
    ids = {*_ids(table), *but}
    return [
        name
        for name in table.others()
        if name not in ids
        and not is_no_rater(name)
        and may_be_label(table.sample, name, MOST_PROPOSED)
    ]


def _ids(table: _Table) -> list[str]:
    """Return the columns that may name an item, in the order of their names."""
    header = table.header
    further = [
        name
        for name in header.columns
        if normalised(name).endswith(("_id", "hitid"))
        and normalised(name).removesuffix("_id") not in OTHER_IDS
        and normalised(name) not in ALIASES["rater"]
    ]
    used = {*table.by_role.values(), *table.apart}
    return list(dict.fromkeys((*header.there(ALIASES["item"], used), *further)))


def _rater_column(table: _Table) -> str | None:
    """Return the column that names the rater of a row."""
    present = table.header.there(ALIASES["rater"], (*table.by_role.values(), *table.apart))
    return next(iter(present), None)


def _label_columns(table: _Table, rater: str) -> list[str]:
    """Return the columns called as a label that may hold one."""
    present = table.header.there(ALIASES["label"], (rater, *table.by_role.values(), *table.apart))
    return [name for name in present if may_be_label(table.sample, name)] or present[:1]


def _is_own(header: Header) -> bool:
    """Return whether a table has the three columns of this project's own layout."""
    return {"item", "rater", "label"} <= header.names.keys()


# --- a row a rating ------------------------------------------------------------------------------


def _long(table: _Table) -> RatingLayout:
    by_role = dict(table.by_role)
    for role in ("item", "rater", "label"):
        if role in table.chosen and table.chosen[role] is None:
            table.refuse(f"a row a rating needs a column for the {role}: --column {role}=NAME")
    if "rater" not in by_role:
        rater = _rater_column(table)
        if rater is None:
            likely = _likely(table)
            table.refuse(
                "no column names the rater of a row"
                + (f"; {', '.join(likely[:MOST_NAMED])} may" if likely else "")
                + ": --column rater=NAME, or --raters A,B for a column a rater"
            )
        by_role["rater"] = rater
    if "label" not in by_role:
        by_role["label"] = _one_label(table, by_role["rater"])
    rater, label = by_role["rater"], by_role["label"]
    if rater == label:
        table.refuse(f"{rater} cannot be both the rater and the label")
    raters, labels = table.folded(rater), table.folded(label)
    # A column called judge or expert may hold what that one said; numbers may name people.
    is_trusted = "rater" in table.chosen or normalised(rater) not in _MAY_HOLD_LABELS
    if not is_trusted and raters <= labels and not any(map(str.isdecimal, raters)):
        table.refuse(_not_clear([rater, label]))
    used = {rater, label, *by_role.values()}
    times = _time_columns(table, used)
    item = by_role.get("item") or _long_item(table, rater, label, times)
    _check_told_apart(table, _ItemFit.of(table, item, rater, label, times))
    used |= {item, *table.apart}
    return RatingLayout(
        layout="long",
        item=(item,),
        rater=rater,
        label=label,
        times=tuple(times),
        not_read=tuple(name for name in table.header.columns if name not in used),
    )


def _one_label(table: _Table, rater: str) -> str:
    """Return the one column that may hold the labels of a rater."""
    if _is_own(table.header) and rater == table.header.names["rater"]:
        return table.header.names["label"]
    present = _label_columns(table, rater)
    if len(present) == 1:
        return present[0]
    if present:
        table.refuse(
            f"{' and '.join(present[:MOST_NAMED])} may both hold the label: "
            f"--column label={present[0]}"
        )
    likely = _likely(table, rater)
    if likely:
        table.refuse(
            f"no column is called label; {', '.join(likely[:MOST_NAMED])} may hold what {rater} "
            f"gave: --column label={likely[0]}"
        )
    table.refuse("no column holds labels: --column label=NAME")


def _long_item(table: _Table, rater: str, label: str, times: Sequence[str]) -> str:
    """Return the column under which each rater has one rating of an item, and items repeat."""
    named = [name for name in _ids(table) if name not in (rater, label)]
    fits = [_ItemFit.of(table, name, rater, label, times) for name in named]
    shared = [fit for fit in fits if fit.is_shared]
    strict = [fit for fit in shared if not fit.again]
    loose = [fit for fit in shared if fit.again and not fit.open and not fit.telling]
    # Where most ratings would be replaced, the column names something larger than the item.
    rated_again = [
        fit
        for fit in loose
        if fit.replaced <= REPLACED[normalised(fit.item) == "item"] * fit.n_ratings
    ]
    first = next((fit for fit in shared if fit in strict or fit in rated_again), None)
    if first is not None:
        for other in strict:
            if other.groups != first.groups:
                table.refuse(
                    f"{first.item} and {other.item} may both name the item: "
                    f"--column item={first.item}"
                )
        return first.item
    if loose:
        table.refuse(
            f"{loose[0].replaced:,} of {loose[0].n_ratings:,} ratings would be replaced by a later "
            f"one of the same rater and {loose[0].item}: --column item={loose[0].item} if that is "
            "meant, or --column item=NAME"
        )
    for fit in shared:
        _check_told_apart(table, fit)
    if shared:
        return shared[0].item
    if named:
        table.refuse(
            f"every item has one rating (items are those of {named[0]}): agreement needs two "
            "raters of one item; --column item=NAME names another column"
        )
    table.refuse("no column names the item that was rated: --column item=NAME")


def _check_told_apart(table: _Table, fit: "_ItemFit") -> None:
    """Refuse several ratings of one person on one item that another column tells apart."""
    if fit.telling:
        value = next(iter(table.sample.values(fit.telling[0])), "VALUE")
        table.refuse(
            f"a rater has several ratings of one {fit.item}, told apart by "
            f"{', '.join(fit.telling[:MOST_NAMED])}: --where {fit.telling[0]}={value:.40}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ItemFit:
    """How a column fits as the item: `again` ratings of a person on an item after the first.

    `replaced` : of these, ratings that differ from another one.
    `is_shared` : whether some items have two raters. `open` : ratings that differ, and no time says
    which is later. `telling` : columns that tell such ratings apart. `groups` : the rows of each
    item.
    """

    item: str
    is_shared: bool
    n_ratings: int
    again: int
    replaced: int
    open: int
    telling: tuple[str, ...]
    groups: frozenset[tuple[int, ...]]

    @classmethod
    def of(
        cls, table: _Table, item: str, rater: str, label: str, times: Sequence[str]
    ) -> "_ItemFit":
        texts = table.sample.texts
        rated: dict[tuple[str, str], list[int]] = defaultdict(list)
        items: dict[str, list[int]] = defaultdict(list)
        raters: dict[str, set[str]] = defaultdict(set)
        cells = zip(texts[item], texts[rater], texts[label], strict=True)
        for row, (of_item, person, given) in enumerate(cells):
            if not any(map(words.is_missing, (of_item, person, given))):
                rated[of_item, person].append(row)
                items[of_item].append(row)
                raters[of_item].add(person)
        # A single value names the project, not an item, but for our own name.
        is_shared = (len(items) > 1 or normalised(item) == "item") and any(
            len(people) > 1 for people in raters.values()
        )
        given_twice = [rows for rows in rated.values() if len(rows) > 1]
        differing = [
            rows for rows in given_twice if len({_label(texts[label][row]) for row in rows}) > 1
        ]
        moments = [moments_of(texts[name]) for name in times] if differing and is_shared else []
        return cls(
            item=item,
            is_shared=is_shared,
            n_ratings=sum(map(len, rated.values())),
            again=sum(len(rows) - 1 for rows in given_twice),
            replaced=sum(len(rows) - 1 for rows in differing),
            open=sum(latest_of(rows, moments) is None for rows in differing),
            telling=_telling(table, item, (rater, label, *times), differing),
            groups=frozenset(map(tuple, items.values())),
        )


def _label(text: str) -> str:
    """Return what spellings of one label share; numbers of one value are one."""
    number = words.number_of(text)
    return words.fold(text) if number is None else f"{number:g}"


def _telling(
    table: _Table, item: str, used: Sequence[str], differing: Sequence[Sequence[int]]
) -> tuple[str, ...]:
    """Return the columns that tell apart all ratings that differ."""
    if not differing:
        return ()
    texts, found = table.sample.texts, []
    for name in table.header.columns:
        if name in (item, *used, *table.apart) or not normalised(name):
            continue
        if _NEVER_APART & set(normalised(name).split("_")):
            continue
        values = table.sample.values(name)
        if (
            not 1 < len(set(values)) <= MOST_CRITERIA
            or any(len(value) > LONG_TEXT for value in values)
            or _holds_dates(values)
            or _is_renaming(texts[name], texts[used[1]])
        ):
            continue
        if all(len({texts[name][row] for row in rows}) == len(rows) for rows in differing):
            found.append(name)
    return tuple(found)


def _is_renaming(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two columns say the same in other words."""
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


# --- which rating is later -----------------------------------------------------------------------


def _time_columns(table: _Table, used: Iterable[str]) -> list[str]:
    """Return the columns that may say when a rating was given, the likeliest first."""
    chosen = table.chosen.get("updated_at", "")
    if chosen is None:
        return []
    if chosen:
        return [chosen]
    further = [name for name in table.header.columns if normalised(name).endswith("_at")]
    listed = (*table.header.there(ALIASES["updated_at"]), *further)
    return [name for name in dict.fromkeys(listed) if name not in set(used)]


def moments_of(texts: Sequence[str], dates: words.Dates | None = None) -> list[datetime | None]:
    """Return the times of a column in UTC; None for what is none.

    Examples
    --------
    >>> [moment and moment.day for moment in moments_of(["2026-03-04", "soon", ""])]
    [4, None, None]
    """
    clock = words.clock_of(texts, chosen=dates)
    if clock == "unclear":
        return [None] * len(texts)
    return [_moment(words.iso_of(text, clock)) if text else None for text in texts]


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def latest_of(rows: Sequence[int], moments: Sequence[Sequence[datetime | None]]) -> int | None:
    """Return the row that is later than the others by the first column of times that says so.

    Examples
    --------
    >>> days = moments_of(["2026-03-02", "2026-03-01", "2026-03-02"])
    >>> latest_of([1, 0], [days]), latest_of([0, 2], [days])
    (0, None)
    """
    for column in moments:
        dated = [(column[row], row) for row in rows]
        known = [(moment, row) for moment, row in dated if moment is not None]
        if len(known) < len(rows):
            continue
        latest = max(moment for moment, _ in known)
        last = [row for moment, row in known if moment == latest]
        if len(last) == 1:
            return last[0]
    return None


# --- a column a rater ----------------------------------------------------------------------------


def _numbered(table: _Table) -> list[list[str]]:
    """Return columns such as annotator_1 and annotator_2, those of one form together."""
    forms: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
    for name in table.others():
        match = _NUMBERED.fullmatch(normalised(name))
        if match is not None:
            forms[match["before"], match["stem"], match["after"]].append(name)
    return [names for names in forms.values() if len(names) > 1]


def _numbered_wide(
    table: _Table, groups: Sequence[Sequence[str]], *, is_certain: bool
) -> RatingLayout:
    if len(groups) > 1:
        names = [name for group in groups for name in group]
        table.refuse(_not_clear(names))
    raters = tuple(groups[0])
    rated = [name for name in table.others() if _RATED.fullmatch(normalised(name))]
    if len(rated) > 1 and not any(re.search(_PERSONS, normalised(name)) for name in raters):
        table.refuse(_not_clear(raters))
    _check_raters(table, raters, is_certain=is_certain)
    values = set().union(*(table.folded(name) for name in raters))
    ids = set(_ids(table))
    item = table.by_role.get("item")
    for name in table.others():
        if name in raters or is_no_rater(name) or name == item:
            continue
        is_called_label = normalised(name) in ALIASES["label"]
        same = table.folded(name)
        if is_called_label and may_be_label(table.sample, name) and not same & values:
            table.refuse(_names(raters))
        if name in ids:
            continue
        if (same and same <= values) or (is_called_label and same & values):
            table.refuse(
                f"{name} holds the same values as {_listed(raters)}: is it a rater as well? "
                f"{_raters_option([*raters, name])}, or {_raters_option(raters)}"
            )
    return _wide(table, raters)


def _own_wide(table: _Table, *, is_certain: bool) -> RatingLayout:
    """Return the layout of this project: the item first, then a column a rater."""
    first = table.header.columns[0]
    if table.by_role.get("item", first) != first:
        table.refuse(_not_clear(_likely(table)))
    raters = tuple(name for name in table.others() if name != first and not is_no_rater(name))
    if len(raters) == 1 and normalised(raters[0]) in ALIASES["label"]:
        return _long(table)
    if len(raters) < 2:
        rest = [name for name in table.others() if name != first]
        table.refuse(
            f"a row an item needs two raters or more; {_listed(raters) or 'no column'} is one: "
            f"{_raters_option(rest[:2])}, or --column rater=,label= for a row a rating"
        )
    holders = Counter(value for name in raters for value in table.folded(name))
    shared = {value for value, n in holders.items() if n > 1}
    for name in raters:
        why = _why_no_rater(table, name, shared)
        if why:
            rest = [other for other in raters if other != name]
            table.refuse(f"{name} {why}: {_raters_option(rest)} if {name} is no rater")
    _check_raters(table, raters, is_certain=is_certain)
    return _wide(table, raters)


def _why_no_rater(table: _Table, name: str, shared: set[str]) -> str:
    """Say what speaks against a column as a rater's; empty if nothing does."""
    values, folded = table.sample.values(name), table.folded(name)
    if not values:
        return ""
    parts = set(normalised(name).split("_"))
    if normalised(name) in ALIASES["label"] or parts & _UNCLEAR:
        return "may say something of the item"
    if _holds_dates(values):
        return "holds dates"
    if any(len(value) > LONG_TEXT for value in values):
        return f"holds texts of more than {LONG_TEXT} characters"
    if len(values) > FEW_ROWS and len(set(values)) > DIFFERENT * len(values):
        return "has another value in nearly every row"
    return "" if folded & shared else "shares no value with the other columns"


def _listed(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _names(raters: Sequence[str]) -> str:
    """Say that columns may hold the names of people."""
    return (
        f"{_listed(raters)} never agree: names of the reviewers? {_raters_option(raters)} if they "
        "are labels"
    )


def _check_raters(table: _Table, raters: Sequence[str], *, is_certain: bool) -> None:
    """Refuse columns of people's names, and two raters that never agree."""
    verdicts = set(map(normalised, table.header.columns))
    for name in raters:
        if any(f"{normalised(name)}_{given}" in verdicts for given in _GIVEN.split("|")):
            table.refuse(_names(raters))
    if len(raters) != 2 or is_certain:
        return
    texts = table.sample.texts
    both = [
        (words.fold(one), words.fold(other))
        for one, other in zip(texts[raters[0]], texts[raters[1]], strict=True)
        if not words.is_missing(one) and not words.is_missing(other)
    ]
    if len(both) >= FEW_ROWS and all(one != other for one, other in both):
        table.refuse(_names(raters))


def _wide(table: _Table, raters: tuple[str, ...]) -> RatingLayout:
    """Return the layout of a row an item with these columns of raters."""
    for role in ("rater", "label"):
        if role in table.by_role:
            table.refuse(
                f"--raters are for a row an item, --column {role}= for a row a rating: give one"
            )
    if len(raters) < 2:
        table.refuse(f"agreement needs two raters or more; {_listed(raters)} is one")
    table = _Table(
        header=table.header,
        sample=table.sample,
        chosen=table.chosen,
        apart=(*table.apart, *raters),
        by_role=table.by_role,
    )
    times = _time_columns(table, {*table.by_role.values(), *raters})
    item = _wide_item(table, times)
    used = {*item, *table.apart, *table.by_role.values()}
    return RatingLayout(
        layout="wide",
        item=item,
        raters=raters,
        times=tuple(times),
        not_read=tuple(name for name in table.header.columns if name not in used),
    )


def _wide_item(table: _Table, times: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that name the item of a row, together."""
    if "item" in table.chosen and table.chosen["item"] is None:
        return ()
    ids = [name for name in _ids(table) if table.sample.values(name)]
    named = [table.by_role["item"]] if "item" in table.by_role else ids
    if not named:
        return ()
    first = named[0]
    if not _repeats(table, (first,)):
        return (first,)
    # Few rows of one item are entries that were made twice; many are several answers to it.
    if table.sample.repeated(first) >= REPEATS and normalised(first) != "item":
        for name in named[1:]:
            if not _repeats(table, (name,)):
                return (name,)
    for name in (*table.header.there(ARMS, table.apart), *ids):
        parts = set(normalised(name).split("_"))
        if name not in (first, *times) and not parts & _CRITERIA:
            if not _repeats(table, (first, name)):
                return (first, name)
    telling = _wide_telling(table, first, times)
    if telling:
        value = next(iter(table.sample.values(telling)), "VALUE")
        table.refuse(
            f"{first} has several rows, told apart by {telling}: --where {telling}={value:.40}"
        )
    return (first,)


def _repeats(table: _Table, names: Sequence[str]) -> bool:
    keys = list(zip(*(table.sample.texts[name] for name in names), strict=True))
    return len(set(keys)) < len(keys)


def _wide_telling(table: _Table, item: str, times: Sequence[str]) -> str | None:
    """Return a column that tells apart the rows of every item with several."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(table.sample.texts[item]):
        rows[text].append(row)
    repeated = [same for same in rows.values() if len(same) > 1]
    raters = [name for name in table.apart if name in table.sample.texts]
    found = _telling(table, item, (item, raters[-1], *times), repeated)
    return next((name for name in found if not is_no_rater(name)), None)


def check_labels(texts: Iterable[str], place: str, column: str) -> None:
    """Refuse labels that are lists or objects.

    >>> check_labels(["good", "['good', 'late']"], "a.csv", "label")
    Traceback (most recent call last):
        ...
    calibration.errors.InputError: a.csv: label holds lists or objects, as "['good', 'late']": a \
label is one word; write one answer in each row, or name another column
    """
    for text in texts:
        if _NESTED.fullmatch(text):
            raise InputError(
                f"{place}: {column} holds lists or objects, as {text!r:.60}: a label is one word; "
                "write one answer in each row, or name another column"
            )
