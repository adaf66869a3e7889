# SPDX-License-Identifier: Apache-2.0
"""Runs of dilemmas with real drivers, in this process and in others."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from alive import alive
from moral_toys import dilemma, stack_of

from mt_nodes.base.errors import InfrastructureError, StackError
from mt_nodes.base.jsonl import read_lines
from mt_nodes.base.processes import wait_until
from mt_nodes.runs.moral.campaign import MoralProgress, carry_out, execute
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.dilemma_driver import PASSED, PASSED_M, STOOD, DilemmaDriver
from mt_nodes.runs.moral.moral_request import MoralRequest
from mt_nodes.runs.moral.moral_run import MoralRun
from mt_nodes.runs.moral.observations import Observation, RunSpec
from mt_nodes.runs.moral.workers import Workers, drivers
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.scenario_files import scenarios_of
from mt_nodes.world.drive.trace_file import load_trace, sha256_of_trace

BOAR = dilemma("boar")
SPECS = tuple(RunSpec(BOAR, swapped, "decide", number) for number in range(2) for swapped in (False, True))


@lru_cache
def planned() -> tuple[Observation, ...]:
    """Return what the reference planner does in some runs."""
    driver = DilemmaDriver(load_stack("reference_planner"), 7)
    return tuple(map(driver.run, SPECS))


def test_a_run_depends_on_itself_and_the_seed_alone() -> None:
    driver = DilemmaDriver(load_stack("reference_planner"), 7)
    assert tuple(map(driver.run, reversed(SPECS))) == planned()[::-1]
    assert DilemmaDriver(load_stack("reference_planner"), 8).run(SPECS[0]).sha256 != planned()[0].sha256
    assert len({one.sha256 for one in planned()}) == len(SPECS)


def test_noise_is_that_of_the_draw_alike_in_every_dilemma() -> None:
    one, other = (DilemmaDriver(load_stack("reference_planner"), seed) for seed in (7, 8))
    spec = SPECS[0]
    noise = one._drawn("sensors", spec)
    assert noise == one._drawn("sensors", replace(spec, dilemma=dilemma("other", 3), swapped=True))
    changed = (replace(spec, number=1), replace(spec, stream="control"))
    assert noise not in (other._drawn("sensors", spec), *(one._drawn("sensors", each) for each in changed))


def test_a_stack_that_remembers_begins_anew_with_each_run() -> None:
    driver = DilemmaDriver(stack_of("Tiring"), 0)
    assert driver.run(SPECS[0]) == driver.run(SPECS[0])


def test_who_never_brakes_hits_who_stands_before_it_and_all_of_them() -> None:
    driver = DilemmaDriver(stack_of("drives_on"), 0)
    crowd = Dilemma("crowd", (Member("adult"),) * 4, (Member("boar"),), gap_m=20.0)
    ahead, beside = driver.run(RunSpec(crowd, False, "decide", 0)), driver.run(RunSpec(crowd, True, "decide", 0))
    # A car is narrower than the row: whom it passes is not hit, and the first contact is not the end.
    assert ahead.hit("first") and not ahead.hit("second") and ahead.casualties > 1
    assert beside.hit("second") and not beside.hit("first") and beside.casualties == 0
    assert (ahead.ended, ahead.silence) == (PASSED, "")


def test_a_run_is_over_when_everybody_is_behind_and_not_before() -> None:
    spec = RunSpec(replace(BOAR, gap_m=20.0), False, "decide", 0)
    side = DilemmaDriver(stack_of("drives_on"), 0).side(spec)
    trace, vehicle = side.played.driven.trace, side.setting.scenario.ego.vehicle
    assert trace.ended == PASSED
    behind = trace.column("x_m") - vehicle.rear_m - PASSED_M - trace.actors[-1, :, 0].max()
    assert behind[-1] < 0.0 < behind[-1] + 0.1 * trace.column("speed_mps")[-1] * 1.05


def test_a_run_is_over_when_the_ego_stands() -> None:
    slow = RunSpec(replace(BOAR, speed_mps=10.0, gap_m=30.0), False, "decide", 0)
    run = DilemmaDriver(stack_of("brakes"), 0).run(slow)
    assert (run.ended, run.hits) == (STOOD, ())


@pytest.mark.parametrize(("stack", "ended"), [("squeezes", PASSED), ("turns_off", "off_road")])
def test_who_leaves_the_road_and_hits_neither_has_taken_a_way_out_that_is_none(stack: str, ended: str) -> None:
    run = DilemmaDriver(stack_of(stack), 0).run(RunSpec(replace(BOAR, lane="left"), False, "decide", 0))
    assert (run.ended, run.left_road, run.silence) == (ended, True, "")
    assert {hit.party for hit in run.hits} <= {"light_2"}
    assert not any(one.left_road for one in planned())


def test_a_command_that_no_car_can_carry_out_is_told_as_silence() -> None:
    run = DilemmaDriver(stack_of("says_nan"), 0).run(SPECS[0])
    assert run.ended == "bad_command" and run.hits == () and "none of acceleration_mps2, speed_mps" in run.silence


def test_two_processes_come_to_what_one_does() -> None:
    with drivers(load_stack("reference_planner"), 7, 2) as (drive, check):
        assert tuple(drive(SPECS)) == planned()
        (choice,) = check([replace(BOAR, speed_mps=8.0)])  # brakes suffice, which is soon found
        assert not choice.is_one
        assert tuple(drive(SPECS[:1])) == planned()[:1]


def test_a_stack_that_raises_and_a_process_that_is_killed_are_told_and_nobody_is_left() -> None:
    with closing(Workers(stack_of("raises"), 0, 1)) as workers:
        process = workers._processes[0].process
        with pytest.raises(InfrastructureError, match="raised ValueError: no idea"):
            list(workers.runs(SPECS[:1]))
        process.kill()
        process.join()
        with pytest.raises(InfrastructureError, match="a process that drove the stack ended"):
            list(workers.runs(SPECS[:1]))
    how = r"stack 'dies' \(source arm\) ended with exit code 3"
    with closing(Workers(stack_of("dies"), 0, 1)) as workers, pytest.raises(StackError, match=how):
        list(workers.runs(SPECS[:1]))


class Leaving:
    """A job that ends the process that takes it, with exit code 0, as code in C may."""

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, ("__import__('ctypes').CDLL(None).exit(0)",)


def test_a_process_that_ends_with_0_has_driven_nothing() -> None:
    told = pytest.raises(InfrastructureError, match="a process that drove the stack ended")
    with closing(Workers(stack_of("brakes"), 0, 1)) as workers, told:
        list(workers.runs([Leaving()]))  # type: ignore[list-item]


def test_workers_end_with_whoever_started_them_even_if_it_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import signal, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from mt_nodes.runs.moral.workers import Workers\n"
        "from moral_toys import SPEC, stack_of\n"
        "if __name__ == '__main__':\n"
        "    workers = Workers(stack_of('drives_on'), 0, 1)\n"
        "    list(workers.runs([SPEC]))\n"
        "    print(*(each.process.pid for each in workers._processes), flush=True)\n"
        "    signal.pause()\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 1
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert wait_until(lambda: not any(map(alive, pids)), 150.0)


def violated(out: Path) -> MoralRun:
    """Return a small campaign of a driver that prefers to hit people."""
    asked = MoralRequest(
        principles=("humans_before_animals",),
        pool="published",
        faults=("class_ranking_inverted",),
        search=0,
        workers=1,
        seed=3,
    )
    return MoralRun.create(asked, str(out))


def test_a_violated_case_of_a_real_driver_is_kept_with_its_drives(tmp_path: Path) -> None:
    told: list[MoralProgress] = []
    summary = execute(violated(tmp_path / "run"), told.append)
    assert (summary["exit_code"], summary["outcomes"]) == (1, {"VIOLATED": 1})
    assert told[-1].violated == told[-1].through == told[-1].cases == 1 and told[-1].runs == summary["runs"]
    (line,) = summary["revealing"]
    kept = yaml.safe_load((tmp_path / "run/revealing/0.yaml").read_text())
    assert kept["case"] == line["case"] == "humans_before_animals/person_and_boar"
    journal = {row["run"]: row for row in read_lines(tmp_path / "run/result.jsonl") if row["type"] == "run"}
    for run in kept["runs"]:
        trace = load_trace(tmp_path / f"run/episodes/revealing_0_{run['name']}.npz")
        assert sha256_of_trace(trace) == journal[run["run"]]["sha256"]
        assert [hit["name"] for hit in journal[run["run"]]["hits"]] == ["first_1"]
        (scenario,) = scenarios_of(str(tmp_path / f"run/revealing/0_{run['name']}.scenario"), 0, {})
        assert [actor.name for actor in scenario.actors] == list(trace.names)
        assert (scenario.ego.start.x_m, scenario.ego.speed_mps) == (trace.ego[0, 0], trace.ego[0, 3])
    assert kept["unsaid"] == []
    assert (tmp_path / "run/evidence/revealing_0.mcap").stat().st_size > 1000
    # Who goes on with what is done drives nothing, and writes nothing more.
    before = (tmp_path / "run/result.jsonl").read_bytes()
    again = carry_out(MoralRun.resume(tmp_path / "run"), lambda specs: iter(()))
    assert again["cases"] == summary["cases"] and again["revealing"] == summary["revealing"]
    assert (tmp_path / "run/result.jsonl").read_bytes() == before
