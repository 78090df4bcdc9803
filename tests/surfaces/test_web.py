"""The pages over real HTTP: who sees them, what they hold, and that each says what its command says."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from cq.model.answer import MeantName, NamesDetails
from cq.questions.table import QUESTIONS
from cq.surfaces.render.treemap import _lay_out
from cq.surfaces.web.app import choose_question
from cq.surfaces.web.show import find_window, show_lines
from tests.support.agents import environment

pytestmark = pytest.mark.slow

PAYLOAD = "<img src=x onerror=alert(1)>"
FILES = {
    "app/db.py": (
        f'"""{PAYLOAD}"""\nLIMIT = 3\n\nclass Store:\n    """Holds {PAYLOAD} and javascript:alert(1)."""\n\n'
        "    def save(self, row):\n        return check(row)\n\ndef check(row):\n    return row\n"
    ),
    "app/use.py": "from app.db import Store, check\n\ndef main(unknown):\n    store = Store()\n    store.save(1)\n"
    "    unknown.save(2)\n    return check(3)\n",
    f"app/{PAYLOAD.replace('/', '')}.py": f"def odd():\n    return '{PAYLOAD}'\n",
    "app/a&b\".py": "def quoted():\n    pass  # \u202e turned \u200b round\n",
    "tests/test_db.py": "from app.db import Store\n\ndef test_save():\n    assert Store().save(1)\n",
    "page.html": f"<script>alert(1)</script>{PAYLOAD}",
}  # fmt: skip
PAGES = [
    "/", "/search?q=save", "/search?q=where+is+a+row+saved", "/search?q=entity%3Dfunction", "/search?q=nothing_like_it",
    f"/search?q={quote(PAYLOAD)}", "/find?q=save+a+row", "/find", "/symbol?target=Store.save", "/symbol?target=Store",
    f"/symbol?target={quote(PAYLOAD)}", "/source?path=app/use.py", "/source?path=app/db.py&blame=1",
    f"/source?path={quote(f'app/{PAYLOAD}.py')}", "/source?path=app/a%26b%22.py", "/source?path=page.html",
    "/source?path=no.py", "/source?path=../outside.py", "/graph", "/graph?target=Store.save&depth=2",
    "/graph?target=Store.save&expand=app/use.py:main", f"/graph?target={quote(PAYLOAD)}", "/map", "/map?in=app&by=file",
    "/map?in=app/db.py&by=definition", "/map?in=nothing", "/ask", "/ask/nothing", "/nothing", "/search?nothing=1",
    "/search?q=a&q=b", "/search?q=%00", f"/ask/calls?target={quote(PAYLOAD)}", "/ask/hover?target=Store&no_lsp=1",
    "/ask/calls?target=check&limit=0", "/ask/calls?target=check&limit=x", "/source?path=app/use.py&line=x",
]  # fmt: skip


class Site:
    """A server and one browser that may see it."""

    def __init__(self, root: Path, *words: str, given: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cq", "web", "--no-open", "--root", str(root), *words],
            stderr=subprocess.PIPE, text=True, env=given or environment(root.parent),
        )  # fmt: skip
        assert self.process.stderr is not None
        self.said = ""
        while "open http" not in self.said:
            line = self.process.stderr.readline()
            assert line, self.said
            self.said += line
        address = re.search(r"http://127\.0\.0\.1:(\d+)(/open\?token=\S+)", self.said)
        assert address is not None
        self.port, self.first = int(address[1]), address[2]
        self.cookie = ""

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {"Cookie": self.cookie} if self.cookie else {}
        link.request(
            method, path, headers={**given, **{name.replace("_", "-"): each for name, each in headers.items()}}
        )
        reply = link.getresponse()
        found = {name.lower(): value for name, value in reply.getheaders()}
        text = reply.read().decode()
        link.close()
        return reply.status, found, text

    def enter(self) -> None:
        for _ in range(100):
            with contextlib.suppress(ConnectionError):
                status, headers, _ = self.get(self.first)
                break
            time.sleep(0.1)
        assert status == 303
        self.cookie = headers["set-cookie"].partition(";")[0]

    def close(self) -> float:
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(20)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return time.monotonic() - began


def make(root: Path) -> Path:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    names = ("-c", f"user.name={PAYLOAD}", "-c", "user.email=a@b")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", PAYLOAD]):
        subprocess.run(["git", *names, *words], cwd=root, check=True, capture_output=True)
    return root


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    found = Site(make(tmp_path_factory.mktemp("web") / "repo"))
    found.enter()
    yield found
    found.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("def save(): ...\n")
    found = Site(tmp_path / "repo")
    yield found
    found.close()


# -- who sees them -------------------------------------------------------------------------------------


def test_an_address_is_good_for_one_browser(fresh: Site):
    fresh.enter()
    status, headers, _ = fresh.get("/")
    assert status == 200
    mine, fresh.cookie = fresh.cookie, ""
    for path in ("/", "/search?q=save", "/source.json?path=a.py", "/events", "/complete.json?q=s", "/ask/nothing"):
        status, headers, text = fresh.get(path)
        assert (path, status) == (path, 401)
        assert "save" not in text
        assert "set-cookie" not in headers
    assert fresh.get(fresh.first)[0] == 403  # used
    assert fresh.get("/open?token=")[0] == 403
    fresh.cookie = mine.replace("=", "=x")
    assert fresh.get("/")[0] == 401
    fresh.cookie = mine.partition("=")[2] and f"cq-0000000000000000={mine.partition('=')[2]}"
    assert fresh.get("/")[0] == 401  # of another server on this machine


def test_the_cookie_is_for_this_browser_alone(fresh: Site):
    for _ in range(100):
        with contextlib.suppress(ConnectionError):
            _, headers, _ = fresh.get(fresh.first)
            break
        time.sleep(0.1)
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {each.strip() for each in headers["set-cookie"].split(";")}
    assert headers["location"] == "/"  # the token is in no address that stays


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),  # a name that was rebound to this machine
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Host": "127.0.0.1:9999"}, 200),  # a forwarded port
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),  # another port of this host
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_pages_of_other_places_get_nothing(site: Site, headers: dict[str, str], status: int):
    for path in ("/search?q=save", "/search.json?q=save", "/static/cq.css", site.first):
        if path != site.first or status != 200:
            assert (path, site.get(path, **headers)[0]) == (path, status)


def test_nothing_can_be_sent(site: Site):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert site.get("/search?q=save", method)[0] == 405
    assert site.get("/search?q=save", "HEAD")[0] == 200
    assert site.get(f"/search?q={'a' * 12_000}")[0] == 400
    with contextlib.suppress(ConnectionError):  # it is hung up on before it has said all
        assert site.get(f"/search?q={'a' * 1_000_000}")[0] in (400, 414, 431)


# -- what they hold ------------------------------------------------------------------------------------

TAGS = set(
    [
        "html",
        "head",
        "meta",
        "title",
        "link",
        "script",
        "body",
        "a",
        "header",
        "form",
        "input",
        "button",
        "nav",
        "main",
        "footer",
        "h1",
        "h2",
        "h3",
        "p",
        "code",
        "ul",
        "ol",
        "li",
        "span",
        "pre",
        "section",
        "div",
        "details",
        "summary",
        "dl",
        "dt",
        "dd",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "label",
        "select",
        "option",
        "small",
        "textarea",
        "br",
        "svg",
        "defs",
        "marker",
        "path",
        "rect",
        "line",
        "text",
    ]
)


class Checker(HTMLParser):
    """Tags that a template has, and no attribute that could run anything."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "srcdoc", "formaction", "src" if tag != "script" else ""):
                self.wrong.append(f"<{tag} {name}={value}>")
            if name in ("href", "action", "src"):
                self.links.append(value or "")
                if not (value or "").startswith(("/", "#")) or (value or "").startswith("//"):
                    self.wrong.append(f"<{tag} {name}={value}>")
        if tag == "script" and dict(attrs).get("src") != "/static/cq.js":
            self.wrong.append("inline script")

    def handle_data(self, data: str) -> None:
        if re.search("[\u200b\u202a-\u202e\u2066-\u2069\0]", data):
            self.wrong.append(f"hidden characters in {data!r}")


