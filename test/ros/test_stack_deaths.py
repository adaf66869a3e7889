# SPDX-License-Identifier: Apache-2.0
"""Stacks that die or hang without topics: the run ends with exit code 4, named, and never clean again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from dying_stack import HARMLESS, WAYS, drive, running, stack
from forked_mt import forked_mt
from made_runs import no_pages

from mt_nodes.base.jsonl import read_result
from mt_nodes.base.processes import wait_until
from mt_nodes.cli.main import main
from mt_nodes.stacks.stack_process import StackProcess

MT = (sys.executable, "-m", "mt_nodes.cli.main")


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drive(tmp_path_factory.mktemp("drive"))


@pytest.fixture
def relation(tmp_path: Path) -> str:
    """One that three pairs decide."""
    given = {"id": "noise", "kind": "necessary", "because": "x", "mutate": [{"noise_outside_roi": {"points": 10}}]}
    path = tmp_path / "noise.yaml"
    path.write_text(yaml.safe_dump({**given, "check": "obstacles_kept", "min_decided": 1}))
    return str(path)


def replay(bag: Path, out: Path, stack: Path, relation: str, *more: str) -> int:
    words = ["--stack", str(stack), "--relations", relation, "--out", str(out)]
    return main(["replay", str(bag), "--transport", "inprocess", *words, *more])


def summary_of(out: Path) -> dict[str, Any]:
    summary: dict[str, Any] = read_result(out / "summary.json")
    return summary


def refuse_clean(out: Path, how: str) -> dict[str, Any]:
    """Check that every file tells of a death, and that nothing passed."""
    summary = summary_of(out)
    assert summary["exit_code"] == 4
    assert all(how in death["reason"] for death in summary["deaths"]) and how in summary["exit_why"]
    assert {r["outcome"] for r in summary["relations"].values()} == {"INCONCLUSIVE"}
    assert int(ET.parse(out / "junit.xml").getroot().get("errors", "0")) > 0
    return summary


@pytest.mark.parametrize("at", [1, 9, "import"])
@pytest.mark.parametrize("way", WAYS)
def test_a_death_ends_the_run_and_is_named(
    bag: Path, tmp_path: Path, relation: str, way: str, at: int | str, capsys: Any
) -> None:
    more = {"ready_timeout_s": 1.0} if at == "import" and "sleep" in way else {}
    with no_pages():
        assert replay(bag, tmp_path / "out", stack(tmp_path, way, at, **more), relation) == 4
    how = WAYS[way] if not more else "was not ready after 1 s (ready_timeout_s) and was killed"
    summary = refuse_clean(tmp_path / "out", how)
    assert f"stack 'dying' {how}" in summary["exit_why"]
    assert how in capsys.readouterr().out
    offered = sum(summary["outcomes"].values())
    assert summary["outcomes"].get("ERROR", 0) == (0 if at == "import" else 1) and offered < 9


HOG = "os.fork() or (time.sleep(3600), os._exit(0))"


@pytest.mark.parametrize(
    ("way", "limits", "how"),
    [
        (f"[{HOG} for _ in range(60)] and time.sleep(60)", {"processes": 40}, "processes, expected at most 40"),
        ("threading.x = b'1' * 200_000_000; time.sleep(60)", {"memory_mb": 150}, "MB, expected at most 150"),
        # It may be looked at while it is written.
        (
            "print('x' * 2_000_000, flush=True); time.sleep(60)",
            {"log_mb": 1},
            r"log has (1\.[0-9]|2\.0) MB, expected at most 1",
        ),
        ("[os.dup(0) for _ in range(200)]", {"open_files": 100}, "Too many open files"),
    ],
)
def test_a_stack_that_takes_too_much_ends_the_run(
    bag: Path, tmp_path: Path, relation: str, way: str, limits: dict[str, float], how: str
) -> None:
    path = stack(tmp_path, way, 2, limits=limits, deadline_s=30.0)
    with no_pages():
        assert replay(bag, tmp_path / "out", path, relation) == 4
    assert re.search(how, summary_of(tmp_path / "out")["exit_why"])
    assert yaml.safe_load((tmp_path / "out" / "stack.yaml").read_text())["limits"].items() > limits.items()


def test_of_two_processes_it_is_told_which_one_died(bag: Path, tmp_path: Path, relation: str) -> None:
    path = stack(tmp_path, "os._exit(0)", 2, stateless=False)
    with no_pages():
        assert replay(bag, tmp_path / "out", path, relation) == 4
    assert " arm) ended with exit code 0" in summary_of(tmp_path / "out")["exit_why"]


@pytest.mark.parametrize("way", HARMLESS)
def test_who_lives_to_the_end_is_judged(bag: Path, tmp_path: Path, relation: str, way: str) -> None:
    with no_pages():
        assert replay(bag, tmp_path / "out", stack(tmp_path, way, 5), relation) == 0
    assert "deaths" not in summary_of(tmp_path / "out")


def test_a_run_that_goes_on_after_a_death_is_not_clean(bag: Path, tmp_path: Path, relation: str) -> None:
    out, how = tmp_path / "out", WAYS["os._exit(0)"]
    assert replay(bag, out, stack(tmp_path, "os._exit(0)", 9, times=1), relation) == 4
    assert main(["replay", "--resume", str(out)]) == 4
    summary = refuse_clean(out, how)
    assert summary["infrastructure"] is None and summary["offered"] == 9
    assert "the stack failed 1 time" in summary["relations"]["noise"]["why"]
    assert f"stack &#39;dying&#39; {how}" in (out / "report.html").read_text()


def test_a_death_at_no_pair_stays_as_well(bag: Path, tmp_path: Path, relation: str) -> None:
    out, path = tmp_path / "out", stack(tmp_path, "os._exit(0)", "import")
    module = next(tmp_path.glob("dying_*.py"))
    dead = module.read_text()
    with no_pages():
        assert replay(bag, out, path, relation) == 4
        module.write_text(dead.replace("\ndie()\n", "\n"))
        assert main(["replay", "--resume", str(out)]) == 4
    assert refuse_clean(out, WAYS["os._exit(0)"])["outcomes"] == {"HOLDS": 9}


def test_a_stack_that_ends_after_its_last_answer_has_died(bag: Path, tmp_path: Path, relation: str) -> None:
    """Of nine calls the last one leaves a thread behind, which ends the process before anybody asks it to end."""
    way = "threading.Thread(target=lambda: (time.sleep(0.2), os._exit(0))).start()"
    path = stack(tmp_path, way, 12)
    with no_pages(), pytest.MonkeyPatch.context() as patch:
        stop = _Stop(patch)
        assert replay(bag, tmp_path / "out", path, relation) == 4
    assert stop.waited
    refuse_clean(tmp_path / "out", WAYS["os._exit(0)"])


class _Stop:
    """Has an arm stop only when its process has ended by itself."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.waited, original = False, StackProcess.stop

        def stop(process: StackProcess) -> None:
            self.waited = process._dead(30.0)
            original(process)

        patch.setattr(StackProcess, "stop", stop)


