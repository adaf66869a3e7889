# SPDX-License-Identifier: Apache-2.0
"""Completion in a shell: names come at once, and exit code 0 of a completion never stands for that of a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mt_nodes.base import plugins
from mt_nodes.cli import completion
from mt_nodes.cli.main import COMMANDS, HIDDEN

MAIN = (sys.executable, "-m", "mt_nodes.cli.main")


def completed(line: str, place: Path) -> list[str]:
    """Return what `mt` gives a shell for a line, as the function of `register-python-argcomplete` asks it."""
    out = place / "completions"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    env = {**os.environ, **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(out)}
    done = subprocess.run(MAIN, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [word.strip() for word in out.read_text().split("\n")]


@pytest.mark.parametrize(
    ("line", "among"),
    [
        ("mt ", {*COMMANDS} - {*HIDDEN}),
        ("mt rules ch", {"check"}),
        ("mt replay x --relat", {"--relations"}),
        ("mt replay x --relations fog_m", {"fog_monotone"}),
        ("mt replay x --relations weather,sens", {"weather,sensor_faults", "weather,sensor_noise_boxes"}),
        ("mt replay x --stack reference_d", {"reference_detector", "reference_driver"}),
        ("mt mutate x --mutation fo", {"fog"}),
        ("mt show noise_outside_roi", {"noise_outside_roi", "noise_outside_roi_10"}),
        ("mt list su", {"suites"}),
    ],
)
def test_names_and_options_are_completed(line: str, among: set[str], tmp_path: Path) -> None:
    words = completed(line, tmp_path)
    assert among <= set(words) and not set(words) & set(HIDDEN)
    last = line.rpartition(" ")[2]
    assert all(word.startswith(last) for word in words)


def test_a_line_with_arguments_is_carried_out_whatever_the_environment(tmp_path: Path) -> None:
    line = "mt list relations"
    set_by_shell = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    env = {**os.environ, **set_by_shell, "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "out")}
    done = subprocess.run((*MAIN, "replay", "no_bag"), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no bag no_bag" in done.stderr
    assert not completion.is_asked_for(["mt", "replay"], env) and completion.is_asked_for(["mt"], env)
    assert not completion.is_asked_for(["mt"], {"_ARGCOMPLETE": "1"})


def test_mutations_and_faults_are_found_without_importing_them() -> None:
    assert completion.mutation_names() == list(plugins.catalogue("mutations"))
    assert completion.fault_names() == list(plugins.catalogue("faults"))


def test_help_lists_of_kinds_and_names_need_no_numpy() -> None:
    """It takes longer to import than all the rest of `mt --help`, at every press of the tabulator."""
    code = (
        "import sys\n"
        "from mt_nodes.cli import completion\n"
        "from mt_nodes.cli.main import main, _parser\n"
        "main(['list'])\n"
        "for command in ('replay', 'scenario', 'suggest', 'live', 'campaign', 'show', 'mutate', 'shrink', 'search'):\n"
        "    _parser([command])\n"
        "assert completion.relation_words() and completion.mutation_names()\n"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run((sys.executable, "-c", code), capture_output=True, check=False).returncode == 0
