# SPDX-License-Identifier: Apache-2.0
"""Entry points of plugins are found wherever packages are installed; where there are none, little is read."""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from mt_nodes.base.entry_points import entry_points_of

GROUP = "mt_nodes.plugins_for_tests"
TEXT = f"[console_scripts]\nother = mine:main\n\n[{GROUP}]\nmine = my_plugins.some\n"
KINDS = ("mine-1.0.dist-info", "mine.egg-info", "MINE-1.0.DIST-INFO", "mine-1.0-py3.11.egg/EGG-INFO")


def described(place: Path, kind: str, text: str = TEXT) -> Path:
    """Describe a package in a directory; return what has to be in the path for it."""
    (place / kind).mkdir(parents=True)
    metadata = "METADATA" if kind.lower().endswith("dist-info") else "PKG-INFO"
    (place / kind / metadata).write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (place / kind / "entry_points.txt").write_text(text)
    return (place / kind).parent


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads about every package fails; no finder but Python's, as in our processes: setuptools adds one."""
    ours = [one for one in sys.meta_path if one is PathFinder or not hasattr(one, "find_distributions")]
    monkeypatch.setattr(sys, "meta_path", ours)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: pytest.fail("packages were read about"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_package_is_found_as_python_finds_it(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(described(tmp_path, kind))
    [point] = entry_points_of(GROUP)
    assert (point.name, point.value, point.group) == ("mine", "my_plugins.some", GROUP)
    assert [point] == [*importlib.metadata.entry_points(group=GROUP)]


def test_the_current_directory_counts_as_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(described(tmp_path, KINDS[0]))
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert [point.name for point in entry_points_of(GROUP)] == ["mine"]


def test_so_does_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("mine-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        archive.writestr("mine-1.0.dist-info/entry_points.txt", TEXT)
    monkeypatch.syspath_prepend(tmp_path / "packages.zip")
    assert [point.name for point in entry_points_of(GROUP)] == ["mine"]


def test_and_a_finder_of_somebodys_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described(tmp_path, KINDS[0])

    class Finder(importlib.metadata.DistributionFinder):
        def find_spec(self, *_: object) -> None:
            return None

        def find_distributions(  # type: ignore[override]
            self, context: importlib.metadata.DistributionFinder.Context
        ) -> list[importlib.metadata.Distribution]:
            return [importlib.metadata.PathDistribution(tmp_path / KINDS[0])]

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    assert [point.name for point in entry_points_of(GROUP)] == ["mine"]


@pytest.mark.parametrize("text", ["", "[console_scripts]\nother = mine:main\n"])
@pytest.mark.usefixtures("unread")
def test_packages_without_any_are_not_read_about(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described(tmp_path, KINDS[0], text)
    (tmp_path / "plain.egg-info").write_text("one of distutils, a file")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "not there"), *sys.path])
    assert entry_points_of(GROUP) == ()
