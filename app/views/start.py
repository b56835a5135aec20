"""First run: five screens from nothing to the first batch, each with its command."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from app import session
from calibration.analyses.reviewers.examinations import add_practice
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.errors import CalibrationError
from calibration.records import Workflow
from calibration.store import Store

STEP = "step"
REFUSAL, DONE = "start_refused", "start_done"


def _store() -> Store | None:
    return session.require_store() if session.store_path().exists() else None


def _attempt(act: Callable[[], str]) -> None:
    """Do what a button asks for; say what became of it on the next run."""
    try:
        st.session_state[DONE] = act()
    except CalibrationError as error:
        st.session_state[REFUSAL] = str(error)


def _ceilings() -> None:
    st.text(
        "Everything lives in one file. A workflow is a kind of task your agent does; its ceiling "
        "is what one run (or ticket, document, ...) may cost. A run beyond its ceiling earns less."
    )
    path = session.store_path()
    store = _store()
    if store is None:
        st.text(f"There is no store yet at {path}.")
        st.button(
            "Make the store",
            key="start_make",
            on_click=_attempt,
            args=(lambda: (session.create_store(), "The store is made.")[1],),
        )
        _command("import FILES --workflow NAME --ceiling 0.30 --unit ticket")
        return
    st.text(f"The store is at {path}.")
    known = store.workflows()
    frame = pd.DataFrame(
        {
            "workflow": [w.name for w in known.values()],
            "ceiling_usd": [w.ceiling_usd for w in known.values()],
            "unit": [w.unit for w in known.values()],
        }
    ).astype({"workflow": "str", "ceiling_usd": "float64", "unit": "str"})
    edited = st.data_editor(
        frame,
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
        "Keep these ceilings",
        key="start_ceilings",
        on_click=_attempt,
        args=(lambda: _keep_ceilings(store, edited),),
    )
    _command("import FILES --workflow NAME --ceiling 0.30 --unit ticket")


def _keep_ceilings(store: Store, edited: pd.DataFrame) -> str:
    known, kept = store.workflows(), 0
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
            kept += 1
    return f"{kept} workflows changed." if kept else "Nothing to change."


def _traces() -> None:
    store = _store()
    n = 0 if store is None else len(store.production_traces())
    st.text("Bring in what your agent did: tau-bench or tau2-bench results, or JSONL or CSV.")
    st.text(f"{n:,} traces are in the store." if n else "No traces are in the store yet.")
    if store is not None:
        st.page_link("views/data/page.py", label="Choose files and look at them on the Data page")
    _command("import results/*.json --workflow NAME --ceiling 0.30 --unit ticket")


def _people() -> None:
    st.text(
        "Reviewers label; leads also see what everybody said. Two or more reviewers are needed to "
        "measure agreement."
    )
    store = _store()
    if store is None:
        _first_the_store('reviewer "NAME"')
        return
    people = [p for p in store.reviewers() if not p.simulated]
    if people:
        frame = pd.DataFrame({"name": [p.name for p in people], "role": [p.role for p in people]})
        st.table(frame, hide_index=True, alt="People of this store")
    else:
        st.text("Nobody yet.")
    with st.form("start_people", border=False, clear_on_submit=True):
        name = st.text_input("Name", max_chars=80, key="start_name")
        lead = st.checkbox("Lead", key="start_lead")
        if st.form_submit_button("Add", key="start_add"):
            _attempt(
                lambda: (
                    f"{session.add_person(store, name, 'lead' if lead else 'reviewer').name} "
                    "can label."
                )
            )
            st.rerun()
    _command('reviewer "NAME"')


def _practice() -> None:
    st.text(
        "Before they label real runs, reviewers practise on traces whose right answer is known, "
        "and see after each label what it is and why. Your own set: asr reference add."
    )
    store = _store()
    if store is None:
        _first_the_store("reference practise")
        return
    forms = [name for name in session.reference_set(store).forms if name.endswith("practice")]
    form = st.selectbox("Reference set", forms, key="start_form")
    shared = [b for b in store.batches() if b.purpose == "practice" and b.reviewer_id is None]
    there = [b for b in shared if b.design.get("form") == form]
    if there:
        st.text(f"{there[0].n_items} traces to practise on are in the store ({there[0].batch_id}).")
    st.button(
        "Put it into the store",
        key="start_practise",
        disabled=bool(there),
        on_click=_attempt,
        args=(lambda: _put_practice(store, form),),
    )
    _command(f"reference practise --form {form}")


def _put_practice(store: Store, form: str) -> str:
    batch = add_practice(store, session.reference_set(store), form=form)
    return f"{batch.n_items} traces to practise on, batch {batch.batch_id}."


def _first_batch() -> None:
    st.text(
        "A random sample of your runs, in random order: what is labelled when you stop is a random "
        "sample too. Two labels a trace show how far reviewers agree."
    )
    store = _store()
    frame = None if store is None else store.production_traces()
    if store is None or frame is None or frame.empty:
        st.text("There are no traces to draw from yet: bring some in first.")
        _command("sample --n 40 --seed 1")
        return
    everything = "every workflow"
    workflow = st.selectbox(
        "From", [everything, *sorted(frame["workflow"].unique())], key="start_from"
    )
    chosen = None if workflow == everything else workflow
    available = len(frame) if chosen is None else int((frame["workflow"] == chosen).sum())
    left, middle, right = st.columns(3)
    n = left.number_input("Traces", 1, available, min(200, available), key="start_n")
    wanted = middle.number_input("Labels a trace", 1, 10, 2, key="start_wanted")
    seed = right.number_input("Seed", 0, 2**31 - 1, 1, key="start_seed")
    st.button(
        "Draw the batch",
        key="start_draw",
        on_click=_attempt,
        args=(lambda: _draw(store, int(n), int(seed), chosen, int(wanted)),),
    )
    from_one = f" --workflow {chosen}" if chosen else ""
    _command(f"sample --n {n} --seed {seed}{from_one} --labels-wanted {wanted}")


def _draw(store: Store, n: int, seed: int, workflow: str | None, wanted: int) -> str:
    batch = draw_batch(
        store, SamplingDesign(seed=seed, workflow=workflow, labels_wanted=wanted), n=n
    )
    return f"Batch {batch.batch_id}: {batch.n_items} traces. It waits on the Label page."


def _first_the_store(words: str) -> None:
    st.text("Make the store first (screen 1).")
    _command(words)


def _command(words: str) -> None:
    st.caption("The same on the command line")
    st.code(session.command(words), language=None, wrap_lines=True)


SCREENS: tuple[tuple[str, Callable[[], None]], ...] = (
    ("Store and ceilings", _ceilings),
    ("Traces", _traces),
    ("People", _people),
    ("Practice", _practice),
    ("First batch", _first_batch),
)


def _go(step: int) -> None:
    st.query_params[STEP] = str(step + 1)


def _page() -> None:
    asked = st.query_params.get(STEP, "1")
    step = min(len(SCREENS), max(1, int(asked) if asked.isdecimal() else 1)) - 1
    title, screen = SCREENS[step]
    st.header("Set up", anchor=False)
    with st.container(horizontal=True):
        for number, (name, _) in enumerate(SCREENS):
            st.button(
                f"{number + 1}. {name}",
                key=f"start_screen_{number + 1}",
                type="secondary" if number == step else "tertiary",
                on_click=_go,
                args=(number,),
            )
    st.subheader(title, anchor=False)
    if refusal := st.session_state.pop(REFUSAL, ""):
        st.text(refusal)
    if done := st.session_state.pop(DONE, ""):
        st.text(done)
    try:
        screen()
    except CalibrationError as error:
        st.text(str(error))
    with st.container(horizontal=True):
        if step:
            st.button("Back", key="start_back", on_click=_go, args=(step - 1,))
        if step + 1 < len(SCREENS):
            st.button("Next, or skip this", key="start_next", on_click=_go, args=(step + 1,))
        else:
            st.page_link("views/label.py", label="To the Label page")


with st.container(key="page"):
    _page()
