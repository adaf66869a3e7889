# SPDX-License-Identifier: Apache-2.0
"""The database of failing cases: judged first, kept, expired, retired, written by several at once, never relied on."""

from __future__ import annotations

import inspect
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from made_runs import about_the_stream, no_pages
from recordings import bundles

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.relations.mutations.lidar.drawn_returns import PointsDropped, RowsLost
from mt_nodes.relations.relation import load_relation
from mt_nodes.runs.campaign import cases, regression
from mt_nodes.runs.campaign import failures as failing
from mt_nodes.runs.campaign.cases import code_of
from mt_nodes.runs.campaign.failures import RETIRE_AFTER, FailureCase, Failures

POINTS, COUNT = 100, 8
STACK = '''
import numpy as np
from mt_nodes.data.outputs import Detections

class Odd:
    """Loses its obstacle when points are missing from certain clouds, which it knows by their stamps."""
    def __init__(self, bundles, least=100):
        self.bundles, self.least, self.short = bundles, least, 0
    def __call__(self, points, stamp_ns):
        number = stamp_ns // 100_000_000 % 100
        lost = number in self.bundles and len(points) < self.least
        return Detections.make("base_link", None, np.tile([10.0, 0.0, 0.0], (1 - lost, 1)), np.ones((1 - lost, 3)))

class Counting(Odd):
    """The same, only after three clouds in a row that lacked points."""
    def __call__(self, points, stamp_ns):
        self.short = self.short + 1 if len(points) < self.least else 0
        return super().__call__(points if self.short > 3 else np.zeros((100, 4)), stamp_ns)
'''
CASE = FailureCase("drive", "aa", "odd", Pair(0, 3, "dropped", "0"), 0, "{}", "code", -1.0)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    write_bundles(tmp_path / "drive", bundles(COUNT, points=POINTS))
    (tmp_path / "failures_stack.py").write_text(STACK)
    stack(tmp_path, [2, 5])
    relation(tmp_path, 0.3)
    with no_pages():
        yield tmp_path


def stack(place: Path, numbers: list[int], name: str = "Odd") -> None:
    told = {"name": "odd", "callable": f"failures_stack:{name}", "params": {"bundles": numbers}}
    (place / "odd.yaml").write_text(json.dumps({**told, "stateless": name == "Odd", "outputs": {"detections": {}}}))


def relation(place: Path, share: float, name: str = "dropped") -> None:
    head = {"id": name, "kind": "expected", "because": "for tests", "min_decided": 1, "check": "obstacles_kept"}
    (place / f"{name}.yaml").write_text(json.dumps({**head, "mutate": [{"points_dropped": {"share": share}}]}))


def replay(out: str, *words: str, first: str = "--failures") -> list[dict[str, Any]]:
    """The verdict lines of a run, in the order in which they were written."""
    given = [] if "--relations" in words else ["--relations", "dropped.yaml"]
    code = main(
        ["replay", "drive", "--stack", "odd.yaml", "--transport", "inprocess", "--out", out, *given, *words]
        + ([first] if first else [])
    )
    assert code in (0, 1, 3), code
    return [line for line in read_journal(Path(out) / "result.jsonl") if line["type"] == "verdict"]


def kept() -> list[str]:
    with Failures(Path("mt_failures.sqlite")) as failures:
        return [str(case.pair) for case in failures.cases()]


def pairs(lines: list[dict[str, Any]]) -> list[str]:
    return [line["pair"] for line in lines]