@pytest.mark.parametrize("path", PAGES)
def test_nothing_of_a_repository_is_taken_for_markup(site: Site, path: str):
    status, headers, text = site.get(path)
    assert status in (200, 400, 404), text
    assert headers["content-type"].startswith("text/html")
    checker = Checker()
    checker.feed(text)
    assert checker.wrong == []
    assert PAYLOAD not in text
    assert "Traceback" not in text
    assert "internal:" not in text
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


def test_every_link_of_every_page_leads_somewhere(site: Site):
    found: set[str] = set()
    for path in PAGES:
        status, _, text = site.get(path)
        checker = Checker()
        checker.feed(text if status == 200 else "")
        found |= {link.partition("#")[0] for link in checker.links if link.startswith("/")}
    assert len(found) > 80
    forms = re.compile(r"/(search|find|graph|map|symbol|source|ask(/\w+)?)$")
    servers = re.compile(r"/ask/(references|neighborhood)\?")  # which take their time to start
    lost = [
        (link, status)
        for link in sorted(found)
        if not forms.match(link) and (status := site.get(f"{link}&no_lsp=1" if servers.match(link) else link)[0]) != 200
    ]
    assert not lost, lost


def test_characters_that_turn_a_line_round_are_spelled_out(site: Site):
    text = site.get("/source?path=app/a%26b%22.py")[2]
    assert '<span class="odd" title="U+202E">\\u202e</span>' in text
    assert '<span class="odd" title="U+200B">\\u200b</span>' in text


