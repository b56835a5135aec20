"""Everything that goes over the wire to a reviewer, searched for what they must not see.

A marker stands in every hidden field of every import format, in the name of every file, and in
what others said of the same traces.
"""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from calibration.analyses.trace_files import read_files, store_files
from calibration.records import LabelDraft, Verdict
from calibration.store import Store
from calibration.trace_formats import ImportSettings
from tests.browser.conftest import Server
from tests.browser.desk import Desk, Traffic

pytestmark = [pytest.mark.browser, pytest.mark.long]

HIDDEN = "XHIDDENX"

COST = 0.7654321

TRIAL = 974_711
CONFIDENCE, TOKENS = 0.3141592, 864_213
GRADE = "PASS"

SEEN = "what the reviewer reads"


def tau_bench() -> Any:
    task = {
        "user_id": f"{HIDDEN}-user", "outputs": [f"{HIDDEN}-output"],
        "actions": [{"name": f"{HIDDEN}_action", "kwargs": {"item": HIDDEN}}],
        "instruction": f"Return the lamp: {SEEN} (tau-bench)",
    }  # fmt: skip
    reward = {"reward": 0.0, "info": {"r_actions": 0.0, "gt_data_hash": HIDDEN}}
    info = {"task": task, "source": f"{HIDDEN}-source", "user_cost": COST, "reward_info": reward}
    traj = [
        {"role": "system", "content": "# Retail agent policy\n\nReturns are free."},
        {"role": "user", "content": "I want to return the lamp."},
        {"role": "assistant", "content": "Done."},
    ]
    return [{"task_id": 0, "reward": 0.0, "info": info, "traj": traj, "trial": 0}]


def tau2() -> Any:
    time = "2019-08-07T06:05:43"
    task = {
        "id": "snack",
        "description": {"purpose": f"{HIDDEN}-purpose", "notes": f"{HIDDEN}-notes"},
        "user_scenario": {"persona": f"{HIDDEN}-persona", "instructions": f"Buy: {SEEN} (tau2)"},
        "evaluation_criteria": {
            "actions": [{"name": f"{HIDDEN}_refuse", "arguments": {"why": HIDDEN}}],
            "communicate_info": [HIDDEN], "nl_assertions": [f"{HIDDEN}-assertion"],
            "reward_basis": ["DB"],
        },
    }  # fmt: skip
    said = [
        {"role": "assistant", "content": "Hello.", "cost": COST, "timestamp": time},
        {"role": "user", "content": "A snack.", "cost": COST},
        {"role": "assistant", "content": "No snacks here.", "usage": {"prompt_tokens": 5}},
    ]
    simulation = {
        "id": f"{HIDDEN}-simulation", "task_id": "snack", "trial": 0, "seed": 5, "duration": 9.0,
        "start_time": f"{time}.000000", "end_time": "2019-08-07T06:05:53.000000",
        "termination_reason": "user_stop", "agent_cost": COST, "user_cost": COST,
        "reward_info": {"reward": 0.0, "reward_breakdown": {HIDDEN: 0.0}}, "messages": said,
    }  # fmt: skip
    agent = {"implementation": f"{HIDDEN}-agent", "llm": f"{HIDDEN}-model", "llm_args": {HIDDEN: 0}}
    info = {
        "git_commit": f"{HIDDEN}-commit", "agent_info": agent,
        "environment_info": {"domain_name": "kiosk", "policy": "Sell tickets only."},
    }  # fmt: skip
    return {
        "timestamp": f"{time}.000000", "info": info, "tasks": [task], "simulations": [simulation],
    }  # fmt: skip


HIDDEN_OF_RECORD = {
    "task_id": f"{HIDDEN}-task", "trial": TRIAL, "model": f"{HIDDEN}-model", "cost_usd": COST,
    "agent_version": f"{HIDDEN}-version", "started_at": "2019-08-07T06:05:43",
    "success_criteria": f"{HIDDEN}-criteria", "confidence": CONFIDENCE, "context_tokens": TOKENS,
}  # fmt: skip

# CSV holds the same as JSON texts.
HIDDEN_LISTS: dict[str, Any] = {
    "expected_calls": [{"name": f"{HIDDEN}-call", "arguments": {HIDDEN: 1}, "step": HIDDEN}],
    "violations": [{"constraint": f"{HIDDEN}-rule", "severity": "high", "step": HIDDEN}],
}


def record(trace_id: str) -> dict[str, Any]:
    hidden = (
        HIDDEN_OF_RECORD
        | HIDDEN_LISTS
        | {
            "metadata": {HIDDEN: [HIDDEN]},
            f"{HIDDEN}-column": HIDDEN,
            "verdict": {"judge": f"{HIDDEN}-judge", "outcome": "abandoned", "reason": HIDDEN},
        }
    )
    shown = {"trace_id": trace_id, "workflow": "faq", "prompt": f"When: {SEEN} ({trace_id})"}
    return shown | {"response": "Monday.", "steps": [{"role": "user", "content": "hi"}]} | hidden


