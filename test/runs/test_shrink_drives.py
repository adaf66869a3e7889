# SPDX-License-Identifier: Apache-2.0
"""``mt shrink`` of pairs of drives: a stack of which it is known what makes it brake, in worlds of a finished run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_drives import crossing, made_run, pedestrian, setting
from made_runs import no_pages

from mt_nodes.base import plugins
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.cli.main import main
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.message_digests import sha256_of
from mt_nodes.engine.recorded_drives import episode_line, load_recorded_drives
from mt_nodes.engine.run_record import write_record
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import LOOP_FOLDER, load_relation, shipped_relations
from mt_nodes.relations.strength import strengths_in_world, with_values
from mt_nodes.relations.world_changes.base import Setting, WorldEffects
from mt_nodes.relations.world_changes.change_application import WHOLE, Window
from mt_nodes.relations.world_changes.environment_changes import EnvironmentChanged, FogInWorld
from mt_nodes.relations.world_changes.parts import differing, left_of, parts_of, restored, things, without
from mt_nodes.relations.world_changes.world_moves import WorldMirrored
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.episode import Player, replay_observations
from mt_nodes.runs.loop.episode_conductor import execute, in_process_arms
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.world import World

pytestmark = pytest.mark.usefixtures("stacks_here")

FAR_M = 6.0
STACK = f"""
import numpy as np
from mt_nodes.data.outputs import Control, Output

def braking(brakes):
    return Output(control=Control(None, steering_rad=0.0, speed_mps=0.0 if brakes else 10.0))

def far(objects):
    return int((np.abs(objects.center_m[:, 1]) > {FAR_M}).sum())

class Shy:
    '''Brakes where so many stand far beside its way.'''
    def __init__(self, least):
        self.least = least
    def __call__(self, objects):
        return braking(far(objects) >= self.least)

class Dice:
    '''The same in one of two drives, by dice that are thrown alike each time.'''
    thrown = np.random.default_rng(3)
    def __init__(self):
        self.shy = self.thrown.random() < 0.5
    def __call__(self, objects):
        return braking(self.shy and far(objects) >= 2)

class Turns:
    '''Brakes in every second drive, whatever it sees.'''
    drives = 0
    def __init__(self):
        self.brakes = Turns.drives % 2 == 1
        Turns.drives += 1
    def __call__(self, objects):
        return braking(self.brakes)

class Elsewhere:
    '''Brakes where the map says that it is far from the road that it knows.'''
    def __call__(self, told):
        return braking(abs(told["odometry"].y_m) > 5.0)

class Startled:
    '''Remembers: stops for good when it has seen too many at once, but not in its first half second.'''
    def __init__(self):
        self.asked, self.stopped = 0, False
    def __call__(self, objects):
        self.asked += 1
        self.stopped = self.stopped or (self.asked > 5 and len(objects) >= 3)
        return braking(self.stopped)
"""
PLUGIN = """
from dataclasses import dataclass, replace
import numpy as np
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.base.params import param

@dataclass(frozen=True)
class SeenTwice(Mutation):
    '''Whoever is told is told so many times more.'''
    sensors = ()
    times: int = param(4, low=0, high=9, neutral=0, help="how often")
    def draw(self, rng, bundle, state):
        return {}
    def apply(self, bundle, draw):
        told = tuple(
            replace(t, data=t.data.take(np.tile(np.arange(len(t.data)), 1 + self.times)))
            for t in bundle.world_messages
        )
        return Followup(((0, replace(bundle, world_messages=told)),))
    def guarantee(self, source, followup, draw):
        return None
