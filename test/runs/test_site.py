# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: every page is there, and no link or anchor leads nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("material", reason="mkdocs-material is not installed; `make test` installs it")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(build, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return out


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = sorted((ROOT / "docs").rglob("*.md"))
    assert len(pages) > 60
    missing = [
        page for page in pages if not (site / page.relative_to(ROOT / "docs").with_suffix("") / "index.html").exists()
    ]
    assert not missing
    menu = (site / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{page.stem}/"' in menu for page in pages if page.parent == ROOT / "docs")
    assert 'href="decisions/0001-processes-and-output/"' in menu


def test_the_front_page_is_the_readme_with_its_links_mended(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    assert "metamorphic" in front.lower() and 'src="violation.png"' in front
    assert 'href="verdicts/"' in front and 'href="contributing/"' in front and "docs/verdicts" not in front


def test_what_is_not_on_the_site_is_named_but_no_link(site: Path) -> None:
    page = (site / "ci" / "index.html").read_text(encoding="utf-8")
    assert "<code>examples/ci/github/mt_nodes.yml</code>" in page and 'mt_nodes.yml"' not in page


def test_the_picture_of_the_rooms_is_drawn(site: Path) -> None:
    assert 'src="../rooms.svg"' in (site / "architecture" / "index.html").read_text(encoding="utf-8")
    picture = ElementTree.parse(site / "rooms.svg")
    drawn = {text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert drawn == {room.parent.name for room in (ROOT / "mt_nodes").glob("*/__init__.py")}
