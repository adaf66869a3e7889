# SPDX-License-Identifier: Apache-2.0
"""The command line: what it lists and shows, what it refuses, and the demo as a new user runs it."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from made_runs import sparse_drive

from mt_nodes.api.demo_drive import demo_drive
from mt_nodes.base import plugins
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.wording import counted
from mt_nodes.cli import catalogue, demo_command, list_command
from mt_nodes.cli.main import COMMANDS, GROUPS, HIDDEN, main
from mt_nodes.cli.verbs import VERBS
from mt_nodes.data.bags.bundles import BagSource


def listed(kind: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["list", kind, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert isinstance(rows, list) and rows
    return rows


def test_each_experiment_is_listed_with_what_is_published_of_it() -> None:
    rows = {row["name"]: row for row in catalogue.rows("experiments")}
    assert set(rows) == set(VERBS["experiment"])
    assert rows["noise-outside-roi"]["published"][1000][">"] == 335
    assert set(rows["automt"]["published"]["violation"]) == {"germany", "california"}
    assert "humans_before_animals" in rows["moral"]["principles"]


@pytest.mark.parametrize("kind", catalogue.kinds())
def test_every_kind_is_listed_and_everything_listed_is_shown(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed(kind, capsys)
    names = [row["name"] for row in rows]
    assert names == sorted(set(names))
    assert main(["list", kind, "--all"]) == 0
    table = capsys.readouterr().out
    for row in rows:
        assert row["name"] in table and row["summary"]
        assert main(["show", row["name"]]) == 0
        assert row["name"] in capsys.readouterr().out
    for name in names[:: max(1, len(names) // 3)]:  # that each can be JSON its list has shown
        assert main(["show", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["name"] == name


def test_a_pipe_that_breaks_elsewhere_is_no_reader_that_went_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(args: Any) -> int:
        raise BrokenPipeError("of a plugin's own process")

    monkeypatch.setattr(list_command, "run", run)
    assert main(["list", "mutations"]) == 4
    assert "of a plugin's own process" in capsys.readouterr().err


def test_relations_carry_their_id_and_kind(capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed("relations", capsys)
    assert all(row["id"] == row["name"] and row["kind"] in ("necessary", "expected") for row in rows)
    assert {"identity", "points_permuted", "noise_outside_roi_10"} <= {row["id"] for row in rows}


def test_mutations_say_what_they_change(capsys: pytest.CaptureFixture[str]) -> None:
    (noise,) = [row for row in listed("mutations", capsys) if row["name"] == "noise_outside_roi"]
    assert "lidar" in noise["sensors"]
    (points,) = [p for p in noise["parameters"] if p["name"] == "points"]
    assert points["default"] == 1000 and points["help"]


def test_mutations_say_what_is_guaranteed(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence of the docstring that begins with "Guaranteed:"."""
    promised = {row["name"]: row["guarantee"] for row in listed("mutations", capsys)}
    assert not [name for name, words in promised.items() if not words.endswith(".") or len(words) < 20]
    assert promised["beams_lost"] == "no return of a lost beam remains, and no other return changes."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "mutation"], "did you mean 'mutations'"),
        (["show", "noise_outside_ro"], "did you mean 'noise_outside_roi'"),
        (["report", "/nowhere"], "/nowhere"),
        (["mutate", "x", "--mutation", "identiti", "--out", "y"], "did you mean 'identity'"),
        (["mutate", "x", "--mutation", "identity", "--set", "points", "--out", "y"], "PARAMETER=VALUE"),
        (["replay", "x", "--topic", "lidar"], "ROLE=TOPIC"),
        (["replay", "x", "--relations", ","], "got no relation"),
        (["list", "mutations", "--plugins", "/nowhere"], "no such directory"),
        (["replay", "x", "--relatoins", "y"], "mt replay: does not take '--relatoins'; did you mean '--relations'?"),
        (["rules", "check", "--jsno"], "mt rules check: does not take '--jsno'; did you mean '--json'?"),
        (["demo", "x"], "mt demo: does not take 'x'; see `mt demo --help`"),
        (["replay", "x", "--relations", "nose_*"], "no relation matches 'nose_*'; did you mean 'noise_*'?"),
        (["replay", "x", "--relations", "wether"], "no relation 'wether'; did you mean 'weather'?"),
        (["replay", "x", "--relations", "camera"], "of which none can be judged here"),
        (
            ["replay", "x", "--mode", "twn"],
            "got 'twn', expected twin, alternate, two_pass; did you mean 'twin'?",
        ),
        (["scenario", "bend", "--relations", "far_crow_*"], "did you mean 'far_crowd_*'?"),
        (["list", "relations", "--filter", "qqqq"], "mt list: no relation matches 'qqqq'"),
        (["list", "--all"], "go with a KIND"),
    ],
)
def test_mistakes_are_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) in (2, 4)
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "mt: too few open files are allowed: "),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "mt: out of memory: "),
        (OSError(errno.ENOSPC, "No space left on device"), "mt: the output cannot be written: No space left on device"),
        (OSError(errno.ENOSPC, "No space left on device", "a.json"), "mt: a.json cannot be written: "),
        (MemoryError(), "mt: out of memory: MemoryError"),
        (ImportError("x.so: failed to map segment from shared object"), "mt: out of memory: x.so"),
        (OSError(errno.ENOENT, "No such file or directory"), "Traceback"),
    ],
)
def test_what_the_machine_is_short_of_is_one_line(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def short(_: object) -> int:
        raise error

    monkeypatch.setattr(list_command, "run", short)
    assert main(["list", "mutations"]) == 4
    printed = capsys.readouterr().err
    assert printed.startswith(said) and (said == "Traceback" or printed.count("\n") == 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["replya"], "mt: error: no command 'replya'; did you mean 'replay'?; see `mt --help`"),
        (["/tmp"], "mt: error: no command '/tmp', but there is a file of that name: `mt replay /tmp` replays a bag"),
        (["rules", "chek"], "mt rules: error: no verb 'chek'; did you mean 'check'?; see `mt rules --help`"),
        (["review"], "mt review: error: the following arguments are required: DIR; see `mt review --help`"),
        (["shrink", "a", "b", "--transport", "rs"], "got 'rs', expected ros or inprocess; did you mean 'ros'?"),
        (["failure"], "mt: error: no command 'failure'; see `mt --help`"),
    ],
)
def test_unknown_words_are_answered_with_what_is_near_and_not_with_the_usage(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    error = capsys.readouterr().err
    assert ended.value.code == 2 and said in error and error.count("\n") == 1


def test_alone_it_prints_the_help_and_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "To begin, type: mt demo" in capsys.readouterr().out
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(f" {kind} " in printed for kind in catalogue.kinds()) and set(catalogue.SUMMARIES) == {
        *catalogue.kinds()
    }


def test_a_bag_that_is_not_there_is_answered_with_those_that_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("monday.mcap", "tuesday.mcap"):
        (tmp_path / name).touch()
    for name, said in (
        ("mondy.mcap", f"did you mean '{tmp_path / 'monday.mcap'}'?"),
        ("x", "monday.mcap, tuesday.mcap"),
    ):
        assert main(["replay", str(tmp_path / name)]) == 2
        assert said in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "none" / "x")]) == 2 and "bags in" not in capsys.readouterr().err


