"""The pages in a real browser: what script adds, and that nothing a repository holds runs. Skipped where there is no
Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.test_web import PAGES, Site, make

pytestmark = pytest.mark.slow
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: run make install")
_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if _CHROMIUM is None:
    pytest.skip("there is no Chromium (apt-get install chromium)", allow_module_level=True)
ROOT = Path(__file__).parents[2]


class Tab:
    """A page with everything that it complained of or asked others for."""

    def __init__(self, page: Any, site: Site) -> None:
        self.page, self.site, self.wrong = page, site, list[str]()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: (self.wrong.append("a dialog"), dialog.dismiss()))
        page.on("request", self._look)

    def _hear(self, said: Any) -> None:
        if said.type in ("error", "warning"):
            self.wrong.append(f"{said.text} {said.location['url']}")

    def _look(self, request: Any) -> None:
        if not request.url.startswith(f"http://127.0.0.1:{self.site.port}/"):
            self.wrong.append(f"asks {request.url}")

    def open(self, path: str) -> Any:
        self.page.goto(f"http://127.0.0.1:{self.site.port}{path}")
        return self.page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    found = Site(make(tmp_path_factory.mktemp("web") / "repo"))
    found.enter()
    yield found
    found.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as play:
        found = play.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def open_tab(browser: Any, site: Site, **options: Any) -> Tab:
    context = browser.new_context(**options)
    name, _, value = site.cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}])
    return Tab(context.new_page(), site)


def test_no_page_complains_runs_anything_or_asks_others(browser: Any, site: Site):
    tab = open_tab(browser, site)
    for path in PAGES:
        tab.open(path)
    # A status that is none of 200 is told on the console, and meant.
    assert [said for said in tab.wrong if not re.search(r"the server responded with a status of 40[04]", said)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_narrow_screen_in_light_and_dark(browser: Any, site: Site, scheme: str):
    tab = open_tab(browser, site, color_scheme=scheme, viewport={"width": 360, "height": 700})
    for path in PAGES:
        page = tab.open(path)
        assert (path, page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")) == (path, True)
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") is (scheme == "light")


def test_pages_can_be_read_without_script(browser: Any, site: Site):
    tab = open_tab(browser, site, java_script_enabled=False)
    page = tab.open("/")
    page.fill("#q", "save")
    page.press("#q", "Enter")
    page.click("main a.place >> nth=0")
    assert "def save" in page.inner_text("pre.code")
    page.click("pre.code a.n.certain >> nth=0")
    assert "/source?" in page.url


def test_names_are_offered_while_one_writes(browser: Any, site: Site):
    tab = open_tab(browser, site)
    page = tab.open("/")
    page.focus("#q")
    page.keyboard.type("sav", delay=20)
    page.wait_for_selector("[role=option]")
    assert page.inner_text("[role=option] >> nth=0") == "save"
    assert page.get_attribute("#q", "aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("[role=option] >> nth=0", "aria-selected") == "true"
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=save")
    assert tab.wrong == []


def test_a_name_under_the_pointer_is_told_and_lit_everywhere(browser: Any, site: Site):
    tab = open_tab(browser, site)
    page = tab.open("/source?path=app/use.py")
    page.hover("pre.code a.n.certain:text-is('store')")
    assert page.locator(".lit").count() == 2
    page.hover("pre.code a.n.certain:has-text('check') >> nth=-1")
    page.wait_for_selector(".panel")
    assert "def check(row)" in page.inner_text(".panel")
    assert "as it is written" in page.inner_text(".panel")
    page.keyboard.press("Escape")
    assert page.locator(".panel").count() == 0
    page.click("pre.code a.n.certain:has-text('check') >> nth=-1")
    page.wait_for_url(re.compile(r"/source\?path=app/db.py&line=10#L10$"))
    assert tab.wrong == []


def test_keys_lead_to_pages_and_are_listed(browser: Any, site: Site):
    tab = open_tab(browser, site)
    page = tab.open("/")
    page.keyboard.press("?")
    assert "the map" in page.inner_text("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="detached")
    page.keyboard.press("m")
    page.wait_for_url("**/map")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("m")  # is a letter there
    assert page.url.endswith("/map")
    assert tab.wrong == []


def test_who_breaks_if_this_changes_takes_few_clicks(browser: Any, site: Site):
    tab = open_tab(browser, site)
    page = tab.open("/search?q=check")
    page.click("section.definitions a.place, main a.place >> nth=0")
    page.click("pre.code a.definition:has-text('check')")
    page.click("text=What breaks if it changes")
    said = page.inner_text("main")
    assert "Store.save" in said
    assert "main" in said
    assert tab.wrong == []


def test_an_open_page_follows_its_file(browser: Any, site: Site):
    root = Path(str(site.process.args[site.process.args.index("--root") + 1]))  # type: ignore[union-attr, index]
    (root / "app" / "later.py").write_text("def first(): ...\n")
    tab = open_tab(browser, site)
    page = tab.open("/source?path=app/later.py")
    assert page.locator("pre.code a.n:has-text('first')").count() == 1
    page.wait_for_timeout(2500)  # the server has seen the state of now
    (root / "app" / "later.py").write_text("def first(): ...\ndef second(): ...\n")
    page.wait_for_selector("pre.code a.n:has-text('second')", timeout=15_000)
    # While it is written anew there may be no such file for a moment.
    assert [said for said in tab.wrong if "status of 404" not in said] == []


def test_the_bundles_are_those_of_their_sources(tmp_path: Path):
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("node is not installed: who changes web/ runs make web")
    work = tmp_path / "web"
    shutil.copytree(ROOT / "web", work, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=work, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip("the registry of npm cannot be reached")
    script = json.loads((work / "package.json").read_text())["scripts"]["build"].split(" --outdir=")[0]
    for _ in range(2):
        subprocess.run([npm, "exec", "--", *script.split(), "--outdir=out"], cwd=work, check=True, capture_output=True)
        for name in ("cq.js", "events.js"):
            kept = ROOT / "src" / "cq" / "surfaces" / "web" / "static" / name
            assert (work / "out" / name).read_bytes() == kept.read_bytes(), "run make web"