@pytest.mark.parametrize(
    "way",
    [
        "signal.raise_signal(signal.SIGSEGV)",
        *(pytest.param(way, marks=pytest.mark.long) for way in ("os._exit(0)", "time.sleep(3600)")),
    ],
)
def test_a_campaign_keeps_every_death(bag: Path, tmp_path: Path, relation: str, way: str, capsys: Any) -> None:
    path = stack(tmp_path, way, 9, times=1)
    file = tmp_path / "campaign.yaml"
    given = {"bags": [str(bag)], "stacks": [str(path)], "relations": [relation], "transport": "inprocess"}
    file.write_text(yaml.safe_dump({**given, "retries": 2}))
    assert main(["campaign", str(file), "--out", str(tmp_path / "out")]) == 4
    summary, how = summary_of(tmp_path / "out"), WAYS[way]
    assert summary["items"]["done"] == 1
    (cell,) = summary["cells"].values()
    assert cell["exit_code"] == 4 and cell["relations"]["noise"]["outcome"] == "INCONCLUSIVE"
    (death,) = summary["campaign"]["failed_tries"]
    assert death["attempts"] == 1 and how in death["why"]
    assert how in capsys.readouterr().out and how in (tmp_path / "out" / "report.html").read_text()
    # A resumed campaign knows it still.
    assert main(["campaign", "--resume", str(tmp_path / "out")]) == 4


def test_a_campaign_gives_a_stack_up_that_dies_every_time(bag: Path, tmp_path: Path, relation: str) -> None:
    file = tmp_path / "campaign.yaml"
    path = stack(tmp_path, "os._exit(0)", 1)
    given = {"bags": [str(bag)], "stacks": [str(path)], "relations": [relation], "transport": "inprocess"}
    file.write_text(yaml.safe_dump({**given, "retries": 1}))
    assert main(["campaign", str(file), "--out", str(tmp_path / "out")]) == 4
    assert summary_of(tmp_path / "out")["items"]["failed"] == 1


