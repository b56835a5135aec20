"""Set up: from no store to people who label, step by step; what is done is ticked and folded."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import pandas as pd
import streamlit as st

from app import frame, session
from app.components import people as adding
from app.views.data import imports
from calibration.analyses.reviewers.examinations import NO_SET, add_practice
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.analyses.status import FIRST_BATCH, production_batches
from calibration.errors import CalibrationError
from calibration.records import Workflow
from calibration.store import Store, TraceFilter, is_loopback
from calibration.text import counted, sentence

STEP, PLACE = "step", "start_place"

EVERY = "every workflow"

# Fewer cannot disagree.
PEOPLE = 2


@dataclass(frozen=True, slots=True)
class Step:
    """A step by its name in the address; `answer` is what was done there, empty if nothing was."""

    name: str
    title: str
    answer: str
    draw: Callable[[Store], None]


def _steps(store: Store) -> list[Step]:
    n = store.count_traces(TraceFilter())
    people = [person for person in store.reviewers() if not person.simulated]
    shared = [b for b in store.batches() if b.purpose == "practice" and b.reviewer_id is None]
    drawn = production_batches(store)
    newest = f"{drawn[0].batch_id}, {counted(drawn[0].n_items, 'trace')}" if drawn else ""
    return [
        Step("traces", "Import traces", counted(n, "trace") if n else "", _traces),
        Step(
            "people", "Add people", f"{len(people)} people" if len(people) >= PEOPLE else "",
            _people,
        ),
        Step(
            "practice", "Offer practice", counted(shared[0].n_items, "trace") if shared else "",
            _practice,
        ),
        Step("batch", "Draw the first batch", newest, _batch),
        Step("label", "Start labelling", "", _label),
    ]  # fmt: skip


def _place(steps: list[Step]) -> str:
    """Return the step that is open: the one asked for, else the first that labelling waits for."""
    asked = st.query_params.get(STEP) or st.session_state.get(PLACE)
    if any(step.name == asked for step in steps):
        return str(asked)
    done = {step.name for step in steps if step.answer} | {"practice"}
    return "label" if "batch" in done else next(s.name for s in steps if s.name not in done)


def _go(name: str) -> None:
    # In the address for a reload, in the session for who comes back from another page.
    st.session_state[PLACE] = name
    if st.query_params.get(STEP) != name:
        st.query_params[STEP] = name


# Each step


def _traces(store: Store) -> None:
    st.text("What your agent did: logs and traces of a known format, or a table of your own.")
    imports.show(store)
    with st.expander("Cost ceilings"):
        _ceilings(store)
    frame.command_line("import FILES --workflow NAME --ceiling 0.30 --unit ticket")


def _ceilings(store: Store) -> None:
    st.text(
        "A workflow is a kind of task your agent does; its ceiling is what one run (or ticket, "
        "document, ...) may cost. A run beyond its ceiling earns less."
    )
    known = store.workflows()
    table = pd.DataFrame(
        {
            "workflow": [w.name for w in known.values()],
            "ceiling_usd": [w.ceiling_usd for w in known.values()],
            "unit": [w.unit for w in known.values()],
        }
    ).astype({"workflow": "str", "ceiling_usd": "float64", "unit": "str"})
    edited = st.data_editor(
        table,
        key="start_workflows",
        num_rows="dynamic",
        hide_index=True,
        column_config={
            "workflow": st.column_config.TextColumn("Workflow", required=True, max_chars=80),
            "ceiling_usd": st.column_config.NumberColumn(
                "Ceiling (USD per unit; empty: none)", min_value=0.0001, format="%.4f"
            ),
            "unit": st.column_config.TextColumn("Unit", default="task", max_chars=40),
        },
    )
    st.button(
        "Save ceilings", key="start_ceilings", on_click=frame.attempt,
        args=(lambda: _save_ceilings(store, edited),),
    )  # fmt: skip


def _save_ceilings(store: Store, edited: pd.DataFrame) -> str:
    known, changed = store.workflows(), 0
    for row in edited.to_dict("records"):
        name = str(row["workflow"] or "").strip()
        ceiling = row["ceiling_usd"]
        wanted = Workflow(
            name=name,
            ceiling_usd=None if pd.isna(ceiling) else float(ceiling),
            unit=str(row["unit"] or "").strip() or "task",
        )
        if name and known.get(name) != wanted:
            store.set_workflow(wanted)
            changed += 1
    return f"{counted(changed, 'workflow')} changed." if changed else "Nothing to change."


def _people(store: Store) -> None:
    st.text("Two people label the same traces, so that you see how far they agree.")
    people = [person for person in store.reviewers() if not person.simulated]
    if people:
        table = pd.DataFrame({"name": [p.name for p in people], "role": [p.role for p in people]})
        st.table(table, hide_index=True, alt="People of this store")
    if session.signs_in(store) and not session.is_admin(store):
        st.text("An admin adds people. Ask one, and continue meanwhile.")
        return
    adding.add(store)
    adding.handed_over()
    frame.command_line('people add "NAME"', 'people passphrase "NAME" --generate')


def _practice(store: Store) -> None:
    st.text(
        "Optional. Before they label real runs, reviewers practise on traces whose right answer "
        "is known, and see after each label what it is and why. Your own set: asr reference add."
    )
    known = session.reference_set(store).forms
    forms = [name for name, ids in known.items() if ids and name.endswith("practice")]
    if not forms:
        st.text(NO_SET)
        frame.command_line("reference draft our-cases", "reference add our-cases --name ours")
        return
    form = st.selectbox("Reference set", forms, key="start_form")
    there = [
        b for b in store.batches()
        if b.purpose == "practice" and b.reviewer_id is None and b.design.get("form") == form
    ]  # fmt: skip
    if there:
        st.text(f"Reviewers can practise on {counted(there[0].n_items, 'trace')}.")
    st.button(
        "Offer practice", key="start_practise", disabled=bool(there), on_click=frame.attempt,
        args=(lambda: _put_practice(store, form),),
    )  # fmt: skip
    frame.command_line(f"reference practise --form {form}")


def _put_practice(store: Store, form: str) -> str:
    add_practice(store, session.reference_set(store), form=form)
    return ""


def _batch(store: Store) -> None:
    st.text(
        "A random sample of your runs, in random order: what is labelled when you stop is a random "
        "sample too. Two labels a trace show how far reviewers agree."
    )
    traces = store.production_traces()
    if traces.empty:
        frame.nothing_yet(store)
        return
    workflow = st.selectbox("From", [EVERY, *sorted(traces["workflow"].unique())], key="start_from")
    chosen = None if workflow == EVERY else workflow
    available = len(traces) if chosen is None else int((traces["workflow"] == chosen).sum())
    left, middle, right = st.columns(3)
    n = left.number_input("Traces", 1, available, min(FIRST_BATCH, available), key="start_n")
    wanted = middle.number_input("Labels a trace", 1, 10, 2, key="start_wanted")
    seed = right.number_input("Seed", 0, 2**31 - 1, 1, key="start_seed")
    st.button(
        "Draw the batch", key="start_draw", type="primary", on_click=frame.attempt,
        args=(lambda: _draw(store),),
    )  # fmt: skip
    if production_batches(store):
        with st.expander("Name a batch, or assign it to people"):
            _change(store)
    from_one = f" --workflow {chosen}" if chosen else ""
    frame.command_line(f"sample --n {n} --seed {seed}{from_one} --labels-wanted {wanted}")


def _change(store: Store) -> None:
    """Let a lead name a batch and say who labels it."""
    drawn = {b.batch_id: b for b in production_batches(store)}
    batch_id = st.selectbox(
        "Batch", list(drawn), key="start_of", format_func=lambda name: drawn[name].title
    )
    batch, names = drawn[batch_id], session.reviewer_names(store)
    with st.form("start_change", border=False):
        name, who, press = st.columns([3, 5, 1], vertical_alignment="bottom")
        name.text_input(
            "Name", batch.name, key=f"start_called_{batch_id}", max_chars=60, placeholder=batch_id
        )
        who.multiselect(
            "Who labels it", list(names), list(batch.people), key=f"start_assigned_{batch_id}",
            format_func=names.__getitem__, placeholder="Everybody", select_all=False,
        )  # fmt: skip
        press.form_submit_button(
            "Save", key="start_save", on_click=frame.attempt, width="stretch",
            args=(lambda: _changed(store, batch_id),),
        )  # fmt: skip


def _changed(store: Store, batch_id: str) -> str:
    called = st.session_state[f"start_called_{batch_id}"]
    people = st.session_state[f"start_assigned_{batch_id}"]
    store.rename_batch(batch_id, called)
    batch = store.assign_batch(batch_id, people)
    names = session.reviewer_names(store)
    whose = ", ".join(names[who] for who in batch.people) or "everybody"
    return f"{batch.title} is for {whose}."


def _draw(store: Store) -> str:
    # As they are now: what was typed last comes with the press, after the page was drawn.
    state = st.session_state
    workflow = None if state["start_from"] == EVERY else state["start_from"]
    design = SamplingDesign(
        seed=int(state["start_seed"]), workflow=workflow,
        labels_wanted=int(state["start_wanted"]), once=True,  # asked for twice, stored once
    )  # fmt: skip
    batch = draw_batch(store, design, n=int(state["start_n"]))
    _go("label")
    return f"{batch.batch_id} is drawn: {counted(batch.n_items, 'trace')}."


def _label(store: Store) -> None:
    drawn = production_batches(store)
    if not drawn:
        frame.nothing_yet(store)
        return
    st.text("Everything is ready. Open the Label page, or send its address to the reviewers:")
    address = session.address("label")
    st.code(address, language=None, wrap_lines=True)
    if session.signs_in(store):
        st.text("They sign in with their name and what you gave them.")
    adding.handed_over()
    if is_loopback(urlsplit(address).hostname):
        st.text("This address opens on this machine only. For others, restart the server:")
        frame.command_line("serve --host 0.0.0.0")
    if st.button("Open the Label page", key="start_label", type="primary"):
        st.switch_page("views/label.py", query_params={"batch": drawn[0].batch_id})


# The page


def _make_store() -> str:
    session.create_store()
    return ""


def _page() -> None:
    st.header("Set up", anchor=False)
    if not session.store_path().exists():
        frame.said()
        st.text(f"Everything lives in one file. There is none yet at {session.store_path()}.")
        st.button(
            "Create the store", key="start_make", type="primary", on_click=frame.attempt,
            args=(_make_store,),
        )  # fmt: skip
        frame.command_line("import FILES --workflow NAME --ceiling 0.30 --unit ticket")
        return
    store = session.require_store()
    steps = _steps(store)
    place = _place(steps)
    _go(place)  # and there it stays when the step is done: one reads what became of it
    with st.container(key="start_steps", gap="xsmall"):
        _list(store, steps, place)


def _list(store: Store, steps: list[Step], place: str) -> None:
    """Draw the open step, and of the others the headings."""
    for number, step in enumerate(steps):
        answer = f": {step.answer}" if step.answer else ""
        title = f"{'✓ ' * bool(step.answer)}{number + 1}. {step.title}{answer}"
        if step.name != place:
            st.button(
                frame.plain(title), key=f"start_open_{step.name}", type="tertiary", on_click=_go,
                args=(step.name,),
            )  # fmt: skip
            continue
        with st.container(border=True, key=f"start_step_{step.name}"):
            st.subheader(frame.plain(title), anchor=False)
            frame.said()
            try:
                step.draw(store)
            except CalibrationError as error:
                st.text(sentence(str(error)))
            if number + 1 < len(steps):
                st.button(
                    f"Continue: {steps[number + 1].title.lower()}", key="start_next", on_click=_go,
                    args=(steps[number + 1].name,), type="primary" if answer else "secondary",
                )  # fmt: skip


with st.container(key="page"):
    _page()