def test_relations_are_filtered_by_the_words_of_a_run_and_by_text(capsys: pytest.CaptureFixture[str]) -> None:
    def listed(word: str) -> set[str]:
        assert main(["list", "relations", "--filter", word, "--json"]) == 0
        return {row["name"] for row in json.loads(capsys.readouterr().out)}

    assert listed("fog_m*") == {"fog_monotone"} and listed("fog_monotone") == {"fog_monotone"}
    assert {"fog_monotone", "fog_drives_no_faster"} <= listed("weather") == listed("tag:weather")
    assert listed("paper,fog_monotone") == {*listed("paper"), "fog_monotone"}
    assert "fog_keeps_near_obstacles" in listed("HAHNER"), "part of its text"
    assert main(["list", "mutations", "--filter", "fog", "--json"]) == 0
    assert {"fog"} <= {row["name"] for row in json.loads(capsys.readouterr().out)} < set(plugins.catalogue("mutations"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    now = {"coverage": "report --coverage", "failures": "replay failures"}
    assert f"example: mt {now.get(command, command)}" in capsys.readouterr().out


def test_help_shows_commands_in_groups_the_usual_ones_first(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("  ") and not line.startswith("  -")]
    assert listed[:6] == ["demo", "replay", "live", "scenario", "campaign", "doctor"]
    assert listed == [name for group in GROUPS.values() for name in group]
    assert set(COMMANDS) == {*listed, *HIDDEN} and not HIDDEN.keys() & set(listed)
    assert max(map(len, shown.splitlines())) <= 80, "it fits a terminal"


def test_names_of_before_go_on_working(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = ["--failures-file", str(tmp_path / "none.sqlite")]
    assert main(["failures", "list", *file]) == main(["replay", "failures", "list", *file]) == 2
    before, now = capsys.readouterr().err.splitlines()
    assert before == now and "no such file; `mt replay failures add DIR`" in now
    assert main(["replay", "failures"]) == 2, "a bag of this name, without a verb"
    assert "no bag failures; expected" in capsys.readouterr().err


def test_a_bag_is_mutated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sparse_drive(tmp_path / "drive", 2, columns=450)
    words = ["mutate", str(tmp_path / "drive"), "--mutation", "noise_outside_roi", "--set", "points=10"]
    assert main([*words, "--out", str(tmp_path / "noisy")]) == 0
    assert "2 of 2 bundles mutated" in capsys.readouterr().out
    before, after = BagSource(tmp_path / "drive"), BagSource(tmp_path / "noisy")
    assert [len(b.cloud()) for b in after] == [len(b.cloud()) + 10 for b in before]
    words = ["mutate", str(tmp_path / "drive"), "--mutation", "object_removed", "--set", "least_points=100000"]
    assert main([*words, "--limit", "1", "--out", str(tmp_path / "same")]) == 0
    assert "1 bundle passed unchanged: " in capsys.readouterr().out and counted(2, "bundle") == "2 bundles"


def test_a_bag_is_mutated_by_a_manipulation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sparse_drive(tmp_path / "drive", 1, columns=450)
    words = ["mutate", str(tmp_path / "drive"), "--mutation"]
    assert main([*words, "stop_sign", "--out", str(tmp_path / "by_name")]) == 0
    assert main([*words, "sign_added", "--set", "kind=stop", "--out", str(tmp_path / "by_kind")]) == 0
    assert capsys.readouterr().out.count("1 of 1 bundles mutated") == 2
    by_name, by_kind, before = (next(iter(BagSource(tmp_path / n))).cloud() for n in ("by_name", "by_kind", "drive"))
    assert by_name.points.tobytes() == by_kind.points.tobytes() != before.points.tobytes()
    for name, said in (("stop_sign", "is a manipulation"), ("black_ice", "is unsupported: ")):
        given = ["--set", "kind=yield"] if name == "stop_sign" else []
        assert main([*words, name, *given, "--out", str(tmp_path / "none")]) == 2
        assert said in capsys.readouterr().err


def test_a_plugin_of_the_users_own_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "far_enough.py").write_text(
        "from dataclasses import dataclass\n"
        "from mt_nodes.relations.conditions.base import Condition\n\n"
        "@dataclass(frozen=True)\n"
        "class FarEnough(Condition):\n"
        '    """Only far away."""\n\n'
        "    def unmet(self, bundle, source):\n"
        '        return "too near"\n'
    )
    code = "import sys; from mt_nodes.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "list", "conditions", "--plugins", str(tmp_path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "far_enough" in ran.stdout, ran.stderr


@pytest.mark.long  # `make demo` is the same; continuous integration runs it by itself
def test_the_demo_passes_as_a_process(tmp_path: Path) -> None:
    """The main job as `make demo` runs it: over topics, honest and faulty."""
    words = [sys.executable, "-m", "mt_nodes.cli.main", "demo", "--out", str(tmp_path / "demo")]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "honest stack passes, planted fault found" in ran.stdout
    for name, code in (("honest", 0), ("faulty", 1)):
        summary = read_result(tmp_path / "demo" / name / "summary.json")
        assert summary["exit_code"] == code
        assert summary["offered"] == sum(summary["outcomes"].values()) == 225
        assert (tmp_path / "demo" / name / "report.html").stat().st_size > 10_000


def test_a_demo_whose_fault_stays_hidden_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_command, "FAULT", "intensity_by_cloud_max")
    monkeypatch.setattr(demo_command, "demo_drive", partial(demo_drive, frames=2))
    assert main(["demo", "--transport", "inprocess", "--out", str(tmp_path / "demo")]) == 1
    assert "NOT FOUND" in capsys.readouterr().out


def test_a_name_that_is_like_no_other_is_not_answered_with_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "qqqq"]) == 2
    said = capsys.readouterr().err
    assert "nothing is called 'qqqq'; `mt list KIND` lists the names" in said and len(said) < 200
    assert main(["show", "fogg"]) == 2
    assert "did you mean 'fog'?" in capsys.readouterr().err


def test_relations_are_listed_in_groups_and_those_of_rules_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "relations"]) == 0
    usual = capsys.readouterr().out
    places = [usual.index(f"{group} (") for group in list_command.RELATION_GROUPS[:-1]]
    assert places == sorted(places) and places[0] < usual.index("noise_outside_roi_1000") < places[1]
    assert "rule_" not in usual and "`mt list relations --all`" in usual
    assert main(["list", "relations", "--all"]) == 0
    counts = [
        int(count) for count in re.findall(r"^(?:of|control) .*\((\d+)\)$", capsys.readouterr().out, re.MULTILINE)
    ]
    rows = catalogue.rows("relations")
    assert sum(counts) == len(rows) and counts[-1] == sum(row["name"].startswith("rule_") for row in rows)