def test_a_search_that_goes_on_after_a_death_is_not_clean(bag: Path, tmp_path: Path, relation: str) -> None:
    path, out = stack(tmp_path, "os._exit(0)", 5, times=1), tmp_path / "out"
    words = ["--relation", relation, "--stack", str(path), "--trials", "3", "--out", str(out)]
    assert main(["search", str(bag), "--transport", "inprocess", *words]) == 4
    assert main(["search", "--resume", str(out)]) == 4
    summary = summary_of(out)
    assert summary["trials"] and WAYS["os._exit(0)"] in summary["exit_why"]


def leaving(place: Path, call: str, where: str) -> tuple[str, list[str]]:
    """Write a relation whose check (``judge``) or mutation (``apply``) makes a call; return it, and what finds it."""
    plugins = place / "plugins"
    plugins.mkdir()
    (plugins / "leaving.py").write_text(CHECK.format(call=call if where == "judge" else "pass"))
    (plugins / "going.py").write_text(MUTATION.format(call=call if where == "apply" else "pass"))
    made = {"id": "leaves", "kind": "necessary", "because": "x", "mutate": ["going"], "check": "leaving"}
    (place / "leaves.yaml").write_text(yaml.safe_dump({**made, "min_decided": 1}))
    return str(place / "leaves.yaml"), ["--plugins", str(plugins), "--out", str(place / "out")]


EXITS = ("sys.exit(0)", "os._exit(0)", "C._exit(0)", "C.exit(0)", "C._exit(1)")


@pytest.mark.parametrize(
    ("where", "call"),
    [
        *(("judge", call) for call in EXITS),
        ("apply", "C.exit(0)"),
        *(pytest.param("apply", call, marks=pytest.mark.long) for call in EXITS if call != "C.exit(0)"),
    ],
)
def test_a_plugin_that_exits_does_not_pass(bag: Path, tmp_path: Path, call: str, where: str) -> None:
    relation, words = leaving(tmp_path, call, where)
    named = ("--stack", str(stack(tmp_path, "pass")), "--relations", relation, *words)
    ended = forked_mt("replay", str(bag), "--transport", "inprocess", *named)
    assert ended.returncode == 4, ended.stdout + ended.stderr
    if call != "sys.exit(0)":
        assert f"mt: the process ended with exit code {call[-2]} before the command was done" in ended.stderr
        assert not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.parametrize("where", ["judge", pytest.param("apply", marks=pytest.mark.long)])
def test_nor_does_one_in_a_search(bag: Path, tmp_path: Path, where: str) -> None:
    relation, words = leaving(tmp_path, "C._exit(0)", where)
    named = ("--stack", str(stack(tmp_path, "pass")), "--relation", relation, "--trials", "2", *words)
    ended = forked_mt("search", str(bag), "--transport", "inprocess", *named)
    assert ended.returncode == 4 and "so there is no verdict" in ended.stderr, ended.stdout + ended.stderr


def test_nor_does_one_in_a_campaigns_worker(bag: Path, tmp_path: Path) -> None:
    relation, words = leaving(tmp_path, "C.exit(0)", "apply")
    given = {"bags": [str(bag)], "stacks": [str(stack(tmp_path, "pass"))], "relations": [relation]}
    (tmp_path / "campaign.yaml").write_text(yaml.safe_dump({**given, "transport": "inprocess", "retries": 1}))
    assert forked_mt("campaign", str(tmp_path / "campaign.yaml"), *words).returncode == 4
    summary = summary_of(tmp_path / "out")
    assert summary["items"]["failed"] == 1 and summary["exit_code"] == 4


@pytest.mark.parametrize("where", ["apply", pytest.param("judge", marks=pytest.mark.long)])
def test_nor_does_one_over_topics(bag: Path, tmp_path: Path, domains: tuple[int, ...], where: str) -> None:
    relation, words = leaving(tmp_path, "C._exit(0)", where)
    ended = forked_mt("replay", str(bag), "--stack", str(stack(tmp_path, "pass")), "--relations", relation, *words)
    assert ended.returncode == 4 and "the suite process ended with exit code 0" in ended.stderr, ended.stderr
    assert not (tmp_path / "out" / "summary.json").exists()


