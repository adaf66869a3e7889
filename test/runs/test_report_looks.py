# SPDX-License-Identifier: Apache-2.0
"""What one sees first of a report: the finding, its picture, what to type; measured in the page, and on screenshots.

The stored screenshots are of a run made by hand, so that they change with the page alone. After a change that is meant:
``MT_STORE_LOOKS=1 .venv/bin/python -m pytest test/runs/test_report_looks.py``, and look at what `git diff` shows.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import pytest
from browser import Browser
from test_report import FOG, Page, arrays, undecided, verdicts, write_run

from mt_nodes.data.verdict import Pair
from mt_nodes.engine.pair_view import evidence_file
from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.report.html import write_report

STORED = Path(__file__).parent / "looks"
NOISE = RelationInfo("noise", "necessary", 20, "Noise outside must not matter.", change="1,000 noise points")
#: Width and height of a screen, by how far a stored picture is reduced.
DESKTOP, PHONE = (1400, 900), (390, 844)
_REDUCED = {DESKTOP: 4, PHONE: 2}
#: A band of the screen so high (pixels) is compared where it fits best, at most so much higher or lower: another font
#: wraps lines elsewhere. What is compared is blurred by so many pixels, letters into grey.
_BAND, _MOVED, _BLUR = 100, 44, 24
#: Grey values from the ground on which something counts as there, however dark it is.
_THERE = 25
#: By so much a band may differ. The last test measures: other fonts stay below 7, what is missing is above 9.
_TOLERATED = 8.0
FONTS = ("Liberation Sans", "DejaVu Sans Condensed", "DejaVu Serif")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a violated relation and one that passes; two violated pairs have pictures."""
    rows = [*verdicts("noise", {3: 1, 17: 2}), *verdicts("fog", {})]
    made = write_run(tmp_path_factory.mktemp("looks") / "run", rows, NOISE, FOG)
    for bundle in (3, 17):
        file = evidence_file(made, Pair(0, bundle, "noise"))
        file.parent.mkdir(exist_ok=True)
        np.savez(file, **arrays(source_xyz=street(), followup_xyz=street()))
    write_report(made)
    # The path of the directory is another one each time.
    page = made / "report.html"
    page.write_text(page.read_text().replace(str(made), "mt_results/run"))
    return made


def street() -> Any:
    """Rings of a LiDAR on flat ground, (N, 3)."""
    radius = np.repeat(np.linspace(4.0, 40.0, 28), 700)
    bearing = np.random.default_rng(1).uniform(-np.pi, np.pi, len(radius))
    return np.column_stack([radius * np.cos(bearing), radius * np.sin(bearing), 0.0 * radius]).astype(np.float32)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        opened.ask("Emulation.setScrollbarsHidden", hidden=True)
        yield opened


def opened(browser: Browser, run: Path, screen: tuple[int, int], scheme: str = "light", style: str = "") -> Browser:
    width, height = screen
    browser.ask(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
    )
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open("about:blank")
    browser.open((run / "report.html").as_uri())
    if style:
        browser.value(f"document.head.insertAdjacentHTML('beforeend', '<style>{style}</style>')")
    browser.value("Promise.all([...document.images].map(image => image.decode()))")
    browser.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return browser


# --- in the page's text


def test_the_finding_comes_first_then_its_picture_then_what_to_type(run: Path) -> None:
    text = (run / "report.html").read_text()
    begins = [text.index(part) for part in ("<h1>", "<img ", 'class="next"', 'id="relations"', "<table")]
    assert begins == sorted(begins)
    assert text.count("<h1>") == 1
    sentence = text[text.index("<h1>") + 4 : text.index("</h1>")]
    assert sentence.startswith("With 1,000 noise points, the stack loses obstacles in 2 of 26 frames")
    typed = [line for line in ("mt show", "mt reproduce") if f">{line} mt_results/run 0/17/noise/0<" in text]
    assert typed == ["mt show", "mt reproduce"], "the worst pair, not the first"


def test_every_link_of_the_page_to_itself_leads_somewhere(run: Path) -> None:
    text = (run / "report.html").read_text()
    anchors = {link for link in re.findall(r'href="#([^"]+)"', text) if not link.startswith("pair=")}
    assert len(anchors) >= 5 and all(f'id="{anchor}"' in text for anchor in anchors)


def test_a_page_without_a_violation_says_what_was_tested_and_shows_no_picture(tmp_path: Path) -> None:
    made = write_run(tmp_path / "run", verdicts("fog", {}), FOG)
    text = write_report(made).read_text()
    page = Page(text)
    assert "✓ PASS" in page.text and "no violation in 26 frames" in page.text and page.links == []
    rows = text[text.index('id="relations"') : text.index('id="pairs"')]
    assert "no violation to compare with control and sham" in rows and "p = " not in rows


def test_a_page_that_decided_nothing_is_not_green(tmp_path: Path) -> None:
    made = write_run(tmp_path / "run", [undecided("fog", b, "no obstacle") for b in range(30)], FOG)
    text = write_report(made).read_text()
    assert "Nothing was decided with fog: 30 NOT_APPLICABLE" in text and "✓ PASS" not in text


