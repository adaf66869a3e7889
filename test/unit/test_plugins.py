# SPDX-License-Identifier: Apache-2.0
"""Plugins are found by name, and no more of them are imported than were asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mt_nodes.base import plugins

LOADED = """
import sys
from mt_nodes.base import plugins
plugins.get("mutations", "fog"), plugins.get("mutations", "no_such")
package = "mt_nodes.relations.mutations."
print(len([name for name in sys.modules if name.startswith(package)]))
print("scipy" in sys.modules)
"""
MINE = """
from mt_nodes.relations.mutations.base import Mutation
class {name}(Mutation):
    \"\"\"Mine.\"\"\"
    def draw(self, rng, bundle, state): ...
    def apply(self, bundle, draw): ...
    def guarantee(self, source, followup, draw): ...
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(plugins, "_directories", [tmp_path])
    plugins.catalogue.cache_clear()
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


@pytest.fixture(autouse=True)
def as_before() -> object:
    yield
    plugins.catalogue.cache_clear()


@pytest.mark.parametrize("kind", plugins.KINDS)
def test_one_by_name_is_the_one_of_the_catalogue(kind: str) -> None:
    catalogue = plugins.catalogue(kind)
    assert catalogue and all(plugins.get(kind, name) is cls for name, cls in catalogue.items())
    assert plugins.get(kind, "no_such_thing") is None


def test_a_base_class_or_a_helper_is_no_plugin() -> None:
    assert plugins.get("mutations", "mutation") is None and plugins.get("mutations", "followup") is None


def test_one_by_name_imports_few_modules_and_no_slow_library() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    count, with_scipy = ran.stdout.splitlines()
    assert int(count) < 45 and with_scipy == "False"


def test_a_users_own_is_found(directory: Path) -> None:
    (directory / "mine.py").write_text(MINE.format(name="MyOwn"))
    cls = plugins.get("mutations", "my_own")
    assert cls is not None and plugins.summary_of(cls) == "Mine."
    assert plugins.get("mutations", "fog") is not None


def test_a_users_own_by_a_name_of_ours_is_refused_whatever_is_asked_for(directory: Path) -> None:
    (directory / "clash.py").write_text(MINE.format(name="Fog"))
    for name in ("fog", "rain"):
        with pytest.raises(plugins.UsageError, match="two mutations are named 'fog'"):
            plugins.get("mutations", name)
