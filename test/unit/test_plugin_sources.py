# SPDX-License-Identifier: Apache-2.0
"""What lists say of shipped plugins without importing them is what the imported classes say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mt_nodes.base import plugins
from mt_nodes.base.plugin_sources import shipped_rows
from mt_nodes.cli import catalogue
from mt_nodes.cli.list_command import COLUMNS

KEYS = ("sensors", "role", "needs", "type", "stack", "extra", "stamped", "random")
#: Libraries that take long to import, and what lists a kind with none of them loaded.
SLOW = ("numpy", "scipy", "cv2", "shapely", "open3d", "rosbags", "mt_nodes.relations.mutations.base")
WITHOUT = ("mutations", "checks", "stream_checks", "conditions", "faults", "scenario_changes", "expectations")
LISTED = "import sys; from mt_nodes.cli.main import main; main(['list', {kind!r}])\nprint({slow!r} & set(sys.modules))"
MINE = """
from mt_nodes.relations.mutations.stream.identity import Identity
class MineAlone(Identity):
    \"\"\"Mine.\"\"\"
"""


@pytest.mark.parametrize("kind", plugins.KINDS)
def test_the_source_says_what_the_classes_say(kind: str) -> None:
    imported = [
        {"name": name, "summary": plugins.summary_of(cls)}
        | {key: getattr(cls, key) for key in KEYS if hasattr(cls, key)}
        for name, cls in plugins.catalogue(kind).items()
    ]
    assert imported and shipped_rows(kind, KEYS) == imported


@pytest.mark.parametrize("kind", [kind for kind in catalogue.kinds() if kind != "relations"])
def test_what_is_printed_is_what_json_says(kind: str) -> None:
    keys = ("name", "summary", *COLUMNS.get(kind, ()))
    brief = [{key: row[key] for key in keys} for row in catalogue.brief_rows(kind, COLUMNS.get(kind, ()))]
    assert brief == [{key: row[key] for key in keys} for row in catalogue.rows(kind)]


@pytest.mark.parametrize("kind", [*WITHOUT, "experiments", "scenarios", "regions"])
def test_a_list_is_printed_without_a_library_that_is_slow_to_import(kind: str) -> None:
    code = LISTED.format(kind=kind, slow=set(SLOW))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *listed, loaded = ran.stdout.splitlines()
    assert len(listed) == len(catalogue.names(kind)) and loaded == "set()"


def test_manipulations_are_listed_without_the_mutations_that_make_them() -> None:
    code = LISTED.format(kind="manipulations", slow={"scipy", "cv2", "open3d", "rosbags"})
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "set()"


def test_a_plugin_of_the_user_is_listed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    command = [sys.executable, "-m", "mt_nodes.cli.main", "list", "mutations", "--plugins", str(tmp_path)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert any(line.split()[0] == "mine_alone" and line.endswith("Mine.") for line in listed.splitlines())
