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
        facts: of a recording, known beforehand. detectors: that look for elements in it. frames: of its cases.
    """

    name: str
    stack: str
    scenarios: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
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
_PLANNER_FAULTS = ("only_own_lane_counts", "strangers_ignored", "lights_blurred_at_speed", "limits_unread")
PASSES = (
    Pass("street", "reference_careful", ("wheelchair_at_a_crossing", "green_light"), _PLANNER_FAULTS),
    Pass("town", "reference_careful", ("junction", "oncoming"), _PLANNER_FAULTS),
    Pass(
        "seen",
        "reference_careful_camera",
        ("wheelchair_at_a_crossing", "junction"),
        ("signs_unseen", "weather_unnoticed"),
    ),
    Pass(
        "generated_lidar", "reference_driver", (), ("fixed_range_gate", "obstacle_list_full"), "generated", _GENERATED
    ),
    Pass("generated_camera", "reference_camera", (), ("sight_not_asked",), "generated", _GENERATED),
    Pass("recorded_lidar", "reference_driver", (), ("fixed_range_gate",), "recorded", _RECORDED, ("reference_lamps",)),
    Pass("recorded_camera", "reference_camera", (), ("sight_not_asked",), "recorded", _RECORDED, ("reference_lamps",)),
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
    """Run a pass, without a fault and with each of its faults."""
    for fault in ("", *one.faults):
        out = work / f"{one.name}.{fault or 'none'}"
        if (out / "summary.json").exists():
            continue
        command = _replay(one, work, bags) if one.recording else _scenario(one)
        if command is None:
            continue
        command += ["--stack", one.stack, "--out", str(out), *(["--fault", fault] if fault else [])]
        print(out.name, flush=True)
        log = subprocess.run(
            [str(Path(sys.executable).with_name("mt")), *command], capture_output=True, text=True, check=False
        )
        if log.returncode not in (0, 1, 3):
            raise SystemExit(f"mt {' '.join(command)}: {log.stdout[-2000:]}{log.stderr[-2000:]}")


def _scenario(one: Pass) -> list[str]:
    ontology, stack = load_ontology(), load_stack(one.stack)
    suited = [name for name in distinct(in_loop()) if not incompatibility(in_loop()[name].in_world(ontology), stack)]
    return ["scenario", *one.scenarios, "--repeat", "1", "--jitter", "0", "--relations", ",".join(suited)]


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
            for (relation, pair), outcome in outcomes(work / f"{one.name}.{fault}").items():
                if outcome == "VIOLATED" and honest.get((relation, pair)) == "HOLDS":
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
