# SPDX-License-Identifier: Apache-2.0
"""A first look at a driver: the page's example drives, and what is wrong with another is said with what to write."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.cli.main import main
from mt_nodes.data.outputs import Control
from mt_nodes.stacks.callable_host import COMMAND, as_command

PAGE = Path(__file__).parents[2] / "docs" / "driver.md"
Check = Callable[[str, str], tuple[int, str]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Check:
    """Write a driver's file and check it: the exit code, and all that is said."""
    monkeypatch.chdir(tmp_path)

    def checked(code: str, name: str = "") -> tuple[int, str]:
        module = f"driver_{tmp_path.name}"
        sys.modules.pop(module, None)
        (tmp_path / f"{module}.py").write_text(code)
        got = main(["scenario", "--check", f"{module}.py{name}"])
        return got, "".join(capfd.readouterr())

    return checked


def test_the_example_of_the_page_drives(check: Check) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    code, said = check(example, "")
    assert code == 0, said
    assert "the same commands" in said and re.search(r"ok +drives ", said), said
    for given in ("objects", "odometry", "route", "signals", "lanes"):
        assert f"given: {given}" in said


def test_a_command_by_name_is_a_command(check: Check) -> None:
    code, said = check("def drive(told):\n    return {'speed_mps': 3.0, 'steering_rad': 0.0}\n", "")
    assert code == 0 and re.search(r"commands: speed_mps +3 to 3", said), said


@pytest.mark.parametrize(
    ("body", "name", "says"),
    [
        ("def drive(told):\n    return told['odometry'].speed", "", r"no attribute 'speed' \(driver_\w+\.py:2\)"),
        ("def drive(told):\n    return {'steering': 0.1}", "", r"returned dict .* expected Control\(None, speed_mps="),
        ("def drive(told):\n    return (0.1, 5.0)", "", r"returned tuple \(0\.1, 5\.0\), expected Control"),
        ("def drive(told):\n    return None", "", "return a Control at every call"),
        ("import math\nmath.nothing", "", r"no attribute 'nothing' \(driver_\w+\.py:2\)"),
        ("def control(told):\n    pass", "", "no attribute 'drive'; it has control"),
        ("def drive(told):\n    pass", ":Drive", "no attribute 'Drive'; it has drive"),
    ],
)
def test_what_is_wrong_is_said(check: Check, body: str, name: str, says: str) -> None:
    code, said = check(body + "\n", name)
    assert code in (2, 4) and re.search(says, " ".join(said.split())), said


def test_a_number_as_text_is_no_command() -> None:
    with pytest.raises(InfrastructureError, match=r"returned dict \{'speed_mps': 'fast'\}"):
        as_command({"speed_mps": "fast"})
    assert as_command(None) is None
    assert as_command(dict.fromkeys(COMMAND, 0.5)) == Control(None, *[0.5] * len(COMMAND))
