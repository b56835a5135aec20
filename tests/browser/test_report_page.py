"""The HTML report opens from a file, asks for nothing, runs nothing, and fits phone and paper."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request

from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.report import ReportOptions
from calibration.reporting.render_html import html
from calibration.reporting.sections.success_rate import document
from tests.analyses.production_files import HOSTILE, alike, write
from tests.browser.conftest import NOT_RUN
from tests.browser.test_accessibility import AXE

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = []
    for week in range(10):
        share = 10 if week == 8 else 30
        every = {"started_at": f"2026-{9 + week // 4:02d}-{1 + 7 * (week % 4):02d}T08:00:00Z"}
        rows += alike(f"w{week}-", {"complete": share, "abandoned": 40 - share}, **every)
    for k, row in enumerate(rows):
        row |= {"model": HOSTILE[k % len(HOSTILE)], "tags": HOSTILE[k % 3], "latency_s": 2 + k % 9}
    folder = tmp_path_factory.mktemp("page")
    runs = write(folder / "runs.csv", rows)
    made = report_on_files([runs], options=ReportOptions(n_resamples=100))
    page = folder / "report.html"
    page.write_text(html(document(made)), encoding="utf-8")
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_it_fits_and_asks_for_nothing(
    browser: Browser | None, file: Path, width: int, scheme: str
) -> None:
    if browser is None:
        pytest.skip(NOT_RUN)
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    asked: list[Request] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.goto(file.as_uri())
    page.wait_for_load_state("networkidle")
    for summary in page.locator("summary").all():
        summary.click()
    assert [request.url for request in asked] == [file.as_uri()]
    assert said == []
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) == 0
    assert page.locator("script, img, iframe, link, object, a").count() == 0
    for drawing in page.locator("svg[role=img]").all():
        assert drawing.get_attribute("aria-label") or drawing.get_attribute("aria-labelledby")
    context.close()


def test_a_script_that_got_in_would_not_run(browser: Browser | None, file: Path) -> None:
    if browser is None:
        pytest.skip(NOT_RUN)
    evil = file.with_name("evil.html")
    attack = "<script>document.title='run'</script><img src='http://127.0.0.1:9/x'></main>"
    evil.write_text(file.read_text("utf-8").replace("</main>", attack), encoding="utf-8")
    page = browser.new_page()
    asked: list[str] = []
    page.on("requestfinished", lambda request: asked.append(request.url))
    page.goto(evil.as_uri())
    assert page.title() == "Agent Success Rate report"
    assert asked == [evil.as_uri()]
    page.close()


def test_it_prints_with_every_table(browser: Browser | None, file: Path) -> None:
    if browser is None:
        pytest.skip(NOT_RUN)
    page = browser.new_page()
    page.goto(file.as_uri())
    printed = page.pdf(prefer_css_page_size=True, print_background=True)
    assert re.search(rb"/MediaBox ?\[ ?0 0 59[45]\.?\d* 84[12]", printed)  # A4 in points
    assert 3 <= len(re.findall(rb"/Type ?/Page\b", printed)) <= 12
    page.emulate_media(media="print")
    week = page.locator("details td, details th").filter(has_text="2026-W3").first
    assert week.is_visible()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(page: Page, file: Path, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(file.as_uri())
    page.evaluate(AXE)
    found = page.evaluate("async () => (await axe.run()).violations")
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found] == []