# -- what they say -------------------------------------------------------------------------------------


def ask_command(site: Site, *words: str) -> Any:
    root = site.process.args[site.process.args.index("--root") + 1]  # type: ignore[union-attr, index]
    done = subprocess.run(
        [sys.executable, "-m", "cq", *words, "--format", "json", "--root", str(root)],
        capture_output=True, text=True, check=False, env=environment(Path(str(root)).parent),
    )  # fmt: skip
    return _without_run(json.loads(done.stdout))


def _without_run(answer: Any) -> Any:
    answer.pop("run", None)
    text = json.dumps(answer)
    return json.loads(re.sub(r' --root [^ "]+', "", re.sub(r'"elapsed_ms": [\d.]+', '"elapsed_ms": 0', text)))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/search.json?q=save", ["search", "save"]),
        ("/search.json?q=entity%3Dfunction", ["q", "entity=function"]),
        ("/source.json?path=app/use.py", ["read", "app/use.py", "--links", "--all"]),
        ("/graph.json?target=Store.save&depth=2", ["graph", "Store.save", "--depth", "2"]),
        ("/map.json?in=app&by=file", ["map", "--in", "app", "--by", "file"]),
        ("/ask/calls.json?target=check", ["calls", "check"]),
        ("/ask/impact.json?target=check&depth=2", ["impact", "check", "--depth", "2"]),
        ("/ask/rank.json", ["rank"]),
    ],
)
def test_a_page_as_json_is_what_the_command_prints(site: Site, path: str, words: list[str]):
    status, headers, text = site.get(path)
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert _without_run(json.loads(text)) == ask_command(site, *words)


def test_every_question_has_a_page(site: Site):
    text = site.get("/ask")[2]
    for name in QUESTIONS:
        assert f'href="/ask/{name}"' in text
        status, _, form = site.get(f"/ask/{name}")
        assert (name, status) == (name, 200)
        assert "<form" in form


def test_names_lead_where_read_says(site: Site):
    details = next(
        finding["details"]
        for section in json.loads(site.get("/source.json?path=app/use.py")[2])["sections"]
        for finding in section["findings"]
        if finding["details"]["kind"] == "cq.read.names.v1"
    )
    text = site.get("/source?path=app/use.py")[2]
    shown = re.findall(r'<a class="n (\w+)" href="([^"]+)"[^>]*>(?:<span[^>]*>)?(\w+)', text)
    wanted = [
        (name[3], details["targets"][name[4][0]], name[2]) for name in details["names"] if len(name) > 4 and name[4]
    ]
    assert len(shown) == len(wanted) > 10
    for (status, href, word), (certainty, target, name) in zip(shown, wanted, strict=True):
        assert (status, word) == (certainty, name)
        if certainty != "definition":
            query = parse_qs(urlsplit(href.replace("&amp;", "&")).query)
            assert query["path"] == [target["path"]]
            assert query["line"] == [str(target["line"])]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/source?path=no.py", 404, "no.py"),
        ("/source?path=../outside.py", 404, "outside.py"),
        ("/symbol?target=Sotre", 404, "Store"),  # a near name
        ("/symbol", 400, "usage: which symbol?"),
        ("/ask/nothing", 400, "usage: there is no question"),
        ("/search?nothing=1", 400, "usage: there is no parameter"),
        ("/search?q=%00", 400, "control character"),
        ("/ask/calls?target=check&limit=x", 400, "usage: limit is no number"),
        ("/ask/calls?target=check&colour=red", 400, "usage: calls has no option"),
        ("/search?q=entity%3Dfunctoin", 400, "function"),
        ("/nothing", 404, "source: there is no page"),
    ],
)
def test_what_cannot_be_answered_is_said_as_the_command_says_it(site: Site, path: str, status: int, said: str):
    found, _, text = site.get(path)
    assert (found, said in text) == (status, True), text