def transcript() -> dict[str, Any]:
    messages = [
        {"role": "user", "content": f"Refund: {SEEN} (transcript)"},
        {"role": "assistant", "content": "Done."},
    ]
    return {
        "task_id": f"{HIDDEN}-task", "trial_id": f"{HIDDEN}-trial", "workflow": "refunds",
        "model": f"{HIDDEN}-model", "messages": messages, "team": f"{HIDDEN}-team",
        "grading": {"reward": 1, "reason": f"{HIDDEN}-reason"}, **HIDDEN_LISTS,
        "confidence": CONFIDENCE, "context_tokens": TOKENS,
        "result": {"output": "Refunded.", "status": "completed", "cost_usd": COST},
    }  # fmt: skip


def graded_transcript() -> dict[str, Any]:
    """Return a run as evaluation logs print it, with its grades beside the messages."""
    messages = [
        {"role": "user", "content": f"Cancel: {SEEN} (graded)"},
        {"role": "assistant", "tool_call": "cancel(order=51)"},
        {"role": "tool", "result": "ok"},
        {"role": "assistant", "content": "Cancelled."},
    ]
    graders = {
        "code_grader": {"passed": True, "check": HIDDEN},
        "model_grader": {"score": COST, "reasoning": HIDDEN},
    }
    return {
        "task_id": f"{HIDDEN}-task", "trial_id": f"{HIDDEN}-trial", "transcript": messages,
        "tool_calls": [{"name": "cancel", "args": {"order": 51}, "latency_ms": 80}],
        "total_latency_ms": 4321, "timestamp": "2019-08-07T06:05:43", "grading": graders,
        "result": GRADE,
    }  # fmt: skip


