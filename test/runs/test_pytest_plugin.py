# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest: what passes, what never does, and what a failure says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from recordings import drive, write_bag

pytest_plugins = ["pytester"]

NOISE = "noise_outside_roi_1000"
QUIET = ("-p", "no:dash", "-p", "no:cacheprovider", "-p", "no:randomly")
#: Before the tests of an inner session.
HEAD = f"""
BOXES = [[10.0, 0.0, 0.8, 4.0, 2.0, 1.6, 0.0], [20.0, 3.0, 0.8, 4.0, 2.0, 1.6, 0.0]]
NOISE = "{NOISE}"
IN_CAR = {{"points_frame": "base_link", "stateless": True}}
HOW = {{"settings": IN_CAR, "report": False}}

class Flickers:
    answers = 0
    def __call__(self, points):
        self.answers += 1
        return BOXES[: 1 + self.answers % 2]

def honest(points):
    return BOXES
"""


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [row for row in drive(21) if "camera" not in row.topic]
    return write_bag(tmp_path_factory.mktemp("recorded") / "bag", rows)


def test_only_a_pass_passes(pytester: pytest.Pytester, bag: Path) -> None:
    pytester.makepyfile(
        HEAD
        + """
def test_honest(assert_holds, mt_bag):
    result = assert_holds(mt_bag, honest, NOISE, **HOW)
    assert result.outcome == "PASS" and len(result.pairs) == 63
def test_violated(assert_holds, mt_bag):
    assert_holds(mt_bag, lambda points: BOXES[: 2 - (len(points) > 50)], NOISE, **HOW)
def test_inconclusive(assert_holds, mt_bag):
    assert_holds(mt_bag, honest, NOISE, limit=3, **HOW)
def test_unstable(assert_holds, mt_bag):
    assert_holds(mt_bag, Flickers, NOISE, **HOW)
def test_nothing_decided(assert_holds, mt_bag):
    assert_holds(mt_bag, lambda points: [], NOISE, **HOW)
def test_error(assert_holds, mt_bag):
    assert_holds(mt_bag, lambda points: [[float("nan")] * 7], NOISE, **HOW)
def test_raises(assert_holds, mt_bag):
    assert_holds(mt_bag, lambda points: 1 / 0, NOISE, **HOW)
def test_one_of_two_relations(assert_holds, mt_bag):
    assert_holds(mt_bag, honest, [NOISE, "object_found_car"], **HOW)
def test_no_relation(assert_holds, mt_bag):
    assert_holds(mt_bag, honest, [], **HOW)
def test_no_bag(assert_holds):
    assert_holds([], honest, NOISE, **HOW)
def test_truth(mt_bag):
    import mt_nodes as mt
    assert mt.replay(mt_bag, honest, NOISE, out="truth", **HOW)
"""
    )
    # In process, pytester would unload what the runs have imported, and NumPy cannot be imported twice.
    done = pytester.runpytest_subprocess(*QUIET, "--mt-bag", str(bag))
    done.assert_outcomes(passed=1, failed=10)
    text = done.stdout.str()
    assert "AssertionError: FAIL (exit code 1)" in text and "lost unknown at (20.0, 3.0) m" in text
    assert f"reproduce: mt reproduce {pytester.path.parent}" in text and "  picture: " in text
    picture = next(Path(line.split(": ", 1)[1]) for line in text.splitlines() if "  picture: " in line)
    assert picture.suffix == ".svg" and picture.is_file()
    for words in ("INCONCLUSIVE: 3 frames decided", "UNSTABLE", "21 NOT_APPLICABLE", "pairs ended in ERROR"):
        assert words in text
    assert "raised ZeroDivisionError: division by zero" in text and "neither true nor false" in text
    assert "mt_nodes/api/replays.py" not in text, "the traceback ends in the user's test"


def test_bags_come_from_options_and_configuration(pytester: pytest.Pytester, bag: Path) -> None:
    pytester.makepyfile("def test_bag(mt_bag, mt_stack):\n    print(f'got {mt_bag} {mt_stack}')\n")
    nothing = pytester.runpytest_inprocess(*QUIET)
    nothing.assert_outcomes(errors=1)
    nothing.stdout.fnmatch_lines(["*mt_bag: none is given; type pytest --mt-bag BAG*"])
    several = pytester.runpytest_inprocess(*QUIET, "-s", "--mt-bag", "a", "--mt-bag=b", "--mt-stack", "mine.yaml")
    several.assert_outcomes(passed=2)
    several.stdout.fnmatch_lines(["*got a mine.yaml*", "*got b mine.yaml*"])
    pytester.makeini("[pytest]\nmt_bag = recorded/bag\nmt_stack = reference_detector\n")
    (pytester.path / "recorded" / "bag").mkdir(parents=True)
    configured = pytester.runpytest_inprocess(*QUIET, "-s")
    configured.stdout.fnmatch_lines([f"*got {pytester.path / 'recorded' / 'bag'} reference_detector*"])


def test_who_does_not_use_it_pays_nothing(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_sessionfinish():\n"
        "    ours = {name for name in sys.modules if name.startswith('mt_nodes')}\n"
        "    print('\\nloaded', *sorted(ours), *sorted({'numpy', 'scipy', 'yaml', 'rosbags'} & set(sys.modules)))\n"
    )
    (tmp_path / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-s", *QUIET, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    (loaded,) = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("loaded")]
    assert loaded == ["mt_nodes", "mt_nodes.api", "mt_nodes.api.pytest_plugin", "mt_nodes.base", "mt_nodes.base.moved"]