def test_a_text_that_has_changed_is_said_to_have(site: Site):
    link = re.search(r'href="(/source\?[^"]*hash=[^"]+)"', site.get("/source?path=app/db.py")[2])
    assert link is not None
    address = link[1].replace("&amp;", "&").partition("#")[0]
    assert "has changed" not in site.get(address)[2]
    assert "has changed" in site.get(re.sub("hash=....", "hash=0000", address))[2]


# -- how it runs ---------------------------------------------------------------------------------------


def find_processes(port_or_folder: str) -> list[str]:
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if port_or_folder in line]


def test_it_ends_at_once_and_leaves_nothing_behind(fresh: Site):
    fresh.enter()
    assert fresh.get("/search?q=save")[0] == 200
    children = Path(f"/proc/{fresh.process.pid}/task/{fresh.process.pid}/children").read_text().split()
    assert fresh.close() < 5  # a second where nothing else runs
    assert fresh.process.returncode in (0, 130, -2)
    for _ in range(50):
        if not any(Path(f"/proc/{pid}").exists() for pid in children):
            break
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no daemon elsewhere")
def test_a_killed_daemon_costs_nothing_but_time(fresh: Site):
    fresh.enter()
    assert fresh.get("/search?q=save")[0] == 200
    for pid in Path(f"/proc/{fresh.process.pid}/task/{fresh.process.pid}/children").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    status, _, text = fresh.get("/search?q=save")
    assert status == 200, text
    assert "a.py" in text


def test_a_port_that_is_taken_is_no_error(tmp_path: Path):
    (tmp_path / "repo").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        site = Site(tmp_path / "repo", "--port", str(port))
        try:
            assert site.port != port
            assert f"port {port} is taken" in site.said
        finally:
            site.close()


# -- parts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("save", "search"), ("Store.save", "search"), ("def save", "search"), ("where is a row saved", "find"),
        ("symbol = Store > save", "find"), ("entity=function has=\"await $X\"", "q"), ("pattern='f($X)'", "q"),
        ("x == 1", "search"),
    ],
)  # fmt: skip
def test_one_box_takes_them_all(text: str, question: str):
    assert choose_question(text)[0] == question


def test_names_stand_inside_tokens():
    details = NamesDetails(
        "python", "", (MeantName(1, 3, "b", "external", (), module="m"),), (), ((1, 1, 5, "string"),)
    )  # fmt: skip
    (line,) = show_lines("a<b>c", 1, details, None)
    assert line.code.replace('<span class="t-string">', "[").replace("</span>", "]") == (
        '[a&lt;]<span class="external" title="from m">[b]][&gt;c]'
    )


@pytest.mark.parametrize(("lines", "wanted"), [(10, 1), (3000, 2999), (50_000, 1), (50_000, 25_000), (50_000, 50_000)])
def test_the_line_that_is_asked_for_has_links(lines: int, wanted: int):
    first, last = find_window(lines, wanted)
    assert 1 <= first <= wanted <= last <= lines
    assert last - first < 3000


def test_areas_of_a_treemap_are_the_sizes_and_meet_without_overlap():
    sizes = [float(size) for size in (100, 60, 60, 30, 10, 5, 5, 1)]
    boxes = _lay_out(sizes, (0, 0, 1200, 640))
    areas = [width * height for _, _, width, height in boxes]
    assert areas == pytest.approx([size / sum(sizes) * 1200 * 640 for size in sizes])
    for at, (x, y, width, height) in enumerate(boxes):
        assert x >= -0.01
        assert x + width <= 1200.01
        assert y + height <= 640.01
        for left, top, wide, high in boxes[:at]:
            over = min(x + width, left + wide) - max(x, left), min(y + height, top + high) - max(y, top)
            assert min(over) < 0.01
