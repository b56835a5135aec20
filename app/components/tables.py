"""Tables whose numbers can be clicked: which one was, and the traces behind it.

The choice is read from what the tables report at the start of a run, before they are drawn, so
that everything drawn in the run already goes by it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import streamlit as st

from calibration.analyses.agreement.traces import TraceSet
from calibration.reporting.document import notes
from calibration.statistics.estimate import Estimate

NOTHING: dict[str, Any] = {"selection": {"rows": [], "columns": [], "cells": []}}
Behind = Callable[[int, str], TraceSet | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of numbers.

    Parameters
    ----------
    key : str
    cells : DataFrame
    behind : callable
        The traces behind the number in a row and a column; None where there are none to list.
    alt : str
    config : mapping, optional
        Of the columns.
    estimates : sequence of (str, Estimate), optional
        What is in the table, by name: a reservation about one is explained below it.
    """

    key: str
    cells: pd.DataFrame
    behind: Behind
    alt: str
    config: Mapping[str, Any] = field(default_factory=dict)
    estimates: Sequence[tuple[str, Estimate]] = ()

    def show(self, *, hide_index: bool = True, shown: Any = None) -> None:
        """Draw the table; `shown` is the same cells in colours."""
        st.dataframe(
            self.cells if shown is None else shown,
            key=self.key, hide_index=hide_index, alt=self.alt, column_config=self.config,
            on_select="rerun", selection_mode="single-cell",
        )  # fmt: skip
        reasons = [line.removeprefix("+ ") for line in notes(self.estimates)]
        if reasons:
            st.text("\n".join(reasons))


def cell_of(key: str) -> tuple[int, str] | None:
    """Return row and column of the cell chosen in a table."""
    state = st.session_state.get(key) or NOTHING
    cells = state["selection"].get("cells") or []
    return (int(cells[0][0]), str(cells[0][1])) if cells else None


def mark_of(key: str, name: str) -> str | None:
    """Return the value of a field at the mark that is chosen in a chart."""
    state = st.session_state.get(key) or {"selection": {}}
    marks = state["selection"].get("mark") or []
    return str(marks[0][name]) if marks and name in marks[0] else None


@dataclass(frozen=True, slots=True)
class Picks:
    """What is chosen on one page; the keys of everything that can be clicked begin with `prefix`.

    Parameters
    ----------
    prefix : str
    """

    prefix: str

    def key(self, name: str) -> str:
        """Return the key of an element of the page."""
        return self.prefix + name

    @property
    def trace(self) -> str:
        """The key of the list of traces."""
        return self.key("trace")

    @property
    def listing(self) -> str:
        """The key of the section with the list: a choice opens it."""
        return self.key("listing")

    def chart_key(self, name: str) -> str:
        """Return the key of a chart: another after each reset, for a chart cannot be cleared."""
        return f"{self.prefix}{name}_{st.session_state.get(self.key('round'), 0)}"

    def settle(
        self,
        tables: Sequence[Table],
        charts: Mapping[str, tuple[str, Callable[[str], TraceSet]]],
        now: str,
    ) -> TraceSet | None:
        """Return the traces that the page is to list, or None for those it lists by itself.

        Parameters
        ----------
        tables : sequence of Table
        charts : mapping of str to (field, callable)
            By name: the field of a mark, and the traces behind its value.
        now : str
            Fingerprint of what is shown: a choice made on other numbers is dropped.
        """
        state = st.session_state
        last: dict[str, Any] = state.get(self.key("last"), {})
        if last.get("now") != now:
            self.reset()
            state[self.key("last")] = {"now": now}
            return None
        for table in tables:
            if table.key not in state:
                # Its section is closed: what was chosen in it stays chosen.
                last.pop(table.key, None)
                continue
            chosen = cell_of(table.key)
            if chosen != last.get(table.key):
                found = None if chosen is None else table.behind(*chosen)
                self._choose(table.key, tables, found, chosen)
                return self.active()
        for name, (of, behind) in charts.items():
            key = self.chart_key(name)
            if key not in state:
                last.pop(key, None)
                continue
            mark = mark_of(key, of)
            if mark != last.get(key):
                self._choose(key, tables, None if mark is None else behind(mark), mark)
                return self.active()
        return self.active()

    def _choose(
        self, key: str, tables: Sequence[Table], found: TraceSet | None, chosen: Any
    ) -> None:
        state = st.session_state
        for table in tables:
            if table.key != key and cell_of(table.key) is not None:
                state[table.key] = NOTHING
        state[self.trace] = NOTHING
        state[self.key("active")] = found
        state[self.key("last")] = {"now": state[self.key("last")]["now"], key: chosen}
        if found is not None:
            state[self.listing] = True

    def active(self) -> TraceSet | None:
        """Return the traces chosen."""
        found: TraceSet | None = st.session_state.get(self.key("active"))
        return found

    def choose(self, found: TraceSet) -> None:
        """List these traces; a callback of a button."""
        self.reset()
        st.session_state[self.key("active")] = found
        st.session_state[self.listing] = True

    def reset(self) -> None:
        """Take the choice back in every table and chart; a callback, or before they are drawn."""
        state = st.session_state
        for key in [k for k in map(str, state) if k.startswith(self.prefix) and _is_cell(state[k])]:
            state[key] = NOTHING
        state[self.key("round")] = state.get(self.key("round"), 0) + 1
        state[self.key("active")] = None
        state[self.key("last")] = {"now": state.get(self.key("last"), {}).get("now")}


AGREEMENT, JUDGE, ASR = Picks("agreement_"), Picks("judge_"), Picks("asr_")
RELIABILITY = Picks("reliability_")


def _is_cell(value: Any) -> bool:
    """Whether this is what a table reports while a cell of it is chosen."""
    return isinstance(value, Mapping) and bool(value.get("selection", {}).get("cells"))
