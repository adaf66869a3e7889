# SPDX-License-Identifier: Apache-2.0
"""Where each statement of the shipped rules decides, whether a driver holds it there, and which fault breaks it.

    .venv/bin/python scripts/rule_decisions.py WORK [--recorded BAG] [--only PASS] [--write docs/rules.md]

Runs `mt scenario` and `mt replay --cases` for every pass below, with and without faults, into WORK (a finished run is
not repeated), and prints the table. Half an hour on one core; `--only` runs the passes whose name begins so.

A statement decides where a pair of its relation is HOLDS or VIOLATED, and, on a recording, where the matcher finds that
it applies to the case. A fault breaks it where the driver without the fault holds the same pair and the faulty one
violates it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mt_nodes.base.jsonl import read_lines
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.case_plan import CasePlan, PlannedCase, load_cases, write_cases
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.rules.bag_cases import Recording, facts, matcher
from mt_nodes.rules.case_planning import CaseFrames
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.scene_detector import SceneDetector
from mt_nodes.rules.shipped_rules import RuleStatement, ids_of, in_loop, in_store, scratch_store, shipped_entries
from mt_nodes.stacks.stack import load_stack

_BEGIN, _END = "<!-- made by scripts/rule_decisions.py -->", "<!-- end of rule decisions -->"
_DECIDED = ("HOLDS", "VIOLATED")


@dataclass(frozen=True)
class Pass:
    """Runs of one driver over scenarios, or over the cases of a recording, without a fault and with each of some.

    Attributes:
        scenarios: by name, of :data:`SCENARIOS`. beyond: only relations that this stack cannot judge.
        facts: of a recording, known beforehand. detectors: that look for elements in it. frames: of its cases.
    """

    name: str
    stack: str
    scenarios: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    beyond: str = ""
    recording: str = ""
    facts: Mapping[str, object] = ()  # type: ignore[assignment]
    detectors: tuple[str, ...] = ()
    frames: int = 5


#: What the generator of drives puts into none of its streets, and how its weather is.
_GENERATED = {
    "absent": ["red_light", "yellow_light", "green_light", "crosswalk_markings"],
    "roads": [],
    "surface_dry": True,
    "weather": "clear",
    "time_of_day": "day",
    "divided_road": False,
}
#: Seen in the pictures of the recorded drive: it comes to an intersection with lights on a dry road by day.
_RECORDED = {"roads": "intersection", "surface_dry": True}
_EGO = "ego = AV(({begin}), ({end}));\n"
_EMPTY = '{name} = CreateScenario {{ load("{road}"); ego; {{}}; {{}}; {{}}; {{}}; {{{extra}Duration({seconds})}}; }};\n'


def _empty(name: str, road: str, begin: str, end: str, seconds: int, lights: str = "") -> str:
    """Return a scenario in which the ego is alone."""
    extra = "lights, " if lights else ""
    return (
        lights + _EGO.format(begin=begin, end=end) + _EMPTY.format(name=name, road=road, extra=extra, seconds=seconds)
    )


_GREEN = 'lights = { Signal("light_1", (green, 100)), Signal("light_2", (green, 100)), Signal("walk", (red, 100)) };\n'
#: Short drives in which the ego is alone, so that what is added is all that it can react to.
SCENARIOS = {
    "street": _empty("street", "straight", '"lane_1" -> 60.0, , 10.0', '"lane_1" -> 230.0', 14),
    "two_way": _empty("two_way", "two_way", '"lane_1" -> 60.0, , 10.0', '"lane_1" -> 230.0', 14),
    "green": _empty("green", "straight", '"lane_1" -> 230.0, , 10.0', '"lane_1" -> 380.0', 11, _GREEN),
    "straight_on": _empty("straight_on", "junction", '"west_middle" -> 20.0, , 10.0', '"middle_east" -> 60.0', 16),
    "left_turn": _empty("left_turn", "junction", '"west_middle" -> 20.0, , 10.0', '"middle_north" -> 60.0', 16),
}
PASSES = (
    Pass(
        "alone",
        "reference_careful",
        ("street", "two_way", "green", "straight_on", "left_turn"),
        ("only_own_lane_counts", "strangers_ignored", "lights_blurred_at_speed", "limits_unread"),
    ),
    Pass(
        "seen",
        "reference_careful_camera",
        ("street", "straight_on"),
        ("signs_unseen", "weather_unnoticed"),
        beyond="reference_careful",
    ),
    Pass(
        "recorded_lidar",
        "reference_driver",
        faults=("fixed_range_gate", "obstacle_list_full"),
        recording="recorded",
        facts=_RECORDED,
    ),
    Pass(
        "recorded_camera",
        "reference_camera",
        faults=("sight_not_asked",),
        recording="recorded",
        facts=_RECORDED,
    ),
    Pass(
        "generated_lidar",
        "reference_driver",
        faults=("fixed_range_gate", "obstacle_list_full"),
        recording="generated",
        facts=_GENERATED,
    ),
    Pass(
        "generated_camera",
        "reference_camera",
        faults=("sight_not_asked",),
        recording="generated",
        facts=_GENERATED,
    ),
)


def main() -> int:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="directory of the runs")
    parser.add_argument(
        "--recorded", type=Path, help="a recorded drive with LiDAR and camera; without it, none is used"
    )
    parser.add_argument("--only", default="", metavar="PASS", help="run only passes whose name begins so")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table into this page")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    bags = {"recorded": args.recorded, "generated": args.work / "generated"}
    for one in PASSES:
        if one.name.startswith(args.only) and (not one.recording or bags[one.recording]):
            run_pass(one, args.work, bags)
    table = "\n".join(markdown(args.work))
    print(table)
    if args.write:
        text = args.write.read_text(encoding="utf-8")
        before, after = text.split(_BEGIN)[0], text.split(_END)[1]
        args.write.write_text(f"{before}{_BEGIN}\n\n{table}\n\n{_END}{after}", encoding="utf-8")
    return 0


def run_pass(one: Pass, work: Path, bags: Mapping[str, Path]) -> None:
    """Run a pass without a fault, then each of its faults on the relations that no earlier one breaks."""
    for row, fault in enumerate(("", *one.faults)):
        out = work / f"{one.name}.{fault or 'none'}"
        if (out / "summary.json").exists():
            continue
        command = _replay(one, work, bags) if one.recording else _scenario(one, work, row)
        if command is None:
            continue
        command += ["--stack", one.stack, "--out", str(out), *(["--fault", fault] if fault else [])]
        print(out.name, flush=True)
        mt = [sys.executable, "-m", "mt_nodes.cli.main", *command]
        log = subprocess.run(mt, capture_output=True, text=True, check=False)
        if log.returncode not in (0, 1, 3):
            raise SystemExit(f"mt {' '.join(command)}: {log.stdout[-2000:]}{log.stderr[-2000:]}")


def _scenario(one: Pass, work: Path, row: int) -> list[str] | None:
    ontology, stack = load_ontology(), load_stack(one.stack)
    loop = {name: in_loop()[name].in_world(ontology) for name in distinct(in_loop())}
    suited = [name for name, relation in loop.items() if not incompatibility(relation, stack, True)]
    if one.beyond:
        other = load_stack(one.beyond)
        suited = [name for name in suited if incompatibility(loop[name], other, True)]
    if row:
        before = [broken_by(work, one, fault) for fault in one.faults[: row - 1]]
        suited = [name for name in held(work, one) if name in suited and not any(name in found for found in before)]
    if not suited:
        return None
    files = []
    for name in one.scenarios:
        files.append(str(work / f"{name}.scenario"))
        Path(files[-1]).write_text(SCENARIOS[name], encoding="utf-8")
    return ["scenario", *files, "--repeat", "1", "--jitter", "0", "--relations", ",".join(suited)]


def held(work: Path, one: Pass) -> dict[str, None]:
    """Return the relations that the driver without a fault holds anywhere in a pass."""
    rows = outcomes(work / f"{one.name}.none").items()
    return dict.fromkeys(relation for (relation, _), outcome in rows if outcome == "HOLDS")


def broken_by(work: Path, one: Pass, fault: str) -> dict[str, None]:
    """Return the relations with a pair that the driver without the fault holds and the one with it violates."""
    honest = outcomes(work / f"{one.name}.none")
    rows = outcomes(work / f"{one.name}.{fault}").items()
    return dict.fromkeys(pair[0] for pair, outcome in rows if outcome == "VIOLATED" and honest.get(pair) == "HOLDS")


def _replay(one: Pass, work: Path, bags: Mapping[str, Path]) -> list[str] | None:
    bag = bags[one.recording]
    if one.recording == "generated" and not bag.exists():
        from mt_nodes.data.bags.bundles import write_bundles
        from mt_nodes.runs.loop.rig import windscreen_camera
        from mt_nodes.world.scene.drive import generate_drive

        write_bundles(bag, generate_drive(2 * one.frames, 1, camera=windscreen_camera()))
    plan = work / f"{one.name}.cases.yaml"
    if not plan.exists():
        write_cases(cases_of(one, bag), plan)
    if not any(case.relation for case in load_cases(plan).cases):
        return None
    return ["replay", str(bag), "--cases", str(plan), "--transport", "inprocess"]


def cases_of(one: Pass, bag: Path) -> CasePlan:
    """Return the first and the last case of a recording, each with all relations that apply to it."""
    ontology = load_ontology()
    detectors = tuple(map(SceneDetector.named, one.detectors))
    recording = Recording(bag, {}, known_facts=facts(dict(one.facts), ontology), detectors=detectors)
    firsts = sorted({0, recording.count - one.frames})
    middles = [first + one.frames // 2 for first in firsts]
    scenes = recording.scenes(middles)
    cases: list[PlannedCase] = []
    with scratch_store(shipped_entries()) as store:
        chooses = matcher(ontology, recording.sensors, [load_stack(one.stack)])
        entries = {entry.index: entry for entry in store.entries()}
        for first, (name, scene) in zip(firsts, scenes.items(), strict=True):
            frames = CaseFrames(name, 0, first, first + one.frames - 1, first + one.frames // 2, scene)
            for candidate in chooses.choose(store, name, scene).candidates:
                if candidate.applies:
                    cases.append(frames.given(ids_of(entries[candidate.index])[0], 0, candidate.why))
    return CasePlan({"command": "scripts/rule_decisions.py"}, tuple(cases) or (_none(one),))


def _none(one: Pass) -> PlannedCase:
    return PlannedCase(one.name, 0, 0, one.frames - 1, why="no relation applies")


def distinct(statements: Mapping[str, RuleStatement]) -> list[str]:
    """Return the first id of each content."""
    return [name for name, ids in same_content().items() if name in statements and ids[0] == name]


def same_content() -> dict[str, tuple[str, ...]]:
    """Return for each id all ids of its content, the first first."""
    together: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for name, one in in_store().items():
        said = one.statement
        together[one.rules.region, said.road, said.element, said.place, said.behaviour, said.condition].append(name)
    return {name: tuple(ids) for ids in together.values() for name in ids}


def outcomes(out: Path) -> dict[tuple[str, str], str]:
    """Return the outcome of each decided pair of a run, by relation and pair."""
    if not (out / "result.jsonl").exists():
        return {}
    found = {}
    for line in read_lines(out / "result.jsonl"):
        if line["type"] == "verdict" and line["outcome"] in _DECIDED:
            found[Pair.parse(line["pair"]).relation, line["pair"]] = line["outcome"]
    return found


def markdown(work: Path) -> Iterator[str]:
    """Yield the lines of the table, and of the counts before it."""
    where: dict[str, dict[str, list[int]]] = defaultdict(dict)
    broken: dict[str, dict[str, None]] = defaultdict(dict)
    for one in PASSES:
        honest = outcomes(work / f"{one.name}.none")
        for (relation, _), outcome in honest.items():
            counts = where[relation].setdefault(one.recording or f"loop ({one.name})", [0, 0])
            counts[0] += outcome == "HOLDS"
            counts[1] += 1
        for fault in one.faults:
            for relation in broken_by(work, one, fault):
                broken[relation][fault] = None
    content = same_content()
    decided = [name for name in in_store() if where.get(content[name][0])]
    found = [name for name in decided if broken.get(content[name][0])]
    yield f"{len(decided)} of {len(in_store())} statements decide somewhere; a planted fault breaks {len(found)}."
    yield ""
    yield "| statement | subject, place, behaviour | decided on (pairs that the driver holds) | broken by |"
    yield "| --- | --- | --- | --- |"
    for name, one in in_store().items():
        first = content[name][0]
        places = ", ".join(f"{place} {a}/{b}" for place, (a, b) in where.get(first, {}).items())
        said = one.statement
        faults = ", ".join(broken.get(first, ())) or "none"
        words = ", ".join(filter(None, (said.element, said.place or said.road, said.behaviour))).replace("_", " ")
        yield f"| `{name[5:]}` | {words} | {places or why_not(one)} | {faults} |"


def why_not(one: RuleStatement) -> str:
    """Return why a statement decides nowhere, as far as the ontology knows."""
    ontology = load_ontology()
    gap = one.gap_in_world(ontology)
    return f"no recording shows it, and {gap}" if gap else "its conditions are met in none of these drives"


if __name__ == "__main__":
    raise SystemExit(main())