def test_nor_does_a_check_of_whole_drives(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "watching.py").write_text(DRIVE_CHECK)
    made = {"id": "leaves", "kind": "necessary", "because": "x", "scenario": ["pedestrian_nearer"]}
    (tmp_path / "leaves.yaml").write_text(yaml.safe_dump({**made, "check": "watching", "min_decided": 1}))
    words = ("--relations", str(tmp_path / "leaves.yaml"), "--plugins", str(plugins), "--out", str(tmp_path / "out"))
    ended = forked_mt("scenario", "pedestrian_crosses", "--transport", "inprocess", *words)
    assert ended.returncode == 4 and "so there is no verdict" in ended.stderr, ended.stdout + ended.stderr
    assert (tmp_path / "out" / "run.json").exists() and not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("list", "checks"),
        ("replay", "{bag}"),
        ("scenario", "pedestrian_crosses"),
        ("experiment", "moral", "--transport", "inprocess", "--runs", "20"),
        ("live", "--config", "{live}"),
        ("mutate", "{bag}", "--mutation", "fog", "--out", "{out}"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_ends_with_0_where_a_plugin_exits_as_it_is_imported(
    bag: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "leaving.py").write_text("import ctypes\nctypes.CDLL(None).exit(0)\n")
    (tmp_path / "live.yaml").write_text("mode: shadow\nrelations: [noise_outside_roi_10]\n")
    places = {"bag": bag, "live": tmp_path / "live.yaml", "out": tmp_path / "out"}
    ended = forked_mt(*(word.format(**places) for word in words), "--plugins", str(tmp_path))
    assert ended.returncode == 4 and "so there is no verdict" in ended.stderr, ended.stdout + ended.stderr


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["table", "json"])
def test_a_run_whose_reader_went_away_does_not_pass(bag: Path, tmp_path: Path, relation: str, more: list[str]) -> None:
    """`mt replay … --json | head -1` ended with 0, whatever the run had come to."""
    words = ["--stack", str(stack(tmp_path, "os._exit(0)", 9)), "--relations", relation, "--out", str(tmp_path / "out")]
    read, write = os.pipe()
    os.close(read)
    call = [*MT, "replay", str(bag), "--transport", "inprocess", *words, *more]
    ended = subprocess.run(call, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert ended.returncode == 128 + signal.SIGPIPE, ended.stderr
    assert "plugin" not in ended.stderr and summary_of(tmp_path / "out")["exit_code"] == 4


CHECK = """
import ctypes, os, sys
from dataclasses import dataclass
from mt_nodes.relations.checks.base import Check
from mt_nodes.data.verdict import Judgement, Outcome

C = ctypes.CDLL(None)

@dataclass(frozen=True)
class Leaving(Check):
    def judge(self, source, followup, effects, bundle):
        {call}
        return Judgement(Outcome.HOLDS, margin=0)
"""
DRIVE_CHECK = """
import ctypes
from dataclasses import dataclass
from mt_nodes.relations.checks.trace_check import TraceCheck

@dataclass(frozen=True)
class Watching(TraceCheck):
    def judge_drives(self, source, followup, effects):
        ctypes.CDLL(None)._exit(0)
"""
MUTATION = """
import ctypes, os, sys
from dataclasses import dataclass
from mt_nodes.relations.mutations.lidar.intensity_changed import IntensityChanged

C = ctypes.CDLL(None)

@dataclass(frozen=True)
class Going(IntensityChanged):
    def apply(self, bundle, draw):
        {call}
        return super().apply(bundle, draw)
"""


def test_an_interruption_ends_a_run_in_the_middle_of_a_call(bag: Path, tmp_path: Path, relation: str) -> None:
    way = f"pathlib.Path({str(tmp_path / 'called')!r}).touch(), time.sleep(3600)"
    path = stack(tmp_path, way, 2, deadline_s=600.0)
    words = ["--stack", str(path), "--relations", relation, "--out", str(tmp_path / "out")]
    process = subprocess.Popen([*MT, "replay", str(bag), "--transport", "inprocess", *words], stdout=subprocess.DEVNULL)
    assert wait_until((tmp_path / "called").exists, 200.0)
    process.send_signal(signal.SIGINT)
    assert process.wait(120.0) == 130
    summary = summary_of(tmp_path / "out")
    assert summary["interrupted"] and "deaths" not in summary


def test_nobody_is_left_behind(bag: Path, tmp_path: Path, relation: str) -> None:
    way = "__import__('subprocess').Popen(['sleep', '3599.25']), os._exit(0)"
    with no_pages():
        assert replay(bag, tmp_path / "out", stack(tmp_path, way, 2), relation) == 4
    assert wait_until(lambda: not running("sleep\x003599.25"), 150.0)


def test_sigterm_interrupts_a_run_in_process(bag: Path, tmp_path: Path, relation: str) -> None:
    out, path = tmp_path / "out", stack(tmp_path, "time.sleep(3600)", 5, deadline_s=600.0)
    words = ("replay", str(bag), "--transport", "inprocess", "--stack", str(path), "--relations", relation)
    process = subprocess.Popen([*MT, *words, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_until((tmp_path / "deaths").exists, 60.0)
        process.terminate()
        assert process.wait(60.0) == 130
    finally:
        process.kill()
    assert summary_of(out)["exit_code"] == 130 and not running(str(path))