"""
BYSTANDERS = (pedestrian(30.0, 4.0, "near"), pedestrian(45.0, -4.0, "second"))
SAME = {"same_trace": {"by": "frechet", "tolerance_m": 0.3, "within_s": 0.3}}
RELATIONS: dict[str, dict[str, Any]] = {
    "crowd": {"scenario": [{"object_added_far": {"count": 12}}]},
    "foggy": {"scenario": [{"fog_in_world": {}}, {"object_added_far": {"count": 3}}]},
    "seen_twice": {"mutate": ["seen_twice"]},
    "moved": {"scenario": [{"world_moved": {"turned_by_at_most_rad": 0.0}}]},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Stacks, relations and a plugin, which other tests do not see."""
    made = tmp_path_factory.mktemp("shrink_drives")
    (made / "shy_driver.py").write_text(STACK)
    (made / "plugins").mkdir()
    (made / "plugins" / "seen_twice.py").write_text(PLUGIN)
    for name, changes in RELATIONS.items():
        head = {"id": name, "kind": "expected", "because": "for tests", "min_decided": 1, "check": SAME}
        (made / f"{name}.yaml").write_text(json.dumps({**head, **changes}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "_directories", [])
        plugins.add_directory(made / "plugins")
        yield made
    plugins.catalogue.cache_clear()


def driven(place: Path, name: str, stack: str, relation: str, *given: Setting | dict[str, Any], **params: Any) -> Path:
    """Return a finished run of a stack of this file; ``given``: scenes, and what else is asked."""
    settings = [one for one in given if isinstance(one, Setting)]
    inputs = {"objects": None, "odometry": None} if stack == "Elsewhere" else "objects"
    told = {"name": stack, "callable": f"shy_driver:{stack}", "params": params, "inputs": inputs}
    file, out = place / f"{name}.yaml", place / name
    file.write_text(json.dumps({**told, "stateless": False, "outputs": {"control": None}}))
    asked: dict[str, Any] = {"plugins": (str(place / "plugins"),)}
    asked |= {name: value for one in given if isinstance(one, dict) for name, value in one.items()}
    run = made_run(out, settings, [str(place / f"{relation}.yaml")], load_stack(str(file)), **asked)
    run = replace(run, request=replace(run.request, stack=str(file)))
    write_record(run.out, run.request, run.suite.all, run.stack, {})
    with no_pages():
        execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)
    return out


def shrunk(capsys: pytest.CaptureFixture[str], run: Path, pair: str, *words: str) -> tuple[int, dict[str, Any]]:
    with no_pages():
        code = main(["shrink", str(run), pair, "--json", *words])
    told = capsys.readouterr()
    assert told.out, told.err
    return code, json.loads(told.out)


def ends(run: Path) -> dict[str, str]:
    return {line["pair"]: line["outcome"] for line in read_journal(run / "result.jsonl") if line["type"] == "verdict"}