def test_of_many_relations_those_that_pass_are_one_row(tmp_path: Path) -> None:
    names = [f"noise_{n}" for n in range(14)]
    rows = [row for name in names for row in verdicts(name, {3: 1} if name == "noise_7" else {})]
    made = write_run(tmp_path / "run", rows, *(RelationInfo(name, "necessary") for name in names))
    text = write_report(made).read_text()
    failed, fold = text.index("<h3>noise_7</h3>"), text.index("✓ PASS</span> 13 relations</summary>")
    passed = [text.index(f"<h3>{name}</h3>") for name in names if name != "noise_7"]
    assert failed < fold < min(passed)


# --- on a screen

_TOP = "(box => [box.top + scrollY, box.bottom + scrollY])(document.querySelector('%s').getBoundingClientRect())"


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_picture_is_on_the_first_screen_and_the_page_is_short(
    browser: Browser, run: Path, screen: tuple[int, int]
) -> None:
    page = opened(browser, run, screen)
    (title, below), (picture, end) = (page.value(_TOP % name) for name in ("h1", "img"))
    assert title < 100 and below <= picture and end <= screen[1], "all of the first picture"
    assert page.value("document.documentElement.scrollWidth") <= screen[0]
    assert page.value("document.documentElement.scrollHeight") < {DESKTOP: 2600, PHONE: 4400}[screen]
    if screen == DESKTOP:
        assert page.value(_TOP % ".next")[0] < screen[1], "what to type, too"
    assert not page.troubles


class Look(NamedTuple):
    screen: tuple[int, int]
    scheme: str

    @property
    def file(self) -> Path:
        return STORED / f"replay_{self.screen[0]}_{self.scheme}.png"


LOOKS = [Look(screen, scheme) for screen in (DESKTOP, PHONE) for scheme in ("light", "dark")]


def seen(browser: Browser, screen: tuple[int, int]) -> Any:
    """Return what is on the screen, reduced: how far each place differs from the ground, at most by what counts."""
    shot = base64.b64decode(browser.ask("Page.captureScreenshot", format="png")["data"])
    grey = cv2.imdecode(np.frombuffer(shot, np.uint8), cv2.IMREAD_GRAYSCALE).astype(np.int16)
    ink = np.minimum(np.abs(grey - int(np.median(grey))), _THERE) * (255 // _THERE)
    size = (screen[0] // _REDUCED[screen], screen[1] // _REDUCED[screen])
    return cv2.resize(ink.astype(np.uint8), size, interpolation=cv2.INTER_AREA)


def difference(stored: Any, now: Any, screen: tuple[int, int]) -> float:
    """Return by how much the worst band differs, each at the height at which it fits best."""
    scale = _REDUCED[screen]
    high, most = _BAND // scale, _MOVED // scale
    before, after = (cv2.GaussianBlur(image.astype(np.float32), (0, 0), _BLUR / scale) for image in (stored, now))
    padded = np.pad(after, ((most, most), (0, 0)), mode="edge")
    worst = 0.0
    for at in range(0, len(before), high):
        band = before[at : at + high]
        fits = (np.abs(band - padded[at + by : at + by + len(band)]).mean() for by in range(2 * most + 1))
        worst = max(worst, float(min(fits)))
    return worst


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.file.stem)
def test_it_looks_as_stored(browser: Browser, run: Path, look: Look) -> None:
    now = seen(opened(browser, run, *look), look.screen)
    if os.environ.get("MT_STORE_LOOKS"):
        cv2.imwrite(str(look.file), now, [cv2.IMWRITE_PNG_COMPRESSION, 9])
    stored = cv2.imread(str(look.file), cv2.IMREAD_GRAYSCALE)
    assert difference(stored, now, look.screen) < _TOLERATED, f"see {look.file}; {__doc__}"


CHANGES = {
    "no headline": "h1 { visibility: hidden }",
    "no picture": ".front img { visibility: hidden }",
    "the picture lower": ".front { margin-top: 120px }",
}


@pytest.mark.parametrize(
    "look",
    [*LOOKS[:1], *(pytest.param(look, marks=pytest.mark.long) for look in LOOKS[1:3]), *LOOKS[3:]],
    ids=lambda look: look.file.stem,
)
def test_another_font_is_let_pass_and_a_missing_part_is_not(browser: Browser, run: Path, look: Look) -> None:
    stored = cv2.imread(str(look.file), cv2.IMREAD_GRAYSCALE)
    styles = {**{font: f"body {{ font-family: {font} }}" for font in FONTS}, **CHANGES}
    found = {
        what: difference(stored, seen(opened(browser, run, *look, style), look.screen), look.screen)
        for what, style in styles.items()
    }
    assert all(found[font] < _TOLERATED for font in FONTS), found
    assert all(found[name] > _TOLERATED for name in CHANGES), found


def test_the_stored_screenshots_are_small() -> None:
    assert sum(look.file.stat().st_size for look in LOOKS) < 200_000
