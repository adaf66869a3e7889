# SPDX-License-Identifier: Apache-2.0
"""``mt live``: what is typed, what is refused, and a run that is begun, asked, changed and stopped."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from ros_support import until

from mt_nodes.base.environment import free_domains, ros_environment
from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result, seal
from mt_nodes.base.processes import Child, Process
from mt_nodes.cli import live_command
from mt_nodes.cli.main import main
from mt_nodes.engine.plan import LIVE_SUITE, live_client, suite_process
from mt_nodes.nodes.live_control import SERVICES
from mt_nodes.runs.live.config import Limits, LiveConfig, Segments, live_config
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.settings import configured

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "live.yaml"
    path.write_text("mode: twin\nseed: 4\nsegments: {test_bundles: 9}\nrelations: [noise_outside_roi_10]\n")
    return path


# --- what is typed


def test_a_file_is_read_as_it_is_written(file: Path) -> None:
    wanted = LiveConfig(mode="twin", seed=4, segments=Segments(test_bundles=9), relations=("noise_outside_roi_10",))
    assert configured(file, {}) == wanted


def test_what_is_typed_takes_the_place_of_what_the_file_says(file: Path) -> None:
    typed = {"mode": "shadow", "segments.settle_bundles": 2, "limits.duty": 0.5, "relations": "a, b", "bundles": 7}
    made = configured(file, typed, seed=5)
    assert (made.mode, made.seed, made.relations, made.bundles) == ("shadow", 5, ("a", "b"), 7)
    assert made.segments == Segments(settle_bundles=2, test_bundles=9)
    assert made.limits == Limits(duty=0.5)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"mod": "twin"}, "--set: unknown parameter 'mod'; did you mean 'mode'"),
        ({"segments.test_bundle": 3}, "--set.segments: unknown parameter 'test_bundle'; did you mean 'test_bundles'"),
        ({"segments": 3}, "--set: got segments, expected a key such as segments.test_bundles or mode"),
        ({"x.y": 3}, "--set: got x.y, expected a key such as"),
        ({"limits.duty": 3}, "--set.limits.duty: got 3, expected 0 to 1"),
        ({"mode": "sideways"}, "--set.mode: got 'sideways', expected one of shadow, twin, alternate"),
    ],
)
def test_what_is_typed_wrongly_is_told(file: Path, typed: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError) as told:
        configured(file, typed)
    assert str(told.value).startswith(why)


def test_what_is_wrong_in_the_file_is_told_as_the_files(file: Path) -> None:
    file.write_text("modes: twin\n")
    with pytest.raises(UsageError, match=f"{file}: unknown parameter 'modes'; did you mean 'mode'"):
        configured(file, {"mode": "twin"})


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "got neither --config FILE nor a verb"),
        (["strat"], "no verb 'strat'; did you mean 'start'?"),
        (["set", "limits.duty"], "got `mt live set limits.duty`, expected `mt live set NAME VALUE [DIR]`"),
        (["pause", "here", "there"], "expected `mt live pause [DIR]`"),
        (["status", "nowhere"], "no `mt live` runs in nowhere; expected the directory"),
        (["status", "nowhere", "--domain", "7"], "got --domain 7 and nowhere, expected one of them"),
        (["--config", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["start", "--config", "nowhere.yaml"], "got --config and start; a verb is for a run in progress"),
    ],
)
def test_usage_is_told_in_one_line(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["live", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("mt: ") and why in said and said.count("\n") == 1


def test_a_configuration_that_cannot_run_leaves_no_directory(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["live", "--config", str(file), "--set", "mode=shadow", "--set", "segments.swap_arms=true"]) == 2
    assert "expected mode: twin" in capsys.readouterr().err
    assert main(["live", "--config", str(file), "--set", "stack=no_such", "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_the_example_could_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run = LiveRun.make(configured(Path("examples/live/live.yaml"), {}), tmp_path)
    assert (run.request.mode, run.stack.name, len(run.suite.relations)) == ("shadow", "detector", 3)


def test_what_the_page_says_of_a_configuration_is_so() -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "live.md").read_text(encoding="utf-8"), re.S)
    assert live_config(yaml.safe_load(block), "docs/live.md").limits.rate_hz == 5.0


def test_the_verbs_are_the_services_and_what_parameters_are_for() -> None:
    assert set(live_command.VERBS) == {*SERVICES, "relations", "set"}


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ({"state": "running", "waiting_for": "a publisher of /x"}, "running: waiting for a publisher of /x"),
        ({"state": "running", "waiting_for": "", "relation": ""}, "running: starting"),
        (
            {"state": "paused", "waiting_for": "", "relation": "fog", "phase": "testing", "instants": 5, "tested": 2},
            "paused: fog testing; 5 instants, 2 tested",
        ),
    ],
)
def test_progress_is_one_line(status: dict[str, Any], line: str) -> None:
    assert live_command.progress_line(status) == line


def test_the_processes_of_a_run(tmp_path: Path) -> None:
    suite = suite_process(tmp_path, {"ROS_DOMAIN_ID": "3"}, LIVE_SUITE)
    assert suite.argv == (sys.executable, "-m", "mt_nodes.nodes.live_suite", "--run", str(tmp_path))
    assert suite.env["ROS_DOMAIN_ID"] == "3", "the live domain is the user's unless the file says another"
    argv, env = live_client(42, ["set", "limits.duty", "1"], {"ROS_DOMAIN_ID": "3"})
    assert argv[2:] == ("mt_nodes.nodes.live_client", "set", "limits.duty", "1") and env["ROS_DOMAIN_ID"] == "42"


def test_a_run_that_has_ended_answers_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    """Word of an earlier run; the client is not started, which would look for it some ten seconds."""
    (tmp_path / "live.json").write_text('{"control": 77}')
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, "null\n", ""))
    assert main(["live", "status", str(tmp_path)]) == 4
    assert "mt: no run answers in ROS domain 77: it has ended" in capsys.readouterr().err


def test_a_live_run_is_watched_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = {"seed": 4, "mode": "shadow", "pace": "realtime", "bags": [], "stack": "detector", "relations": ["fog"]}
    (tmp_path / "result.jsonl").write_text(seal({"schema": 1, "type": "condition", **about}) + "\n")
    assert main(["watch", str(tmp_path)]) == 0
    assert "detector live: shadow, realtime, seed 4" in capsys.readouterr().out


# --- a run


class Begun:
    """``mt live`` as a process, beside nothing: no live stack publishes in its domain."""

    def __init__(self, ending: ExitStack, place: Path) -> None:
        self.out = place / "out"
        [domain] = ending.enter_context(free_domains(1)).domains
        self.env = ros_environment(os.environ, domain)
        (place / "live.yaml").write_text("mode: shadow\nrelations: [noise_outside_roi_10]\ncaps: {policy: normal}\n")
        self._said = place / "said.txt"
        argv = [sys.executable, "-m", "mt_nodes.cli.main", "live", "--config", str(place / "live.yaml")]
        with self._said.open("w") as said:
            self.process = subprocess.Popen(
                [*argv, "--out", str(self.out)], cwd=ROOT, env=self.env, stdout=said, stderr=said
            )
        ending.callback(self.process.wait)
        ending.callback(self.process.terminate)

    @property
    def said(self) -> str:
        return self._said.read_text()

    def tell(self, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "mt_nodes.cli.main", "live", *words, str(self.out)]
        return subprocess.run(argv, cwd=ROOT, env=self.env, capture_output=True, text=True, check=False)

    def ended(self) -> int:
        until(lambda: self.process.poll() is not None, self.said)
        return int(self.process.returncode)


@pytest.fixture
def begun(ending: ExitStack, tmp_path: Path) -> Iterator[Begun]:
    run = Begun(ending, tmp_path)
    until(lambda: "/mt/verdicts" in run.said or run.process.poll() is not None)
    yield run


def test_a_run_is_asked_changed_and_stopped(begun: Begun, ending: ExitStack, tmp_path: Path) -> None:
    domain = json.loads((begun.out / "live.json").read_text())["control"]
    argv = (sys.executable, "-m", "mt_nodes.nodes.clock_echo")
    echo = Child(Process("clock_echo", argv, ros_environment(os.environ, domain), tmp_path / "echo.log"))
    ending.callback(echo.stop, 5.0)
    assert f"ROS_DOMAIN_ID={domain} ros2 topic echo /mt/verdicts" in begun.said
    assert begun.tell("set", "limits.rate_hz", "2").stdout == "limits.rate_hz: 2\n"
    refused = begun.tell("set", "mode", "twin")
    assert refused.returncode == 2 and "mt: mode holds for the whole run" in refused.stderr
    told: dict[str, Any] = {}

    def echoed() -> bool:
        told.update(json.loads(begun.tell("status").stdout))
        return bool(told["clocks"])

    until(echoed)
    assert (told["state"], told["limits"]["rate_hz"]) == ("running", 2.0)
    [(computer, clock)] = told["clocks"].items()
    assert computer == platform.node() and abs(clock["offset_ms"]) <= clock["bound_ms"] + 0.001
    stopped = begun.tell("stop")
    assert stopped.returncode == 0 and stopped.stdout.startswith("ending")
    assert begun.ended() == 3, begun.said  # nothing was decided
    summary = read_result(begun.out / "summary.json")
    assert "exit code 3" in begun.said and summary["offered"] == 0
    assert set(summary["clocks"]) == {computer}
    assert f"the clock of {computer} is ahead of ours by" in begun.said


def test_an_interrupted_run_is_summed_up(begun: Begun) -> None:
    begun.process.send_signal(signal.SIGINT)
    assert begun.ended() == 130, begun.said
    assert read_result(begun.out / "summary.json")["exit_code"] == 130


@pytest.mark.parametrize("aside", [False, True])
def test_without_a_terminal_it_is_said_once_that_something_is_waited_for(
    aside: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    status = {"state": "running", "relation": "", "phase": ""}
    with live_command._Progress(Path("out"), aside) as progress:
        progress.show({"domains": {"control": 42}})
        for waiting_for in ("", "input, for 3 s", "input, for 4 s", ""):
            progress.show({**status, "waiting_for": waiting_for})
    told = capsys.readouterr()
    said, silent = (told.err, told.out) if aside else (told.out, told.err)
    assert "results go to out" in said and not silent, "of --json the summary alone goes to standard output"
    assert said.splitlines()[-2:] == ["waiting for input, for 3 s", "it has arrived"]
