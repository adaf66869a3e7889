# SPDX-License-Identifier: Apache-2.0
"""Where each statement of the shipped rules decides, whether a driver holds it there, and which fault breaks it.

    .venv/bin/python scripts/rule_decisions.py WORK [--recorded BAG] [--only PASS] [--write docs/rules.md]

Runs `mt scenario` and `mt replay --cases` for every pass below into WORK (a finished run is not repeated), and prints
the table. It takes some ten minutes on one core; `--only` runs the passes whose name begins so.

A statement decides where a pair of its relation is HOLDS or VIOLATED, and, on a recording, where the matcher finds that
it applies to the case. A fault breaks it where the driver without the fault holds the same pair and the faulty one
violates it.

To be quick, a pass goes through its places one by one, with only those relations that its driver holds at no place yet;
statements of one content share a relation. In worlds the faults follow from what a statement adds: the driver is made
blind to the classes of the added actors, to lights, limits, signs or weather, or confuses the colour of a light
(:func:`faults_for`). A fault runs only on the relations that are meant for it, at the place where the driver holds
them. Runs share this process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from mt_nodes.base.jsonl import read_lines
from mt_nodes.cli.main import main as mt
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.case_plan import CasePlan, PlannedCase, load_cases, write_cases
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.world_changes.actor_added import ActorAdded
from mt_nodes.relations.world_changes.environment_changes import EnvironmentChanged
from mt_nodes.relations.world_changes.sign_changes import SignalShows, SignPutUp
from mt_nodes.rules.bag_cases import Recording, facts, matcher
from mt_nodes.rules.case_planning import CaseFrames
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.scene_detector import SceneDetector
from mt_nodes.rules.shipped_rules import RuleStatement, ids_of, in_loop, in_store, scratch_store, shipped_entries
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.bodies import facts_of

_BEGIN, _END = "<!-- made by scripts/rule_decisions.py -->", "<!-- end of rule decisions -->"
_DECIDED = ("HOLDS", "VIOLATED")
#: A set of faults that are planted together, as `--fault` takes them.
Faults = tuple[str, ...]


@dataclass(frozen=True)
class Pass:
    """Runs of one driver over scenarios, or over cases of a recording, without a fault and with each of some.

    Attributes:
        places: names of :data:`SCENARIOS`, or of cases of a recording: ``first``, ``last``.
        faults: of a recording; in worlds they follow from the statements. beyond: only relations that this stack cannot
            judge. facts: of a recording, known beforehand. detectors: that look for elements in it. frames: of a case.
    """

    name: str
    stack: str
    places: tuple[str, ...]
    faults: tuple[str, ...] = ()
    beyond: str = ""
    recording: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    detectors: tuple[str, ...] = ()
    frames: int = 3


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
    "short": _empty("short", "straight", '"lane_1" -> 60.0, , 10.0', '"lane_1" -> 230.0', 9),
    "two_way": _empty("two_way", "two_way", '"lane_1" -> 60.0, , 10.0', '"lane_1" -> 230.0', 14),
    "green": _empty("green", "straight", '"lane_1" -> 230.0, , 10.0', '"lane_1" -> 380.0', 11, _GREEN),
    "straight_on": _empty("straight_on", "junction", '"west_middle" -> 20.0, , 10.0', '"middle_east" -> 60.0', 16),
    "left_turn": _empty("left_turn", "junction", '"west_middle" -> 20.0, , 10.0', '"middle_north" -> 60.0', 16),
}
_CASES = ("first",)
PASSES = (
    Pass("alone", "reference_careful", ("street", "straight_on", "left_turn", "two_way", "green")),
    Pass("seen", "reference_careful_camera", ("short",), beyond="reference_careful"),
    *(
        Pass(f"{recording}_{sensor}", stack, _CASES, faults, recording=recording, facts=known)
        for recording, known in (("recorded", _RECORDED), ("generated", _GENERATED))
        for sensor, stack, faults in (
            ("lidar", "reference_driver", ("fixed_range_gate:range_m=4", "obstacle_list_full:places=1")),
            ("camera", "reference_camera", ("sight_not_asked",)),
        )
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
    """Run a pass without a fault, then each fault on the relations that are meant for it and that the driver holds."""
    if one.recording:
        made_recording(one, bags)
    for place in one.places:
        left = [name for name in meant_for(one, place, work, bags) if not held_at(work, one, name)]
        run(one, place, (), left, work, bags)
    for place in one.places:
        here = [name for name in relations_in(work, one) if held_at(work, one, name) == place]
        for faults in dict.fromkeys(found for name in here for found in faults_of(one, name)):
            left = [name for name in here if faults in faults_of(one, name) and not broken_by(work, one, name)]
            run(one, place, faults, left, work, bags)


def run(one: Pass, place: str, faults: Faults, names: Iterable[str], work: Path, bags: Mapping[str, Path]) -> None:
    """Run relations at a place of a pass, unless it is done; no relations, no run."""
    out = _out(work, one, place, faults)
    names = list(names)
    if not names or _is_finished(out):
        return
    shutil.rmtree(out, ignore_errors=True)  # of a run that was interrupted
    command = _replay(one, place, names, out, bags) if one.recording else _scenario(place, names, work)
    planted = [word for fault in faults for word in ("--fault", fault)]
    print(f"{out.name}: {len(names)} relations", flush=True)
    log = out.with_suffix(".log")
    with log.open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        code = mt([*command, "--stack", one.stack, "--out", str(out), *planted])
    _outcomes.cache_clear()
    if code not in (0, 1, 3):
        raise SystemExit(f"{out.name}: exit code {code}: {log.read_text(encoding='utf-8')[-2000:]}")


def _out(work: Path, one: Pass, place: str, faults: Faults) -> Path:
    planted = re.sub(r"[:=,]", "-", "+".join(faults)) or "none"
    return work / f"{one.name}@{place}@{planted}"


def _scenario(place: str, names: list[str], work: Path) -> list[str]:
    file = work / f"{place}.scenario"
    file.write_text(SCENARIOS[place], encoding="utf-8")
    return ["scenario", str(file), "--repeat", "1", "--jitter", "0", "--relations", ",".join(names)]


def _replay(one: Pass, place: str, names: list[str], out: Path, bags: Mapping[str, Path]) -> list[str]:
    plan = cases_at(one, place, out.parent, bags)
    chosen = tuple(case for case in plan.cases if case.relation in names)
    path = out.with_suffix(".cases.yaml")
    write_cases(CasePlan(plan.made_by, chosen), path)
    return ["replay", str(bags[one.recording]), "--cases", str(path), "--transport", "inprocess"]


def meant_for(one: Pass, place: str, work: Path, bags: Mapping[str, Path]) -> list[str]:
    """Return the relations that can be judged at a place of a pass, one of each content."""
    if one.recording:
        return list(dict.fromkeys(case.relation for case in cases_at(one, place, work, bags).cases if case.relation))
    stack, loop = load_stack(one.stack), loop_relations()
    suited = [name for name, relation in loop.items() if not incompatibility(relation, stack, True)]
    if not one.beyond:
        return suited
    other = load_stack(one.beyond)
    return [name for name in suited if incompatibility(loop[name], other, True)]


@lru_cache(maxsize=1)
def loop_relations() -> dict[str, Relation]:
    """Return the closed-loop relations, one of each content."""
    return {name: in_loop()[name].in_world(load_ontology()) for name in distinct(in_loop())}


def faults_of(one: Pass, name: str) -> list[Faults]:
    """Return the sets of faults that are meant to break a relation in a pass, the first first."""
    return [(fault,) for fault in one.faults] if one.recording else faults_for(loop_relations()[name])


def faults_for(relation: Relation) -> list[Faults]:
    """Return the sets of faults that make a driver blind to what a closed-loop relation changes, or confuse it."""
    found: dict[str, None] = {}
    for change in relation.scenario:
        if isinstance(change, ActorAdded):
            kinds = (change.kind,) if isinstance(change.kind, str) else change.kind
            found |= dict.fromkeys(f"blind_to:what={facts_of(kind).label}" for kind in kinds)
        elif isinstance(change, SignalShows):
            confused = "light_confused:shown=green,taken_for=red"
            found[confused if change.colour == "green" else "blind_to:what=light"] = None
        elif isinstance(change, SignPutUp):
            found[f"blind_to:what={'sign' if change.limit_kmh is None else 'limit'}"] = None
        elif isinstance(change, EnvironmentChanged):
            found["blind_to:what=weather"] = None
    return [tuple(found)] if found else []


def relations_in(work: Path, one: Pass) -> dict[str, None]:
    """Return the relations that are decided without a fault at any place of a pass."""
    rows = (name for place in one.places for name, _ in outcomes(_out(work, one, place, ())))
    return {name: None for name in rows if name in in_store()}


def held_at(work: Path, one: Pass, name: str) -> str:
    """Return the first place of a pass where the driver without a fault holds a pair of a relation, empty if none."""
    for place in one.places:
        rows = outcomes(_out(work, one, place, ())).items()
        if any(relation == name and outcome == "HOLDS" for (relation, _), outcome in rows):
            return place
    return ""


def broken_by(work: Path, one: Pass, name: str) -> dict[str, None]:
    """Return the faults with a pair of a relation that the driver holds without them, and violates with them."""
    found: dict[str, None] = {}
    for place in one.places:
        honest = outcomes(_out(work, one, place, ()))
        for faults in faults_of(one, name):
            rows = outcomes(_out(work, one, place, faults)).items()
            if any(pair[0] == name and o == "VIOLATED" and honest.get(pair) == "HOLDS" for pair, o in rows):
                found[" and ".join(faults)] = None
    return found


def made_recording(one: Pass, bags: Mapping[str, Path]) -> None:
    """Generate the drive of a pass, if it is generated and not there yet."""
    bag = bags[one.recording]
    if one.recording == "generated" and not bag.exists():
        from mt_nodes.data.bags.bundles import write_bundles
        from mt_nodes.runs.loop.rig import windscreen_camera
        from mt_nodes.world.scene.drive import generate_drive

        write_bundles(bag, generate_drive(2 * one.frames, 1, camera=windscreen_camera()))


def cases_at(one: Pass, place: str, work: Path, bags: Mapping[str, Path]) -> CasePlan:
    """Return the cases at one place of a recording, from a file in ``work`` once they are made."""
    plan = work / f"{one.name}@{place}.cases.yaml"
    if not plan.exists():
        write_cases(cases_of(one, place, bags[one.recording]), plan)
    return load_cases(plan)


def cases_of(one: Pass, place: str, bag: Path) -> CasePlan:
    """Return the first or the last case of a recording, with all relations that apply to it."""
    ontology = load_ontology()
    detectors = tuple(map(SceneDetector.named, one.detectors))
    recording = Recording(bag, {}, known_facts=facts(dict(one.facts), ontology), detectors=detectors)
    first = {"first": 0, "last": recording.count - one.frames}[place]
    ((name, scene),) = recording.scenes([first + one.frames // 2]).items()
    cases: list[PlannedCase] = []
    with scratch_store(shipped_entries()) as store:
        chooses = matcher(ontology, recording.sensors, [load_stack(one.stack)])
        entries = {entry.index: entry for entry in store.entries()}
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


def outcomes(out: Path) -> Mapping[tuple[str, str], str]:
    """Return the outcome of each decided pair of a finished run, by relation and pair."""
    return _outcomes(out) if _is_finished(out) else {}


def _is_finished(out: Path) -> bool:
    file = out / "summary.json"
    return file.exists() and not json.loads(file.read_text(encoding="utf-8"))["interrupted"]


@lru_cache(maxsize=1000)
def _outcomes(out: Path) -> Mapping[tuple[str, str], str]:
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
        for place in one.places:
            for (relation, _), outcome in outcomes(_out(work, one, place, ())).items():
                counts = where[relation].setdefault(one.recording or f"loop ({one.name})", [0, 0])
                counts[0] += outcome == "HOLDS"
                counts[1] += 1
        for relation in relations_in(work, one):
            broken[relation] |= broken_by(work, one, relation)
    content = same_content()
    firsts = {name: content[name][0] for name in in_store()}
    decided = [name for name, first in firsts.items() if where.get(first)]
    held = [name for name in decided if any(a for a, _ in where[firsts[name]].values())]
    found = [name for name in decided if broken.get(firsts[name])]
    yield f"{len(decided)} of {len(in_store())} statements decide somewhere; a driver without a fault holds {len(held)}"
    yield f"of them, and a planted fault breaks {len(found)}."
    recorded = [name for name in decided if any(not place.startswith("loop") for place in where[firsts[name]])]
    yield f"{len(recorded)} decide on recordings, {len(set(decided) - set(recorded))} in closed-loop worlds only."
    if missing := [name for one in PASSES for name in _missing(work, one)]:
        yield f"Not run yet: {', '.join(missing)}; what is said of statements leaves them out."
    yield ""
    yield "| statement | subject, place, behaviour | decided on (pairs that the driver holds) | broken by |"
    yield "| --- | --- | --- | --- |"
    for name, statement in in_store().items():
        yield _row(statement, where.get(firsts[name], {}), broken.get(firsts[name], {}))


def _missing(work: Path, one: Pass) -> list[str]:
    """Return a pass without results, or its faults without a finished run on relations that are meant for them."""
    if not outcomes(_out(work, one, one.places[0], ())):
        return [one.name]
    held = {name: held_at(work, one, name) for name in relations_in(work, one)}
    left = [(place, name) for name, place in held.items() if place and not broken_by(work, one, name)]
    runs = [(_out(work, one, place, faults), faults) for place, name in left for faults in faults_of(one, name)]
    return [f"{one.name} with {' and '.join(f)}" for f in dict.fromkeys(f for out, f in runs if not _is_finished(out))]


def _row(one: RuleStatement, where: Mapping[str, list[int]], broken: Iterable[str]) -> str:
    places = ", ".join(f"{place} {a}/{b}" for place, (a, b) in where.items()) or why_not(one)
    said = one.statement
    words = ", ".join(filter(None, (said.element, said.place or said.road, said.behaviour))).replace("_", " ")
    faults = ", ".join(f"`{fault}`" for fault in broken) or "none"
    return f"| `{one.id[5:]}` | {words} | {places} | {faults} |"


def why_not(one: RuleStatement) -> str:
    """Return why a statement decides nowhere, as far as the ontology knows."""
    ontology = load_ontology()
    gap = one.gap_in_world(ontology)
    return f"no recording shows it, and {gap}" if gap else "its conditions are met in none of these drives"


if __name__ == "__main__":
    raise SystemExit(main())