def by_pair(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(lines, key=lambda line: str(line["pair"]))


@pytest.mark.parametrize("name", ["Odd", "Counting"])
def test_what_failed_is_judged_first_and_once(place: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    stack(place, [4, 6], name)
    before = replay("one")
    violated = [line["pair"] for line in before if line["outcome"] == "VIOLATED"]
    assert violated == ["0/4/dropped/0", "0/6/dropped/0"] and kept() == violated
    after = replay("two")
    head = violated if name == "Odd" else [f"0/{i}/dropped/0" for i in range(7)]
    assert pairs(after)[: len(head)] == head
    assert by_pair(after) == by_pair(before) == by_pair(replay("three", first=""))
    assert "2 cases that failed before: judged first" in capsys.readouterr().out
    ledgers = [sorted((place / out / "ledger.jsonl").read_text().splitlines()) for out in ("one", "two")]
    assert ledgers[0] == ledgers[1]


def test_a_case_that_holds_is_kept_for_a_while(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (failing, regression):
        monkeypatch.setattr(module, "RETIRE_AFTER", 2)
    replay("bad")
    stack(place, [2])
    for run in range(2):
        assert kept() == ["0/2/dropped/0", "0/5/dropped/0"], run
        replay(f"good{run}")
    assert kept() == ["0/2/dropped/0"]
    assert "1 case held 2 times: taken out" in capsys.readouterr().out


@pytest.mark.parametrize("keep", [False, True])
def test_a_case_expires_with_its_code(
    place: Path, keep: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replay("one")
    stack(place, [])
    relation(place, 0.25)
    lines = replay("two", *(["--keep-expired"] if keep else []))
    assert pairs(lines)[0] == "0/0/identity/0@dropped", "what expired is not judged first"
    assert "2 cases expired" in capsys.readouterr().out
    assert len(kept()) == (2 if keep else 0)


def test_the_code_is_that_of_the_mutation(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = code_of(load_relation("dropped.yaml"))
    assert code_of(load_relation("dropped.yaml")) == code
    relation(place, 0.31)
    assert code_of(load_relation("dropped.yaml")) != code
    relation(place, 0.3)
    read = Path.read_bytes
    own, inherited = (Path(inspect.getfile(cls)).name for cls in (PointsDropped, RowsLost))
    for changed in (own, inherited, "pipeline.py", "seeds.py", "base.py"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", lambda self, name=changed: read(self) + b"#" * (self.name == name))
            assert code_of(load_relation("dropped.yaml")) != code, changed
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda self: read(self) + b"#" * (self.name == "fog_dust_smoke.py"))
        assert code_of(load_relation("dropped.yaml")) == code


def test_cases_of_another_seed_or_place_are_told_not_judged(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay("one", "--seed", "7")
    for words in ((), ("--seed", "7", "--limit", "2"), ("--seed", "7", "--relations", "noise_outside_roi_10")):
        lines = replay(f"other{len(words)}-{words[-1] if words else ''}", *words)
        assert pairs(lines)[0].startswith("0/0/identity/0@")
        assert "not judged first: of another seed" in capsys.readouterr().out
    (place / "moved").mkdir()
    (place / "drive").rename(place / "moved" / "drive2")
    (place / "drive").symlink_to(place / "moved" / "drive2")
    assert pairs(replay("moved-bag", "--seed", "7"))[0] == "0/2/dropped/0", "a bag is known by its content"


def test_another_bag_or_stack_has_no_cases(place: Path) -> None:
    replay("one")
    write_bundles(place / "second", bundles(COUNT, points=POINTS + 1))
    assert main(["replay", "second", "--stack", "odd.yaml", "--transport", "inprocess", "--out", "two",
                 "--relations", "dropped.yaml", "--failures"]) in (0, 1, 3)  # fmt: skip
    lines = [line for line in read_journal(Path("two") / "result.jsonl") if line["type"] == "verdict"]
    assert pairs(lines)[0] == "0/0/identity/0@dropped"


def test_only_so_many_of_a_relation_and_the_worst_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "MOST_NEW", 1)
    replay("one")
    assert len(kept()) == 1


def test_cases_are_listed_and_forgotten(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["failures", "list"]) == 2
    replay("one")
    capsys.readouterr()
    assert main(["failures", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["pair"] for row in rows] == ["0/2/dropped/0", "0/5/dropped/0"]
    assert main(["failures", "list"]) == 0 and rows[0]["key"][:12] in capsys.readouterr().out
    assert main(["failures", "forget", rows[0]["key"][:12]]) == 0 and kept() == ["0/5/dropped/0"]
    assert main(["failures", "forget", "zz"]) == 2 and main(["failures", "forget"]) == 2
    assert main(["failures", "forget", "--all"]) == 0 and kept() == []


def test_options_that_do_not_go_together(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["replay", "drive", "--stack", "odd.yaml", "--relations", "dropped.yaml"]
    assert main([*common, "--failures", "--pace", "realtime"]) == 2
    assert "cannot go with --pace realtime" in capsys.readouterr().err
    assert main([*common, "--keep-expired"]) == 2 and "go with --failures" in capsys.readouterr().err


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "f.sqlite"
    path.write_text("no database at all, but long enough to be read as the head of one" * 40)
    with pytest.raises(InfrastructureError, match="delete it, or name another file"):
        Failures(path)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as store:
        store.execute("PRAGMA user_version = 9")
    with pytest.raises(InfrastructureError, match="has version 9"):
        Failures(other)


def test_a_failure_counts_anew(tmp_path: Path) -> None:
    with Failures(tmp_path / "f.sqlite") as failures:
        assert failures.failed([CASE]) == 1 and failures.failed([CASE]) == 0
        assert failures.record_outcomes([(CASE.key, Outcome.HOLDS)] * (RETIRE_AFTER - 1)) == []
        assert failures.cases()[0].held == RETIRE_AFTER - 1 and failures.cases()[0].last_passed
        failures.record_outcomes([(CASE.key, Outcome.INVALID)])
        assert failures.cases()[0].held == RETIRE_AFTER - 1, "what was not decided says nothing"
        failures.record_outcomes([(CASE.key, Outcome.VIOLATED)])
        assert failures.cases()[0].held == 0
        assert failures.record_outcomes([("no such key", Outcome.HOLDS)]) == []
        assert failures.cases(bags=["bb"]) == [] and failures.cases(stack="another") == []
        with pytest.raises(UsageError, match="0 cases begin with"):
            failures.forget([CASE.key, "zz"])
        assert len(failures.cases()) == 1, "all or nothing"


WRITER = """
import sys
from pathlib import Path
from mt_nodes.runs.campaign.failures import FailureCase, Failures
from mt_nodes.data.verdict import Outcome, Pair

shared = FailureCase("drive", "aa", "odd", Pair(0, 3, "dropped", "0"), 0, "{}", "code", -1.0)
print("ready", flush=True)
sys.stdin.readline()
for n in range(10):
    with Failures(Path(sys.argv[1])) as failures:
        own = FailureCase("drive", "aa", "odd", Pair(int(sys.argv[2]), n, "dropped", "0"), 0, "{}", "code")
        failures.failed([own, shared])
        failures.record_outcomes([(shared.key, Outcome.VIOLATED)])
"""


def test_several_write_at_once(tmp_path: Path) -> None:
    path, pipe = tmp_path / "f.sqlite", subprocess.PIPE
    words = [sys.executable, "-c", WRITER, str(path)]
    with ExitStack() as ending:
        writers = [
            ending.enter_context(subprocess.Popen([*words, str(i)], stdin=pipe, stdout=pipe, text=True))
            for i in range(1, 4)
        ]
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        assert [writer.wait(120.0) for writer in writers] == [0] * 3
    with Failures(path) as failures:
        assert len(failures.cases()) == 3 * 10 + 1


def test_relations_about_the_stream_can_be_judged_first(place: Path) -> None:
    """Follow-ups that persist over an episode come out alike, whichever of them are judged first."""
    files = ",".join(about_the_stream(place))
    stack(place, list(range(COUNT)))
    before = replay("one", "--relations", f"{files},dropped.yaml")
    assert by_pair(replay("two", "--relations", f"{files},dropped.yaml")) == by_pair(before)
