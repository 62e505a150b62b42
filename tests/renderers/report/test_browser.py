"""The page in a real browser: it fetches nothing, answers to mouse and keyboard, and names do nothing.

Without a Chromium (chromium or google-chrome on the path) or Playwright these tests are skipped.
"""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import handmade
import pytest
import synthetic
import toy_sweeps
from msgspec.structs import replace

from roofline import units
from roofline.analysis.analysis import analyze
from roofline.content.points import points
from roofline.core.schema import Profile, load
from roofline.core.vocabulary import BOUNDS, CLASSES, PHASES
from roofline.errors import MeasurementError
from roofline.renderers.report import report, report_sweep
from roofline.renderers.report.modules import HEADS
from roofline.sweeping import plan
from roofline.sweeping.grid import Grid

pytestmark = pytest.mark.slow
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")

#: Chromium would look for its maker's hosts at every start.
FLAGS = [
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
ROWS = ".ops tbody tr"
#: How long a condition is waited for [ms]: a busy machine needs more than the 5 s that are usual.
PATIENCE = 60_000


@dataclass
class Opened:
    """A page that was opened from its file, and what it did on its own."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @cached_property
    def listeners(self) -> dict[str, Callable[[Any], None]]:
        """Note what it does, by the event of the page."""
        return {
            "request": lambda request: self.requests.append(request.url),
            "console": lambda message: self.complaints.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "dialog": lambda dialog: self.complaints.append(dialog.message),
        }

    def text(self, selector: str) -> str:
        return " ".join((self.page.locator(selector).first.text_content() or "").split())

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_text_contents()

    def slide(self, share: int) -> None:
        """Moves the slider of the roofline, as its handle does."""
        moved = "s.value = share; s.dispatchEvent(new Event('input', {bubbles: true}))"
        self.page.locator("[data-slider]").first.evaluate(f"(s, share) => {{ {moved} }}", share)

    def place(self, selector: str, x: float, y: float) -> dict[str, float]:
        """A place in an element by its shares of width and height [px]."""
        box = self.page.locator(selector).bounding_box()
        return {"x": box["width"] * x, "y": box["height"] * y}

    def over(self, selector: str, x: float, y: float) -> None:
        """Puts the mouse there, once the element stays where it is."""
        self.page.locator(selector).hover(position=self.place(selector, x, y))

    def run(self, script: str) -> Any:
        return self.page.evaluate(script)

    def wait_for(self, condition: str) -> None:
        """Waits until it holds, and looks at each frame: `expect` looks again after 0.1, 0.25, 0.5 and 1 s.

        Playwright's own `wait_for_function` evaluates a string in the page, which its policy refuses.
        """
        self.run(
            f"""new Promise((done, fail) => {{
                const last = performance.now() + {PATIENCE};
                const look = () => {{
                    if ({condition}) done();
                    else if (performance.now() > last) fail(new Error({condition!r}));
                    else requestAnimationFrame(look);
                }};
                look();
            }})"""
        )

    def wait_until_laid_out(self) -> None:
        self.wait_for("!document.querySelector('section:not(.laid-out)')")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        sync_api.expect.set_options(timeout=PATIENCE)
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a page by name, written once."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def write(name: str) -> Path:
        file = folder / f"{name}.html"
        made = PAGES[name]()
        file.write_text(report(made) if isinstance(made, list) else report_sweep(made), encoding="utf-8")
        return file

    return write


#: Does what a hostile page would: each name would say so in `hacked`.
HOSTILE = (
    "<script>hacked=1</script><img src=x onerror=hacked=1>\"'><svg onload=hacked=1>"
    "</script><script>hacked=1</script>\u202egnp.exe" + "x" * 10_000
)


def pair() -> list[Any]:
    layers = synthetic.LAYER * 2
    written_out = synthetic.instead(layers, "aten::native_layer_norm", synthetic.UNFUSED_NORM)
    return [synthetic.step(written_out), synthetic.step(layers, backend="jax")]


def on_devices() -> list[Any]:
    """The same on two devices, by whose long names the runs are told apart."""
    first, second = pair()
    names = ("NVIDIA H100 80GB HBM3, the first of eight", "AMD Instinct MI300X OAM, the second of eight")
    return [
        replace(one, backend="torch", device=replace(one.device, name=name))
        for one, name in zip((first, second), names, strict=True)
    ]


def swept() -> Grid:
    """Three backends, of which one runs out of memory and one is disturbed, on nine cells."""

    def measure(point: plan.Point) -> Profile:
        if (point.backend, point.batch) == ("torch", 4):
            raise MeasurementError("Out of memory on the CPU.")
        flags = ("contended",) if point.backend == "tensorflow" else ()
        return replace(toy_sweeps.jax_up_to(64)(point), flags=flags)

    every = plan.points(["toy"], ["torch", "jax", "tensorflow"], ["infer"], ["default"], [1, 2, 4], [32, 64, 128])
    with TemporaryDirectory() as folder:
        return toy_sweeps.sweep(Path(folder), every, measure)


PAGES: dict[str, Callable[[], list[Any] | Grid]] = {
    "one": lambda: [handmade.profile()],
    "measured": lambda: [load("h100/bert-torch-infer-b1-bf16")],
    "two": pair,
    "devices": on_devices,
    "hostile": lambda: [handmade.hostile(HOSTILE)],
    "many": lambda: [handmade.wide(120, 20)],
    "large": lambda: [handmade.wide(1000, 500)],
    "sweep": swept,
}


@pytest.fixture(scope="module")
def scripted(browser: Any) -> Any:
    """The page of most tests, which opens one file after another: each new one is a process of the browser's."""
    return browser.new_context(offline=True).new_page()


@pytest.fixture(scope="module")
def unscripted(browser: Any) -> Any:
    return browser.new_context(offline=True, java_script_enabled=False).new_page()


@pytest.fixture
def opened(
    scripted: Any, request: pytest.FixtureRequest, written: Callable[[str], Path]
) -> Iterator[Callable[..., Opened]]:
    """Opens a page from its file, offline; before the next, it has fetched nothing and complained of nothing."""
    now: list[Opened] = []

    def close_page() -> None:
        while now:
            found = now.pop()
            fetched = {url for url in found.requests if not url.startswith(("data:", "blob:"))}
            assert fetched == {found.page.url.partition("#")[0]}
            assert found.page.url.startswith("file://")
            assert found.complaints == []
            for event, note in found.listeners.items():
                found.page.remove_listener(event, note)

    def open_page(
        name: str, width: int = 1280, height: int = 900, color_scheme: str = "null", scripts: bool = True
    ) -> Opened:
        close_page()
        found = Opened(scripted if scripts else request.getfixturevalue("unscripted"))
        found.page.set_viewport_size({"width": width, "height": height})
        found.page.emulate_media(media="null", color_scheme=color_scheme)
        for event, note in found.listeners.items():
            found.page.on(event, note)
        now.append(found)
        found.page.goto(written(name).as_uri())
        return found

    yield open_page
    close_page()


def test_a_point_tells_its_numbers_and_leads_to_its_row(opened: Callable[..., Opened]) -> None:
    found = opened("one")
    # The longest op is told before anybody points.
    assert found.text(".readout h4") == "aten::addmm"
    some = points(analyze(handmade.profile()))
    place = next(number for number, point in enumerate(some.placed) if point.name == "aten::_softmax")
    at = "document.querySelectorAll('.plane .points > svg')[{}].getAttribute('{}')"
    share = [float(found.run(at.format(place, axis)).rstrip("%")) / 100 for axis in ("x", "y")]
    found.over(".plane", *share)
    sync_api.expect(found.page.locator(".readout h4")).to_have_text("aten::_softmax")
    facts = dict(zip(found.texts(".readout dt"), found.texts(".readout dd"), strict=True))
    # 5 MFLOP? softmax does 4 MFLOP of vector work in 2000 µs and moves 8 MB
    assert facts["rate"] == "2.00 GFLOP/s"
    assert facts["intensity"] == "0.500 FLOP/B"
    assert facts["time"] == "1.95 ms (15.6 %)"
    found.page.locator(".plane").click(position=found.place(".plane", *share))
    assert found.page.locator(ROWS).count() == 1
    assert "aten::_softmax" in found.text(ROWS)
    assert found.run("document.activeElement.matches('.ops tbody tr')")
    # And back: the row's name leads to its point.
    found.page.locator("[data-clear]").click()
    assert found.page.locator(ROWS).count() == 7  # of 8 ops two products are equal
    found.page.locator(".point-to", has_text="embedding").click()
    assert found.text(".readout h4") == "aten::embedding"


def test_the_table_sorts_and_filters(opened: Callable[..., Opened]) -> None:
    found = opened("one")
    names = ".ops .point-to"
    found.page.locator("[data-equal]").uncheck()
    assert found.texts(names)[0] == "aten::_fused_adamw_"
    assert found.text(".ops th[aria-sort=descending]").startswith("time")
    found.page.locator("[data-sort=time]").click()
    assert found.texts(names)[0] == "aten::native_layer_norm"
    found.page.locator("[data-sort=work]").click()
    assert found.texts(names)[0] == "aten::addmm"
    assert found.texts(names)[-1] == "mylib::mystery"  # unknown comes last
    found.page.locator("[data-sort=work]").click()
    assert found.texts(names)[-1] == "mylib::mystery"  # and last the other way round
    found.page.locator("[data-sort=op]").click()
    assert found.texts(names) == sorted(found.texts(names), key=str.lower)
    found.page.locator("[data-search=scope]").fill("LAYER.1")
    assert found.texts(names) == ["aten::addmm"]
    found.page.locator("[data-search=scope]").fill("")
    found.page.locator("[data-search=op]").fill("[100, 1000]")  # shapes are searched, too
    assert found.texts(names) == ["aten::addmm", "aten::addmm", "aten::gelu"]
    found.page.locator("[data-filter=class]").select_option("pointwise")
    assert found.texts(names) == ["aten::gelu"]
    found.page.locator("[data-clear]").click()
    found.page.locator("[data-filter=phase]").select_option("optimizer")
    assert found.texts(names) == ["aten::_fused_adamw_"]
    found.page.locator("[data-clear]").click()
    found.page.locator("[data-filter=known]").select_option("unknown")
    assert found.texts(names) == ["mylib::mystery"]
    found.page.locator("[data-search=op]").fill("nothing is called so")
    assert found.page.locator(ROWS).count() == 0
    assert found.text(".count") == "no op of 8 fits"


def test_equal_ops_are_one_row_until_each_is_asked_for(opened: Callable[..., Opened]) -> None:
    found = opened("one")
    names = ".ops .point-to"
    assert found.text(".count") == "1–7 of 7 different ops"
    # Two products of 2500 µs each, in two layers, and all else once.
    assert found.texts(names)[0] == "aten::addmm"
    assert found.texts(".ops .times") == ["2 ×"]
    assert found.texts(".ops tbody tr:first-child td.number")[0] == "5.00 ms"
    assert found.text(".ops tbody tr:first-child td.path") == "toy/layer.*/ffn"
    found.page.locator(".ops .times").click()
    assert found.text(".count") == "1–2 of 2 (of 8) ops"
    assert found.texts(".ops td.path:last-child") == ["toy/layer.0/ffn", "toy/layer.1/ffn"]
    found.page.locator("[data-clear]").click()
    assert found.text(".count") == "1–7 of 7 different ops"
    found.page.locator("[data-search=scope]").fill("layer.1")  # of a scope there is one
    assert found.text(".count") == "1–1 of 1 (of 8) ops"
    found.page.locator("[data-clear]").click()
    found.page.locator("[data-filter=class]").select_option("contraction")
    assert found.text(".count") == "1–1 of 1 (of 7) different ops"


def test_the_roofline_shows_what_is_chosen(opened: Callable[..., Opened]) -> None:
    found = opened("one")
    some = points(analyze(handmade.profile()))
    shown = "[...document.querySelectorAll('.points > svg')].filter(m => !m.hasAttribute('display')).length"
    assert found.run(shown) == len(some.all) == 6
    # Of 10,383 µs that have a place the two products are 5000 and adamw is 3000: the first 60 % are in these.
    found.slide(60)
    assert found.text("output") == "60 %"
    assert found.run(shown) == 2
    found.slide(100)
    found.page.locator(".groups input[value=matmul]").uncheck()
    assert found.run(shown) == 5
    found.page.locator(".groups input[value=matmul]").check()
    found.page.locator("[data-choose=phase]").select_option("optimizer")
    assert found.run(shown) == 1
    found.page.locator("[data-choose=phase]").select_option("all")
    # What no cache held is less than all bytes, so that points move to the right.
    before = found.run("parseFloat(document.querySelector('.points > svg').getAttribute('x'))")
    found.page.locator("[data-choose=level]").select_option("cold")
    assert found.run("parseFloat(document.querySelector('.points > svg').getAttribute('x'))") > before
    found.page.locator("[data-choose=level]").select_option("cache.llc")
    assert found.run("document.querySelectorAll('.plane .slope:not(.faint)').length") == 1
    assert "last-level" in found.text(".plane .slope:not(.faint) text")


def test_no_roof_crosses_the_name_of_one(opened: Callable[..., Opened]) -> None:
    found = opened("measured")
    found.page.locator("#roofline").scroll_into_view_if_needed()
    crossed = """() => {
        const size = document.querySelector(".plane").getBoundingClientRect();
        const within = (box, x, y) => box.left < x && x < box.right && box.top < y && y < box.bottom;
        const points = [...document.querySelectorAll(".plane .roof line")].flatMap((line) => {
            const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((end) => line[end].baseVal.value);
            return Array.from({ length: 1000 }, (_, at) =>
                [size.left + x1 + (x2 - x1) * at / 999, size.top + y1 + (y2 - y1) * at / 999]);
        });
        return [...document.querySelectorAll(".plane .roof text")].filter((text) => {
            const box = text.getBoundingClientRect();
            return points.some(([x, y]) => within(box, x, y));
        }).map((text) => text.textContent);
    }"""
    assert found.page.evaluate(crossed) == []
    assert found.page.locator(".plane .roof text").count() == found.page.locator(".plane .roof line").count() == 4


def test_the_view_is_saved_as_svg_and_png(opened: Callable[..., Opened]) -> None:
    found = opened("one")
    found.page.locator(".groups input[value=matmul]").uncheck()
    with found.page.expect_download() as saved:
        found.page.locator("[data-save=svg]").click()
    text = Path(saved.value.path()).read_text(encoding="utf-8")
    tree = ET.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    # What was left out is not in it, and it needs no style of the page.
    assert sum("v" in path.get("d", "") for path in tree.iter(f"{space}path")) >= 1
    drawn = [group for group in tree.iter(f"{space}g") if any(child.tag == f"{space}svg" for child in group)]
    assert sum(len(group) for group in drawn) == 5
    assert not any("class" in each.attrib or "style" in each.attrib for each in tree.iter())
    assert "Roofline of toy train" in "".join(tree.itertext())
    assert "var(" not in text
    with found.page.expect_download() as saved:
        found.page.locator("[data-save=png]").click()
    image = Path(saved.value.path()).read_bytes()
    assert saved.value.suggested_filename == "roofline.png"
    assert image.startswith(b"\x89PNG")
    assert int.from_bytes(image[16:20], "big") == int(2 * float(tree.get("width")))


def test_the_keyboard_reaches_everything(opened: Callable[..., Opened]) -> None:
    found = opened("two")
    press = found.page.keyboard.press
    found.page.locator("#runs input").first.focus()
    press("ArrowRight")
    assert found.run("[...document.querySelectorAll('#roofline .run')].map(e => !e.getClientRects().length)") == [
        True,
        False,
    ]
    plane = found.page.locator("#roofline .run:not(.later) .plane")
    plane.focus()
    for key in ("Home", "ArrowRight"):
        press(key)
    some = points(analyze(pair()[1]))
    second = sorted(some.all, key=lambda point: -point.seconds)[1]
    readout = "#roofline .run:not(.later) .readout"
    assert found.text(f"{readout} h4") == second.name
    press("Enter")
    assert found.run("document.activeElement.matches('.ops tbody tr')")
    found.page.locator("#ops .run:not(.later) [data-sort=class]").focus()
    press("Enter")
    assert found.text("#ops .run:not(.later) th[aria-sort]").startswith("class")
    found.page.locator("#timeline .run:not(.later) .timeline").focus()
    press("ArrowRight")
    assert found.text("#timeline .run:not(.later) .readout").startswith("aten::addmm")
    box = "document.querySelector('#timeline .run:not(.later) .lanes').getAttribute('viewBox').split(' ').map(Number)"
    press("+")
    assert found.run(box)[2] == 500_000
    press("Home")
    assert found.run(box)[2] == 1_000_000
    found.page.locator("#tables .run:not(.later) .choice input").first.focus()
    press("ArrowRight")
    assert found.texts("#tables .run:not(.later) .panel:not(.later) caption") == ["By class"]


def test_the_timeline_tells_what_ran(opened: Callable[..., Opened]) -> None:
    found = opened("one")
    readout = found.page.locator("[data-timeline] .readout")
    # The first product runs from 700 to 3175 µs; after adamw, which ends at 11,970 µs, nothing does.
    for microseconds, told in ((1500, "aten::addmm"), (12_500, f"No op for {units.seconds(1.73e-3)}")):
        found.over(".timeline", microseconds / 13_700, 0.3)
        sync_api.expect(readout).to_contain_text(told)


def test_paper_has_every_table_and_every_row(opened: Callable[..., Opened]) -> None:
    found = opened("many")
    assert found.page.locator(ROWS).count() == 20
    found.page.locator("[data-equal]").uncheck()
    assert found.page.locator(ROWS).count() == 30
    found.page.emulate_media(media="print")
    found.run("dispatchEvent(new Event('beforeprint'))")
    assert found.run(f"document.querySelectorAll('{ROWS}').length") == 120
    assert found.run("document.querySelectorAll('details:not([open])').length") == 0
    hidden = "[...document.querySelectorAll('table')].filter(t => !t.getClientRects().length).length"
    assert found.run(hidden) == 0
    controls = "[...document.querySelectorAll('select, input, button')].filter(e => !e.closest('table'))"
    assert found.run(f"{controls}.every(e => !e.getClientRects().length)")
    found.run("dispatchEvent(new Event('afterprint'))")
    assert found.page.locator(ROWS).count() == 30
    two = opened("two")
    two.run("addEventListener('beforeprint', () => { document.title = 'prepared'; })")
    assert two.page.pdf(page_ranges="1").startswith(b"%PDF")
    assert two.page.title() == "prepared"  # the browser tells the page before it prints
    two.page.emulate_media(media="print")
    two.run("dispatchEvent(new Event('beforeprint'))")
    assert two.run(hidden) == 0


def test_a_thousand_ops_are_found_page_by_page(opened: Callable[..., Opened]) -> None:
    found = opened("large")
    assert found.text(".count") == "1–30 of 500 different ops"
    found.page.locator("[data-equal]").uncheck()
    assert found.text(".count") == "1–30 of 1000 ops"
    found.page.locator("[data-turn='1']").click()
    assert found.text(".count") == "31–60 of 1000 ops"
    found.page.locator("[data-search=op]").fill("op499")
    assert found.text(".count") == "1–2 of 2 (of 1000) ops"
    assert found.page.locator(".plane .points > svg").count() == 500


def test_hostile_names_do_nothing(opened: Callable[..., Opened]) -> None:
    found = opened("hostile")
    for key in ("Home", "ArrowRight", "Enter"):
        found.page.locator(".plane").focus()
        found.page.keyboard.press(key)
    found.page.locator("[data-clear]").click()
    found.page.locator("[data-sort=op]").click()
    found.page.locator(".timeline").hover()
    found.page.wait_for_timeout(50)
    assert found.run("typeof hacked") == "undefined"
    assert found.page.locator("img").count() == 0
    assert "<script>" in found.text(".ops .point-to")  # it is there, as text
    longest = "Math.max(...[...document.querySelectorAll('[title]')].map(e => e.title.length))"
    assert found.run(longest) <= 1000
    assert found.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", ["one", "devices", "hostile", "sweep"])
def test_a_telephone_shows_it_without_moving_sideways(opened: Callable[..., Opened], name: str) -> None:
    found = opened(name, width=360, height=740)
    found.wait_until_laid_out()
    found.wait_for("document.documentElement.scrollWidth <= 360")  # once tables have found their width


@pytest.mark.parametrize("width", [1280, 360])
def test_heads_stay_in_sight_and_what_is_cut_off_says_so(opened: Callable[..., Opened], width: int) -> None:
    """A table that fits scrolls with the page, its head below the bar; one that does not scrolls in its own place."""
    found = opened("many", width=width, height=740)
    found.wait_until_laid_out()
    found.page.locator("[data-equal]").uncheck()
    is_wide = width == 360
    table = "document.querySelector('.ops')"
    found.wait_for(f"document.querySelectorAll('.scroll:has(> .ops).sideways').length === {int(is_wide)}")
    found.run(f"{table}.parentElement.scrollIntoView()")
    found.run(f"({table}.parentElement.matches('.sideways') ? {table}.parentElement : window).scrollBy(0, 300)")
    top = "{}.getBoundingClientRect().top"
    edge = (
        f"{table}.parentElement.getBoundingClientRect().top"
        if is_wide
        else "document.querySelector('.topbar').offsetHeight"
    )
    assert found.run(top.format(f"{table}.tHead.rows[0].cells[0]")) == pytest.approx(found.run(edge), abs=1)
    assert found.run(top.format(f"{table}.tBodies[0].rows[0]")) < found.run(edge) - 100
    hint = f"getComputedStyle({table}.parentElement, '::before').content"
    assert ("sideways" in found.run(hint), "down" in found.run(hint)) == (is_wide, is_wide)
    found.page.locator("[data-search=op]").fill("op7")  # what is left of the rows fits
    found.wait_for(f"!{hint}.includes('down')")
    assert ("sideways" in found.run(hint)) == is_wide


def test_no_word_of_an_op_reaches_into_the_next_column(opened: Callable[..., Opened]) -> None:
    found = opened("one", width=360, height=740)  # where each column is as wide as it must be
    is_wide = """([key, words]) => {
        const cell = document.querySelector(".ops tbody tr").cells[document.querySelector(`th.of-${key}`).cellIndex];
        return words.filter((word) => { cell.textContent = word; return cell.scrollWidth > cell.clientWidth; });
    }"""
    for key, words in (("class", CLASSES), ("phase", PHASES), ("roof", (*BOUNDS, "near ridge"))):
        assert found.page.evaluate(is_wide, [key, list(words)]) == []


def test_a_telephone_has_all_columns_of_the_modules(opened: Callable[..., Opened]) -> None:
    """All but the bar, which the share beside it says: what does not fit is scrolled to, below names that stay."""
    found = opened("many", width=360, height=740)
    found.wait_for("document.querySelectorAll('.tree.sideways').length === 1")
    shown = "[...document.querySelector('.tree .head').children].filter(e => e.offsetWidth).map(e => e.textContent)"
    assert found.run(shown) == [heading for heading in HEADS if heading]
    left = "document.querySelector('.tree .row:not(.head)').firstElementChild.getBoundingClientRect().left"
    before = found.run(left)
    found.run("document.querySelector('.tree').scrollBy(90, 0)")
    assert found.run(left) == before


def test_a_picture_of_the_whole_page_has_all_of_it(opened: Callable[..., Opened]) -> None:
    """What has not been seen is laid out later, but it is: else most of such a picture would be empty."""
    looks = "all => [...new Set(all.map(e => getComputedStyle(e).contentVisibility))]"
    for scripts in (True, False):
        found = opened("two", scripts=scripts)
        if scripts:
            found.wait_until_laid_out()
        assert found.page.locator("section").evaluate_all(looks) == ["visible"]


def test_light_and_dark(opened: Callable[..., Opened]) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    found = opened("one", color_scheme="dark")
    dark = found.run(paper)
    found.page.locator("#theme").select_option("light")
    light = found.run(paper)
    assert (dark, light) == ("rgb(20, 23, 26)", "rgb(255, 255, 255)")
    found.page.reload()
    assert found.page.locator("#theme").input_value() in ("light", "auto")  # a file may have no storage
    found.page.emulate_media(media="print", color_scheme="dark")
    assert found.run(paper) == light


def test_without_its_script_it_can_be_read(opened: Callable[..., Opened]) -> None:
    found = opened("one", scripts=False)
    assert "43 % memory" in found.text("#verdict")
    assert found.page.locator("#tables table:visible").count() == 7
    assert found.page.locator(".controls:visible").count() == 0
    assert "needs the page's script" in found.text("#ops")


#: Keeps one row of a table of all that have the same elements of the same classes, and so the same colours and roles.
ONE_ROW_OF_EACH_LOOK = """() => document.querySelectorAll('table, .tree').forEach((table) => {
    const looks = new Set();
    for (const row of table.querySelectorAll('tbody tr, .row')) {
        const look = [row, ...row.querySelectorAll('*')].map((e) => `${e.tagName}.${e.getAttribute('class')}`).join();
        if (looks.has(look)) row.remove();
        looks.add(look);
    }
})"""


@pytest.mark.parametrize("name", [pytest.param("one", marks=pytest.mark.thorough), "two", "sweep"])
def test_no_serious_fault_of_accessibility(opened: Callable[..., Opened], name: str) -> None:
    package = pytest.importorskip("axe_playwright_python", reason="axe is missing: pip install axe-playwright-python")
    found = opened(name)
    # What is drawn only when it is seen is looked at, too.
    found.run("document.querySelectorAll('section').forEach(s => { s.style.contentVisibility = 'visible'; })")
    found.run(ONE_ROW_OF_EACH_LOOK)
    found.run((files(package) / "axe.min.js").read_text(encoding="utf-8") + ";undefined")
    faults = found.run("axe.run(document, {resultTypes: ['violations']})")["violations"]
    if name != "one":  # whose colours the page of two has, too
        found.page.emulate_media(color_scheme="dark")
        contrast = "axe.run(document, {resultTypes: ['violations'], runOnly: ['color-contrast']})"
        faults += found.run(contrast)["violations"]
    serious = [
        (fault["id"], [node["target"] for node in fault["nodes"]][:3])
        for fault in faults
        if fault["impact"] in ("serious", "critical")
    ]
    assert serious == []