def test_the_weakest_change_in_the_plainest_world_and_the_shortest_drive_are_left(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = driven(place, "crowd_run", "Shy", "crowd", setting(*BYSTANDERS, duration_s=3.0), least=5)
    pair = Pair(0, None, "crowd", "0")
    assert ends(run)[str(pair)] == "VIOLATED"
    code, told = shrunk(capsys, run, str(pair))
    rows = told["before_after"]
    assert code == 0 and told["complete"] and told["deterministic_so_far"] and told["is_followup_of_mutation"]
    assert rows["object_added_far.count"] == {"before": "12", "after": "5"}
    assert rows["parts of the world that differ"]["before"] == "5", "none of the five can be put back"
    assert rows["others in both worlds"] == {"before": "2", "after": "0"}
    assert rows["drive"]["before"] == "3.0 s" and float(rows["drive"]["after"][:-2]) < 2.0
    assert all(step["failed"] in (0, 3) for step in told["steps"])

    out = Path(told["results"])
    assert ends(out) == {str(pair): "VIOLATED"} and load_relation(str(out / "relation.yaml")).id == "crowd"
    source, followup = load_recorded_drives(out, episode_line(out, pair)).settings
    assert not source.scenario.actors and len(followup.scenario.actors) == 5
    assert len(list((out / "evidence").glob("*.mcap"))) == 1
    # A hundredth of a second less, one object less, and it would hold: so says a drive that nobody looked for.
    assert main(["reproduce", str(out), str(pair), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["same_drives"] and again["differs"] == [] and again["now"]["outcome"] == "VIOLATED"


@pytest.mark.parametrize("mode", ["two_pass", "twin"])
def test_parts_of_the_change_that_do_not_matter_are_put_back(
    place: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    run = driven(place, f"foggy_{mode}", "Shy", "foggy", setting(duration_s=1.5), {"mode": mode}, least=1)
    code, told = shrunk(capsys, run, "0/-/foggy/0", "--confirm", "1/1")
    assert code == 0 and not told["is_followup_of_mutation"] and "weather fog" in told["why"]
    assert told["before_after"]["parts of the world that differ"]["after"].startswith("1: actor added_far")
    assert told["before_after"]["object_added_far.count"]["after"] == "1"
    out = Path(told["results"])
    kept = load_recorded_drives(out, episode_line(out, Pair.parse("0/-/foggy/0")))
    assert kept.back == ("weather fog",) and kept.settings[1].scenario.environment.fog == 0.0
    assert main(["reproduce", str(out), "0/-/foggy/0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same_drives"]


def test_what_sensors_see_is_changed_at_the_one_instant_that_matters(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = driven(place, "twice_run", "Startled", "seen_twice", setting(*BYSTANDERS, duration_s=2.0))
    code, told = shrunk(capsys, run, "0/-/seen_twice/0", "--confirm", "1/1")
    rows, out = told["before_after"], Path(told["results"])
    assert code == 0 and rows["instants that are changed"]["after"] == "1"
    line = episode_line(out, Pair.parse("0/-/seen_twice/0"))
    assert line["window"][0] == 5 and line["window"][1] == 6
    # One of two people three times, or both twice.
    assert rows["seen_twice.times"]["after"] in ("1", "2") and rows["others in both worlds"]["after"][0] in "12"
    assert main(["reproduce", str(out), "0/-/seen_twice/0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same_drives"]


def test_a_stack_that_fails_by_chance_is_asked_more_often(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = driven(place, "dice_run", "Dice", "crowd", *[setting(duration_s=1.5)] * 6)
    violated = next(pair for pair, end in ends(run).items() if "/crowd/" in pair and end == "VIOLATED")
    code, told = shrunk(capsys, run, violated, "--plays", "60")
    assert told["first"]["plays"] == 5 and 0 < told["first"]["failed"] < 5 and not told["deterministic_so_far"]
    assert code == 0 and all(step["failed_enough"] == (step["failed"] == 4) for step in told["steps"])


def test_of_a_world_that_lies_elsewhere_as_a_whole_no_part_is_put_back(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = driven(place, "moved_run", "Elsewhere", "moved", setting(pedestrian(30.0, 4.0), duration_s=1.5))
    code, told = shrunk(capsys, run, "0/-/moved/0", "--confirm", "1/1")
    assert (
        code == 0 and told["is_followup_of_mutation"] and any("lies elsewhere as a whole" in n for n in told["notes"])
    )
    assert float(told["before_after"]["world_moved.by_at_most_m"]["after"][:-2]) < 100.0
    assert "parts of the world that differ" not in told["before_after"]


def test_what_fails_in_an_unchanged_world_is_told_and_no_part_is_put_back(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = driven(place, "turns_run", "Turns", "crowd", setting(duration_s=1.0))
    code, told = shrunk(capsys, run, "0/-/crowd/0", "--confirm", "1/1")
    assert code == 0 and any("fails in an unchanged world" in note for note in told["notes"])
    (tried,) = [step["tried"] for step in told["steps"] if step["move"] == "parts"]
    assert told["is_followup_of_mutation"] and tried.startswith("none of") and tried.endswith("as a check")


def test_what_cannot_be_made_small_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = driven(place, "held_run", "Shy", "crowd", setting(duration_s=0.5), least=100)
    assert main(["shrink", str(run), "0/-/crowd/0"]) == 2
    assert "ended as HOLDS, expected a VIOLATED one" in capsys.readouterr().err
    crowd = driven(place, "one_run", "Shy", "crowd", setting(duration_s=1.5), least=1)
    assert main(["shrink", str(crowd), "0/-/crowd/0", "--bag", "b"]) == 2
    assert "leave --bag out" in capsys.readouterr().err and not (crowd / "shrunk").exists()


# --- windows, parts and strengths of worlds


@dataclass(frozen=True)
class Crowded(Mutation):
    """Whoever is told is told once more for each of a number that lasts for the episode."""

    sensors = ()

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> int:
        return int(rng.integers(1, 100)) + 100 * bundle.index

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        return {"times": state + int(rng.integers(10))}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        told = [
            replace(t, data=t.data.take(np.zeros(draw["times"], int)))
            for t in bundle.world_messages
            if t.role == "objects"
        ]
        return Followup(((0, replace(bundle, world_messages=tuple(told))),))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        return None


def test_in_a_window_all_is_as_it_was_in_the_whole_and_outside_of_it_nothing_is_changed() -> None:
    scene, rig = setting(*BYSTANDERS), Rig.for_stack(load_stack("reference_planner"))

    def given(tap: MutationPipeline | None, window: Window = WHOLE) -> list[str]:
        eyes, world = Sensors(scene.scenario, scene.road, rig, 0), World(scene.scenario, 0, scene.road)
        player = Player(scene, world, eyes, None, 0, tap=tap, window=window)
        return [sha256_of(bundle) for bundle in replay_observations(player, [None] * 6, range(6))]

    changed, plain = given(MutationPipeline([Crowded()], 3, "r")), given(None)
    assert len({*changed, *plain}) == 12
    for window in ((0, None), (2, 4), (5, None), (0, 1), (3, 3)):
        inside = range(6)[slice(*window)]
        wanted = [changed[row] if row in inside else plain[row] for row in range(6)]
        assert given(MutationPipeline([Crowded()], 3, "r"), window) == wanted


def test_worlds_are_told_apart_and_put_together_part_by_part() -> None:
    source = setting(*BYSTANDERS, crossing())
    environment = replace(source.scenario.environment, fog=0.5, rain=0.2)
    actors = (replace(BYSTANDERS[0], kind="child"), BYSTANDERS[1], pedestrian(50.0, 9.0, "new"))
    other = replace(source, noise=3, scenario=replace(source.scenario, environment=environment, actors=actors))
    parts = differing(source, other)
    assert set(parts) == {"actor near", "actor new", "actor crosser", "weather fog", "weather rain", "noise"}
    assert restored(source, other, ()) is other
    assert not differing(source, restored(source, other, parts)) and differing(source, source) == ()
    for part in parts:
        assert differing(restored(source, other, [part]), other) == (part,)
        assert part not in differing(source, restored(source, other, [part]))
    assert things(without(source, ["actor near"])) == ("actor second", "actor crosser")


def test_effects_name_nobody_who_is_as_before() -> None:
    effects = WorldEffects(added=("new", "other"), changed=("near",), numbers={"ahead_m": 3.0})
    assert left_of(effects, ["actor new", "actor near"]) == replace(effects, added=("other",), changed=())
    assert left_of(effects, ["weather fog"]) == effects


def test_a_map_that_is_another_goes_back_with_its_name() -> None:
    source = setting()
    moved, _ = WorldMirrored().apply(source, {})
    assert "road" in differing(source, moved)
    back = restored(source, moved, ["road", "ego"])
    assert back.road is source.road and back.scenario.road == source.scenario.road
    assert parts_of(back)["ego"] == source.scenario.ego


@pytest.mark.parametrize("relation", [r for r in shipped_relations(LOOP_FOLDER) if r.scenario], ids=lambda r: r.id)
def test_weak_ends_change_less_or_nothing(relation: Any) -> None:
    """Between the weak end and what the relation says, a change of half the strength changes no more parts."""
    source = setting(*BYSTANDERS, crossing(), duration_s=4.0)
    for axis in strengths_in_world(relation, source):
        assert axis.part == "scenario" and axis.weak != axis.strong
        (change,) = with_values(relation, [axis], [axis.value(0.5)]).scenario
        strong = relation.scenario[axis.step]
        counts = []
        for one in (change, strong):
            try:
                drawn = one.draw(generator(0, "r", 0, None, "0.0"), source)
            except NotApplicable:
                counts.append(0)
            else:
                counts.append(len(differing(source, one.apply(source, drawn)[0])))
        assert counts[0] <= counts[1]


def test_the_weak_end_of_weather_is_that_of_the_world() -> None:
    there = setting()
    wet = replace(there, scenario=replace(there.scenario, environment=replace(there.scenario.environment, rain=0.25)))
    assert EnvironmentChanged("rain", 0.9).weak_ends(wet) == {"to": 0.25}
    assert EnvironmentChanged("hour", 22.0).weak_ends(wet) == {"to": 12.0}
    assert FogInWorld(0.8).weak_ends(wet) == {"fog": 0.0}
    with pytest.raises(UsageError):
        EnvironmentChanged("rain", 0.0)