def write_files(folder: Path) -> list[Path]:
    """Write one file of each format; its name is hidden too."""
    row = record("csv-1")
    flat = {k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()}
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, list(flat))
    writer.writeheader()
    writer.writerow(flat)
    files = {
        f"{HIDDEN}-retail.json": json.dumps(tau_bench()),
        f"{HIDDEN}-tau2.json": json.dumps(tau2()),
        f"{HIDDEN}-own.jsonl": json.dumps(record("jsonl-1")),
        f"{HIDDEN}-own.csv": table.getvalue(),
        f"{HIDDEN}-transcripts.jsonl": json.dumps(transcript()),
        f"{HIDDEN}-graded.jsonl": json.dumps(graded_transcript()),
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8", newline="")
    return [folder / name for name in files]


def build(path: Path, folder: Path) -> int:
    """Import every format, and let others say something of every trace."""
    with Store.open(path, create=True) as store:
        read = read_files(write_files(folder), ImportSettings())
        assert not read.set_aside, read.set_aside
        store_files(store, read, ImportSettings())
        ids = list(store.trace_frame()["trace_id"])
        batch = store.add_batch(
            purpose="production", trace_ids=ids, labels_wanted=2, design={"why": HIDDEN}
        )
        other = store.add_reviewer("Colleague")
        store.queue(other.reviewer_id, batch.batch_id, limit=len(ids))
        for trace_id in ids:
            store.record_label(
                LabelDraft(
                    client_token=f"{HIDDEN}-{trace_id}", trace_id=trace_id,
                    reviewer_id=other.reviewer_id, batch_id=batch.batch_id,
                    answers={"output": "no"}, rationale=f"{HIDDEN}-rationale",
                )
            )  # fmt: skip
            store.adjudicate(
                trace_id=trace_id, answers={"output": "no"}, adjudicator=HIDDEN, rationale=HIDDEN
            )
        store.add_verdicts(
            [
                Verdict(judge_id=f"{HIDDEN}-judge", trace_id=i, outcome="abandoned", reason=HIDDEN)
                for i in ids
            ]
        )
    return len(ids)


def seen_of_every_format(text: str) -> list[str]:
    """Return the formats of which a reviewer has read nothing: the search would find them."""
    formats = ("tau-bench", "tau2", "jsonl-1", "csv-1", "transcript", "graded")
    return [name for name in formats if f"{SEEN} ({name})" not in text]


def found_signs(text: str, *more: str) -> list[str]:
    """Return what is in the traffic and must not be."""
    signs = (HIDDEN, str(COST), str(CONFIDENCE), "2019-08", *more)
    found = [sign for sign in signs if sign in text]
    # As a number of its own: identifiers and times hold any digits by chance.
    return found + re.findall(rf"(?<![\w.-])(?:{TRIAL}|{TOKENS})(?![\w.-])", text)


def test_nothing_hidden_goes_over_the_wire(server: Server, page: Page, tmp_path: Path) -> None:
    n = build(server.store, tmp_path)
    server.start()
    traffic = Traffic(page)
    desk = Desk(page, server.url)
    desk.open("Anna B.")
    for _ in range(n):
        desk.label("complete")
    # Who has finished is shown no results either.
    for name in ("agreement", "asr"):
        traffic.heard()
        page.goto(f"{server.url}/{name}?reviewer=anna-b")
        page.get_by_text("This page is for leads.").wait_for()
    text = traffic.heard()
    assert seen_of_every_format(text) == []
    assert found_signs(text) == []
    # An examination may say PASS to its reviewer; a trace at the desk may not.
    assert re.findall(rf"(?<![\w.-]){GRADE}(?![\w.-])", text) == []


GOOD = "correct horse battery"

PAGES = (
    "overview", "agreement", "judge", "asr", "reliability", "data", "start", "people", "trace",
)  # fmt: skip

OTHERS = f"{HIDDEN}-colleague"


def team(path: Path) -> None:
    """Let a reviewer, a lead and an admin sign in; a colleague with a marked name has flagged."""
    with Store.open(path) as store:
        for name, role in (("Rea", "reviewer"), ("Leandra", "lead"), ("Adelheid", "admin")):
            store.set_passphrase(store.add_reviewer(name, role=role).reviewer_id, GOOD)
        store.add_reviewer(OTHERS)
        batch = store.batches()[0].batch_id
        for trace_id in store.trace_frame()["trace_id"]:
            store.record_flag(
                client_token=f"flag-{trace_id}", trace_id=trace_id, batch_id=batch,
                reviewer_id="colleague", flagged=True, reason=f"{HIDDEN}-flag",
            )  # fmt: skip


def enter(page: Page, url: str, name: str, traffic: Traffic) -> None:
    page.goto(url)
    traffic.heard()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Passphrase").fill(GOOD)
    page.get_by_role("button", name="Sign in").click()


@pytest.fixture
def traffic(server: Server, page: Page, tmp_path: Path) -> Traffic:
    """Let people sign in on the store of every format, and listen."""
    build(server.store, tmp_path)
    team(server.store)
    server.identities = None
    server.start()
    return Traffic(page)


def test_a_visitor_receives_nothing_of_it(server: Server, page: Page, traffic: Traffic) -> None:
    for name in ("", *PAGES, "_stcore/host-config", "media/x", "_stcore/agent/openapi.json"):
        traffic.heard()
        page.goto(f"{server.url}/{name}?reviewer=adelheid")
    page.get_by_label("Name").or_(page.get_by_text("Sign in first.")).first.wait_for()
    text = traffic.heard()
    assert found_signs(text, SEEN, "Leandra", "Colleague", "production-001") == []
    assert page.context.cookies() == []


def test_a_reviewer_receives_nothing_of_others(
    server: Server, page: Page, traffic: Traffic
) -> None:
    enter(page, server.url, "Rea", traffic)
    desk = Desk(page, server.url)
    desk.wait_painted("")
    while desk.get("state") != "finished":
        desk.label("complete")
    for name in PAGES:
        traffic.heard()
        page.goto(f"{server.url}/{name}?reviewer=adelheid")
        page.get_by_text("This page is for ").wait_for()
    text = traffic.heard()
    assert seen_of_every_format(text) == []
    assert found_signs(text, "Colleague", "Leandra", "Adelheid", "$argon2") == []


@pytest.mark.parametrize("name", ["Leandra", "Adelheid"])
def test_no_role_receives_a_secret(server: Server, page: Page, traffic: Traffic, name: str) -> None:
    enter(page, server.url, name, traffic)
    page.get_by_role("heading", name="Home").wait_for()
    for address in ("agreement", "data", "people"):
        traffic.heard()
        page.goto(f"{server.url}/{address}")
        page.get_by_test_id("stHeading").first.wait_for()
        page.wait_for_timeout(1_500)
    text = traffic.heard()
    (cookie,) = (c for c in page.context.cookies() if c["name"] == "asr_session")
    assert [s for s in ("$argon2", GOOD, cookie["value"]) if s in text] == []
    # What leads are shown of others is in the traffic, so the search above would find it too.
    assert "Colleague" in text


def test_a_lead_receives_nothing_of_a_trace_that_is_still_to_be_decided(
    server: Server, page: Page, traffic: Traffic
) -> None:
    enter(page, server.url, "Leandra", traffic)
    page.get_by_role("heading", name="Home").wait_for()
    alone = page.context.new_page()
    traffic = Traffic(alone)
    # By the id that is no secret: the other one would be in the traffic because it was asked for.
    alone.goto(f"{server.url}/trace?id=csv-1")
    alone.get_by_text(f"{SEEN} (csv-1)").wait_for()
    alone.wait_for_timeout(1_500)
    text = traffic.heard()
    assert found_signs(text) == []
    assert "Colleague" not in text
    alone.get_by_role("button", name="Show labels and verdicts").click()
    alone.get_by_text(f"{HIDDEN}-rationale").wait_for()
    assert found_signs(traffic.heard()) != []
