# SPDX-License-Identifier: Apache-2.0
"""The same dilemmas at three levels: planted faults are located in the module that has them, honest drivers in none."""

from __future__ import annotations

import importlib
import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from moral_toys import PEOPLE_FIRST, Rule, Toy, always_one, coin_flipper, spares_people

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli.main import main
from mt_nodes.engine.run_record import write_request
from mt_nodes.runs.moral.base import HOLDS, UNKNOWN, VIOLATED
from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.dilemma_check import DilemmaCheck
from mt_nodes.runs.moral.levels import Located, blame, levels_end, locate, markdown, result_of, stacks_of
from mt_nodes.runs.moral.levels_request import LevelsRequest, checked_levels
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.study_request import StudyRequest

REQUEST = LevelsRequest(principles=("people_first",), runs=100)


def spares_animals(spec: RunSpec) -> str:
    return "first"


def located(
    out: Path,
    check: Any = always_one,
    request: LevelsRequest = REQUEST,
    toys: dict[str, Toy] | None = None,
    **rules: Rule,
) -> list[Located]:
    """Locate with drivers that are functions of a run, by level."""

    @contextmanager
    def drivers(level: str, stack: object) -> Any:
        yield (toys[level] if toys else Toy(rules.get(level, spares_people))), check

    out.mkdir(exist_ok=True)
    return locate(out, request, [PEOPLE_FIRST], drivers)


@pytest.mark.parametrize(
    ("object_", "lidar", "camera", "module"),
    [
        (HOLDS, HOLDS, HOLDS, "none"),
        (VIOLATED, VIOLATED, VIOLATED, "planning"),
        (VIOLATED, HOLDS, HOLDS, "planning"),
        (HOLDS, VIOLATED, HOLDS, "LiDAR perception"),
        (HOLDS, HOLDS, VIOLATED, "camera perception"),
        (HOLDS, VIOLATED, UNKNOWN, "LiDAR perception"),
        (HOLDS, VIOLATED, VIOLATED, "LiDAR perception and camera perception"),
        (HOLDS, HOLDS, UNKNOWN, "undecided"),
        (UNKNOWN, HOLDS, HOLDS, "undecided"),
        (UNKNOWN, VIOLATED, HOLDS, "undecided"),
    ],
)
def test_who_is_to_blame(object_: str, lidar: str, camera: str, module: str) -> None:
    assert blame({"object": object_, "lidar": lidar, "camera": camera})[0] == module


@pytest.mark.parametrize(
    ("rules", "module"),
    [
        ({}, "none"),
        ({"object": spares_animals, "lidar": spares_animals, "camera": spares_animals}, "planning"),
        ({"lidar": spares_animals}, "LiDAR perception"),
        ({"camera": spares_animals}, "camera perception"),
        ({"camera": coin_flipper}, "undecided"),
    ],
)
def test_a_fault_is_located_in_its_module(tmp_path: Path, rules: dict[str, Rule], module: str) -> None:
    found = located(tmp_path, **rules)
    assert {one.case for one in found} == {"adult_and_boar", "adult_and_dog"}
    assert {one.module for one in found} == {module}
    assert all(set(one.choices) == {"object", "lidar", "camera"} for one in found)
    assert f"**{module}**" in markdown(found)


def test_exit_codes(tmp_path: Path) -> None:
    assert levels_end(located(tmp_path / "honest")) == (ExitCode.PASS, "no module to blame in 2 cases")
    code, why = levels_end(located(tmp_path / "blind", camera=spares_animals))
    assert (code, why) == (ExitCode.FAIL, "camera perception to blame in 2 cases of 2")
    assert levels_end(located(tmp_path / "coin", camera=coin_flipper))[0] is ExitCode.UNDECIDED
    assert levels_end([])[0] is ExitCode.UNDECIDED
    json.dumps(result_of(located(tmp_path / "honest")))


def test_what_is_no_dilemma_is_named_and_undecided(tmp_path: Path) -> None:
    def never(dilemmas: list[Dilemma]) -> list[DilemmaCheck]:
        return [DilemmaCheck(False, "both can be avoided", (), ()) for _ in dilemmas]  # type: ignore[arg-type]

    found = located(tmp_path, never)
    assert {one.why for one in found} == {"no dilemma: both can be avoided"}
    assert levels_end(found)[0] is ExitCode.UNDECIDED


def test_runs_that_are_used_up_decide_nothing(tmp_path: Path) -> None:
    found = located(tmp_path, request=LevelsRequest(principles=("people_first",), runs=4))
    assert {one.module for one in found} == {"undecided"}
    assert "the runs are used up" in markdown(found)


def test_what_was_driven_is_not_driven_again(tmp_path: Path) -> None:
    toys = {level: Toy(spares_people) for level in ("object", "lidar", "camera")}
    first = located(tmp_path, toys=toys)
    driven = {level: len(toy.asked) for level, toy in toys.items()}
    assert located(tmp_path, toys=toys) == first
    assert {level: len(toy.asked) for level, toy in toys.items()} == driven


def test_faults_go_to_every_level_that_takes_them() -> None:
    request = LevelsRequest(faults=("low_is_litter", "tall_is_building:tallest_m=1.5", "blue_is_sky"))
    planted = {level: list(stack.params.get("faults", ())) for level, stack in stacks_of(request).items()}
    tall = {"tall_is_building": {"tallest_m": 1.5}}
    assert planted["object"] == ["low_is_litter"]
    assert planted["lidar"] == ["low_is_litter", tall]
    assert planted["camera"] == ["low_is_litter", "blue_is_sky"]


def test_what_cannot_be_located_is_refused() -> None:
    with pytest.raises(UsageError, match="no level has one"):
        stacks_of(LevelsRequest(faults=("own_speed_from_mean",)))
    with pytest.raises(UsageError, match="--lidar reference_detector: expected a Python callable that answers control"):
        stacks_of(LevelsRequest(lidar="reference_detector"))
    with pytest.raises(UsageError, match="--object: got none"):
        checked_levels(LevelsRequest(object=""))
    with pytest.raises(UsageError, match="--lidar, --camera: got neither"):
        checked_levels(LevelsRequest(lidar="", camera=""))
    with pytest.raises(UsageError, match="expected a name, or a name and its parameters"):
        stacks_of(LevelsRequest(faults=("tall_is_building:tallest_m",)))


@pytest.mark.parametrize(
    ("module", "goes_on", "request_"),
    [("moral_levels", "_levels", LevelsRequest(seed=3)), ("moral_search", "_study", StudyRequest(seed=3))],
)
def test_a_directory_is_gone_on_with_as_it_was_asked_for(
    module: str, goes_on: str, request_: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    command = importlib.import_module(f"mt_nodes.cli.{module}")
    monkeypatch.setattr(command, goes_on, lambda out, request, as_json: asked.append(request) or 0)
    verb = module.replace("_", "-")
    write_request(tmp_path, request_, {"experiment": verb, "relations": []})
    assert main(["experiment", verb, "--resume", str(tmp_path)]) == 0
    assert asked == [request_]
