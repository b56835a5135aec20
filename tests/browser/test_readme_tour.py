"""The five minutes of the README, step by step in its own words, on the demo that it opens."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from calibration.analyses.demo import LEAD, build_demo
from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import settle
from tests.browser.test_agreement_page import SLOW_MS
from tests.browser.test_practice import Practice

pytestmark = [pytest.mark.browser, pytest.mark.long]
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def tour() -> dict[str, str]:
    """Return the numbered steps of the section, by the bold word that each begins with."""
    section = README.split("## Five minutes")[1].split("```")[0]
    parts = re.split(r"^\d\. \*\*(\w+)\.\*\* ", section, flags=re.M)
    return dict(zip(parts[1::2], (" ".join(p.split()) for p in parts[2::2]), strict=True))


def says(step: str, *words: str) -> None:
    """Refuse a test of what the README does not say (any more)."""
    assert [w for w in words if w not in step] == []


def test_the_tour_of_the_readme_is_true(server: Server, page: Page) -> None:
    steps = tour()
    assert list(steps) == ["Label", "Home", "Agreement", "Judge", "ASR", "Reliability"]
    with Store.open(server.store, create=True) as store:
        truth = build_demo(store, seed=1, unfinished=True)
    server.start()
    label(steps["Label"], Practice(page, server.url))
    home(steps["Home"], page)

    says(steps["Agreement"], "Three simulated reviewers labelled 300 of 2,000 production runs")
    to(page, "Agreement")
    shown(page, "Where disagreements start")

    says(steps["Judge"], "usable, for the rate and for single traces", "width of the interval")
    to(page, "Judge")
    shown(page, "For the rate:", "For single traces:", "Where the width of the interval comes from")

    said = "The judge alone gives 61 %: it is lenient, and the true rate is 57 %. The 300 human"
    says(steps["ASR"], said)
    assert f"{truth:.0%}" == "57%"
    to(page, "ASR", "Agent success rate")
    shown(page, "Of runs like these", "judge alone 61.")
    for name in re.findall("HTML|Markdown|JSON", steps["ASR"]):
        expect(page.get_by_role("button", name=name).first).to_be_visible()

    says(steps["Reliability"], "The demo repeats no task, so the page says what that takes.")
    to(page, "Reliability")
    shown(page, "no task was run twice.")


def label(step: str, desk: Practice) -> None:
    says(step, "Type a name and start practising.", "Certificate", "an examination of 70 traces")
    page = desk.page
    desk.open("Nora")  # a name, then "Start practising"
    named = re.findall(r"`(\S)`", step)
    assert named == ["Y", "N", "U", "S", "W", "H", "?", "R"]
    desk.press("?")
    keys = page.locator(".help-box dt kbd").all_inner_texts()
    assert [k for k in named if k not in keys] == []
    page.keyboard.press("Escape")

    first = desk.get("trace")
    desk.press("y")
    desk.press("u")  # the answer is taken back
    desk.press("h")
    expect(page.get_by_text("Handbook").first).to_be_visible()
    page.keyboard.press("Escape")
    desk.press("s")
    expect(page.get_by_text("Why skip this trace?")).to_be_visible()
    page.keyboard.press("Escape")
    desk.press("n")
    desk.wait_lesson()
    page.reload()  # nothing is lost
    desk.wait_painted(first)

    page.get_by_role("link", name="Certificate", exact=True).first.click()
    shown(page, "About 70 traces", "Chance to pass")
    assert page.get_by_role("link", name="Agreement", exact=True).count() == 0


def home(step: str, page: Page) -> None:
    says(
        step,
        "adjudicate two disagreements",
        "flagged trace",
        "labels drift",
        "label four more traces",
    )
    page.get_by_role("button", name="Someone else").click()
    page.get_by_role("button", name=LEAD).click()
    page.get_by_role("heading", name="Do next").wait_for(timeout=SLOW_MS)
    shown(page, "The agent success rate is 5")
    for link in ("Adjudicate 2 disagreements", "Look at", "Examine Cleo", "Label 4 more traces"):
        expect(page.get_by_role("link", name=link).first).to_be_visible()


def to(page: Page, name: str, heading: str = "") -> None:
    page.get_by_role("link", name=name, exact=True).first.click()
    head = page.get_by_role("heading", name=heading or name, exact=True)
    expect(head.first).to_be_visible(timeout=SLOW_MS)
    settle(page)


def shown(page: Page, *texts: str) -> None:
    for text in texts:
        expect(page.get_by_text(text).first).to_be_visible(timeout=SLOW_MS)
