# SPDX-License-Identifier: Apache-2.0
"""Other simulators in place of our world: the world that is made of one, and both adapters before faked ones."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_drives import SPEED_MPS, box, crossing, pedestrian, setting

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Output
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.episode import Player, play
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.world.drive import traffic_messages as api
from mt_nodes.world.drive.external import ExternalWorld, Origin, SimulatedObject, Simulator, ego_of
from mt_nodes.world.drive.friction import GRAVITY_MPS2, friction
from mt_nodes.world.drive.plant import Plant
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Pose
from mt_nodes.world.drive.trace import EgoState
from mt_nodes.world.drive.trace_file import sha256_of_trace
from mt_nodes.world.drive.traffic_simulator import TrafficSettings, TrafficSimulator
from mt_nodes.world.drive.world import World

SCENE = setting(crossing(), duration_s=2.0)
ORIGIN = Origin(100.0, -50.0, 3.0, 0.5)
QUICK = {"step_s": 0.1, "timeout_s": 20.0, "origin": ORIGIN, "map_path": "/maps/a.osm", "pace": 0.0}


class Local:
    """A simulator whose ego is our own plant: whoever drives it drives as in our own world."""

    def __init__(self, step_s: float = 0.01, hits: Mapping[int, str] | None = None) -> None:
        self.step_s, self._hits = step_s, hits or {}
        self.log: list[Any] = []
        self.things: dict[str, SimulatedObject] = {}
        self.places_asked: dict[str, tuple[Pose, float]] = {}
        self.ticks = 0

    def load_map(self, road: str) -> None:
        self.log.append(road)

    def begin(self, ego: Ego) -> None:
        start = EgoState(ego.start.x_m, ego.start.y_m, ego.start.yaw_rad, ego.speed_mps)
        self._plant = Plant(ego.vehicle, start, friction(Environment()) * GRAVITY_MPS2, self.step_s)

    def spawn(self, thing: SimulatedObject) -> None:
        self.things[thing.name] = thing

    def move(self, name: str, pose: Pose, speed_mps: float) -> None:
        self.places_asked[name] = (pose, speed_mps)

    def weather(self, environment: Environment) -> None:
        self.log.append(environment)

    def lights(self, colours: Mapping[str, str]) -> None:
        self.log.append(dict(colours))

    def drive(self, acceleration_mps2: float, steering_rad: float) -> None:
        self._asked = acceleration_mps2, steering_rad

    def tick(self) -> None:
        self._plant.advance(*self._asked)
        self.ticks += 1

    def ego(self) -> EgoState:
        return self._plant.state

    def places(self) -> dict[str, Pose]:
        standing = {thing.name: thing.pose for thing in self.things.values()}
        return {**standing, **{name: pose for name, (pose, _) in self.places_asked.items()}}

    def collisions(self) -> tuple[str, ...]:
        return (self._hits[self.ticks],) if self.ticks in self._hits else ()

    def end(self) -> None:
        self.log.append("end")


# --- the world


def played(world: World, scene: Setting) -> Any:
    """Drive through a scene, now this way, now that."""

    class Arm:
        name = "source"

        def begin_episode(self) -> None:
            pass

        def send(self, bundle: Bundle, changed: frozenset[str]) -> int:
            return bundle.index

        def wait(self, ticket: int) -> Answer:
            said = Control(None, steering_rad=0.02 * math.sin(ticket), speed_mps=SPEED_MPS + math.cos(ticket))
            return Answer(AnswerStatus.ANSWERED, Output(control=said))

    arm: Any = Arm()
    eyes = Sensors(scene.scenario, scene.road, Rig(), 0)
    return play([Player(scene, world, eyes, arm, 0)])[0]


def test_an_episode_in_another_simulator_is_as_one_in_our_world() -> None:
    simulator: Simulator = Local()
    ours = played(World(SCENE.scenario, 0, SCENE.road), SCENE).driven.trace
    theirs = played(ExternalWorld(SCENE.scenario, simulator, 0, SCENE.road), SCENE).driven.trace
    assert sha256_of_trace(ours) == sha256_of_trace(theirs) and len(ours) == 20
    other = played(ExternalWorld(SCENE.scenario, Local(0.05), 0, SCENE.road), SCENE).driven.trace
    assert sha256_of_trace(other) != sha256_of_trace(ours)
    np.testing.assert_allclose(other.ego[:, :4], ours.ego[:, :4], atol=0.2)


def test_the_simulator_is_led_where_the_scenario_goes_and_left_as_it_was() -> None:
    scene = setting(
        crossing(),
        duration_s=4.0,
        signals={"light_1": (("red", 1.25), ("green", 1.0))},
        obstacles=(box(80.0),),
        environment=Environment(fog=0.3),
    )
    simulator = Local()
    world = ExternalWorld(scene.scenario, simulator, 0, scene.road)
    assert (
        simulator.log == [scene.scenario.road, scene.scenario.environment, world.state.signals] and world.state.signals
    )
    assert [(t.name, t.kind, t.label, t.moves) for t in simulator.things.values()] == [
        ("crosser", "adult", "pedestrian", True),
        ("carton", "box", "unknown", False),
    ]
    seen = [world.state.signals]
    while not world.ended:
        world.step(Control(None, steering_rad=0.0, acceleration_mps2=0.0), world.state.time_s + 0.1)
        seen += [world.state.signals] if world.state.signals != seen[-1] else []
        (pose, speed), row = simulator.places_asked["crosser"], world.state.actors[0]
        assert (pose.x_m, pose.y_m, pose.yaw_rad, speed) == pytest.approx(tuple(row), abs=1e-9)
    assert simulator.log[2:] == seen, "lights are told when they change"
    world.close()
    assert simulator.log[-1] == "end"


@pytest.mark.parametrize(("stops", "ended"), [(True, "collision"), (False, "")])
def test_a_collision_that_only_the_simulator_saw_counts_once(stops: bool, ended: str) -> None:
    scene = setting(pedestrian(200.0), duration_s=5.0)
    simulator = Local(hits={7: "walker", 8: "walker", 9: ""})
    world = ExternalWorld(scene.scenario, simulator, 0, scene.road, stop_at_collision=stops)
    world.step(Control(None, steering_rad=0.0, speed_mps=SPEED_MPS), 0.1)
    hits = [(hit.name, hit.kind, round(hit.time_s, 6)) for hit in world.collisions]
    assert hits == [("walker", "adult", 0.07), ("", "unknown", 0.09)][: 1 if stops else 2]
    assert world.ended == ended and world.collisions[0].ego_mps == pytest.approx(SPEED_MPS, abs=0.1)


def test_what_cannot_be_set_up_leaves_nothing_there() -> None:
    class Small(Local):
        def spawn(self, thing: SimulatedObject) -> None:
            raise UsageError("no room")

        def end(self) -> None:
            super().end()
            raise InfrastructureError("nor an answer")

    simulator = Small()
    with pytest.raises(UsageError, match="no room"):
        ExternalWorld(SCENE.scenario, simulator, 0, SCENE.road)
    assert simulator.log == ["straight", "end"]


ANGLE, PLACE = st.floats(-3.1, 3.1), st.floats(-1e4, 1e4)


@given(PLACE, PLACE, ANGLE, PLACE, PLACE, ANGLE, st.floats(-3.0, 3.0))
def test_a_pose_comes_back_from_the_simulators_frame(
    x: float, y: float, yaw: float, x0: float, y0: float, turn: float, forward: float
) -> None:
    origin, pose = Origin(x0, y0, 0.0, turn), Pose(x, y, yaw)
    there = origin.to_simulator(pose, forward)
    back = origin.from_simulator(there, forward)
    assert (back.x_m, back.y_m, back.yaw_rad) == pytest.approx((x, y, yaw), abs=1e-6)
    assert there.yaw_rad == pytest.approx(yaw + turn)


def test_poses_are_turned_then_shifted() -> None:
    there = Origin(10.0, 20.0, 0.0, math.pi / 2).to_simulator(Pose(1.0, 2.0, 0.0), 3.0)
    assert (there.x_m, there.y_m, there.yaw_rad) == pytest.approx((8.0, 24.0, math.pi / 2))


def test_steering_is_reckoned_from_the_yaw_rate() -> None:
    turning = ego_of(Pose(0.0, 0.0), 10.0, 10.0 * math.tan(0.1) / 2.8, 2.8)
    assert turning.steering_rad == pytest.approx(0.1)
    assert ego_of(Pose(0.0, 0.0), -1.0, 0.3, 2.8) == EgoState(0.0, 0.0, 0.0, 0.0)


# --- scenario_simulator_v2, AWSIM


class Server:
    """A simulator behind ZeroMQ that moves its ego straight on, and keeps what it was asked."""

    def __init__(self, speed_mps: float = 5.0) -> None:
        zmq = pytest.importorskip("zmq", reason="pyzmq is of the extra `awsim`")
        pytest.importorskip("google.protobuf", reason="protobuf is of the extra `awsim`")
        self._socket = zmq.Context.instance().socket(zmq.REP)
        self._socket.linger = 0
        self.endpoint = f"tcp://127.0.0.1:{self._socket.bind_to_random_port('tcp://127.0.0.1')}"
        self.asked: list[Any] = []
        self.refuse, self.answer_as, self.garbled = "", "", b""
        self._speed_mps, self._frames = speed_mps, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def names(self) -> list[str]:
        return [request.WhichOneof("what") for request in self.asked]

    def _serve(self) -> None:
        while not self._over.is_set():
            if self._socket.poll(50):
                request = api.message("SimulationRequest").FromString(self._socket.recv())
                self.asked.append(request)
                self._socket.send(self.garbled or self._answer(request).SerializeToString())

    def _answer(self, request: Any) -> Any:
        what = request.WhichOneof("what")
        result = {"success": what != self.refuse, "description": "out of models" if what == self.refuse else ""}
        fields: dict[str, Any] = {"result": result}
        if (self.answer_as or what) == "update_entity_status":
            fields["status"] = [self._status(row) for row in request.update_entity_status.status]
        return api.message("SimulationResponse")(**{self.answer_as or what: fields})

    def _status(self, row: Any) -> dict[str, Any]:
        if row.type.type == api.EGO:
            self._frames += 1
            row.action_status.twist.linear.x = self._speed_mps
            row.action_status.twist.angular.z = 0.25
            row.pose.position.x += self._speed_mps * 0.1
        return {"name": row.name, "action_status": row.action_status, "pose": row.pose}


@pytest.fixture
def server(ending: ExitStack) -> Server:
    made = Server()
    ending.callback(made.close)
    return made


def traffic(server: Server, ending: ExitStack, **given: Any) -> TrafficSimulator:
    settings = TrafficSettings(server.endpoint, **{**QUICK, **given})
    made = TrafficSimulator(settings)
    ending.callback(made.close)
    return made


def test_what_is_sent_has_the_published_field_numbers() -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is of the extra `awsim`")
    request = api.message("SimulationRequest")(
        update_entity_status={"status": [{"name": "ego", "type": {"type": 2}, "pose": {"position": {"y": 1.0}}}]}
    )
    # By the encoding of protocol buffers: (7, status 1: (type 1: (1: 2)), (name 4: "ego"), (pose 6: (1: (2: 1.0)))).
    position = b"\x0a\x09\x11" + b"\x00\x00\x00\x00\x00\x00\xf0\x3f"
    status = b"\x0a\x02\x08\x02" + b"\x22\x03ego" + b"\x32" + bytes([len(position)]) + position
    assert request.SerializeToString() == b"\x3a" + bytes([len(status) + 2]) + b"\x0a" + bytes([len(status)]) + status
    lights = api.message("SimulationRequest")(update_traffic_lights={"states": [{"id": 300}]})
    assert lights.SerializeToString() == b"\x5a\x05\x0a\x03\x08\xac\x02"


ASSETS = {"ego": "lexus", "car": "taxi", "pedestrian": "human", "unknown": "carton"}


def test_a_drive_in_a_traffic_simulator(server: Server, ending: ExitStack) -> None:
    scene = setting(
        crossing(within_m=80.0), Actor("ahead", "car", Pose(90.0, 0.0)), duration_s=0.5, obstacles=(box(80.0),)
    )
    simulator = traffic(server, ending, assets=ASSETS, map_path="/maps/somewhere.osm")
    world = ExternalWorld(scene.scenario, simulator, 0, scene.road)
    assert server.names() == [
        "initialize",
        *("spawn_vehicle_entity", "spawn_pedestrian_entity", "spawn_vehicle_entity", "spawn_misc_object_entity"),
    ]
    begun, ego, crosser, ahead, carton = (getattr(r, r.WhichOneof("what")) for r in server.asked)
    assert (begun.step_time, begun.lanelet2_map_path, begun.realtime_factor) == (0.1, "/maps/somewhere.osm", 1.0)
    assert begun.HasField("initialize_ros_time"), "AWSIM reads it unasked"
    assert (ego.is_ego, ego.asset_key, ego.initial_speed, ahead.is_ego, ahead.asset_key) == (
        *(True, "lexus", SPEED_MPS),
        *(False, "taxi"),
    )
    start = ORIGIN.to_simulator(scene.scenario.ego.start)
    assert (ego.pose.position.x, ego.pose.position.y, ego.pose.position.z) == pytest.approx((start.x_m, start.y_m, 3.0))
    assert 2.0 * math.atan2(ego.pose.orientation.z, ego.pose.orientation.w) == pytest.approx(start.yaw_rad)
    assert ego.parameters.bounding_box.center.x == pytest.approx((3.8 - 1.1) / 2.0)
    assert crosser.parameters.name == "crosser" and carton.parameters.bounding_box.dimensions.x == pytest.approx(0.8)
    while not world.ended:
        world.step(Control(None, steering_rad=0.0, speed_mps=SPEED_MPS), world.state.time_s + 0.1)
    steps = server.names()[5:]
    assert steps == ["update_entity_status", "update_frame"] * 5 and world.ended == "time"
    statuses = server.asked[5].update_entity_status
    rows = {row.name: row for row in statuses.status}
    assert [(n, rows[n].type.type, rows[n].subtype.value) for n in ("ego", "crosser", "ahead", "carton")] == [
        ("ego", api.EGO, api.CAR),
        ("crosser", api.PEDESTRIAN, api.ON_FOOT),
        ("ahead", api.VEHICLE, api.CAR),
        ("carton", api.MISC_OBJECT, api.UNKNOWN),
    ]
    assert statuses.npc_logic_started and not statuses.overwrite_ego_status, "the ego is theirs to move"
    assert rows["crosser"].action_status.twist.linear.x == pytest.approx(1.4, abs=0.2)
    frames = [r.update_frame for r in server.asked if r.WhichOneof("what") == "update_frame"]
    assert [f.current_simulation_time for f in frames] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert (frames[2].current_ros_time.sec, frames[2].current_ros_time.nanosec) == (0, 300_000_000)
    moved = ORIGIN.from_simulator(replace(start, x_m=start.x_m + 5 * 0.5))
    end = world.state.ego
    assert (end.x_m, end.y_m, end.speed_mps) == pytest.approx((moved.x_m, moved.y_m, 5.0))
    assert end.steering_rad == pytest.approx(math.atan(2.8 * 0.25 / 5.0))
    world.close()
    assert [r.despawn_entity.name for r in server.asked[-4:]] == ["ego", "crosser", "ahead", "carton"]


def test_lights_are_told_by_their_ids_when_they_change(server: Server, ending: ExitStack) -> None:
    simulator = traffic(server, ending, lights={"north": 34802})
    simulator.begin(Ego(Pose(0.0, 0.0)))
    for colours in ({"north": "red", "elsewhere": "green"}, None, {"north": "yellow"}):
        if colours:
            simulator.lights(colours)
        simulator.tick()
    told = [r.update_traffic_lights for r in server.asked if r.WhichOneof("what") == "update_traffic_lights"]
    assert [
        [(s.id, light.color, light.status) for s in t.states for light in s.traffic_light_status] for t in told
    ] == [
        [(34802, 0, 1)],
        [(34802, 1, 1)],
    ]


def test_animals_and_refusals_are_told(server: Server, ending: ExitStack) -> None:
    simulator = traffic(server, ending)
    simulator.begin(Ego(Pose(0.0, 0.0)))
    with pytest.raises(UsageError, match="boar_1 is a boar: this simulator has no animals"):
        simulator.spawn(SimulatedObject("boar_1", "boar", "animal", Pose(1.0, 1.0), (1.0, 1.0, 1.0)))
    server.refuse = "spawn_vehicle_entity"
    with pytest.raises(InfrastructureError, match="refuses spawn_vehicle_entity: out of models"):
        simulator.spawn(SimulatedObject("a", "car", "car", Pose(1.0, 1.0), (4.0, 1.8, 1.5)))
    server.answer_as, server.refuse = "initialize", ""
    with pytest.raises(InfrastructureError, match="got an answer to initialize, expected one to update_entity_status"):
        simulator.tick()
    server.garbled = b"\xff\xff\xff"
    with pytest.raises(InfrastructureError, match="the answer to update_entity_status cannot be read"):
        simulator.tick()


def test_nobody_there_is_told(ending: ExitStack) -> None:
    pytest.importorskip("zmq", reason="pyzmq is of the extra `awsim`")
    simulator = TrafficSimulator(TrafficSettings("tcp://127.0.0.1:1", timeout_s=0.05))
    ending.callback(simulator.close)
    with pytest.raises(InfrastructureError, match=r"no answer to initialize within 0\.05 s"):
        simulator.begin(Ego(Pose(0.0, 0.0)))
    with pytest.raises(InfrastructureError, match="no answer to update_frame"):
        simulator._ask("update_frame", current_simulation_time=0.0)
    with pytest.raises(UsageError, match="endpoint: got 'nowhere', expected one such as tcp://host:5555"):
        TrafficSimulator(TrafficSettings("nowhere"))


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    api._classes.cache_clear()
    try:
        with pytest.raises(UsageError, match=r"needs protobuf: pip install 'mt_nodes\[awsim\]'"):
            TrafficSimulator(TrafficSettings())
    finally:
        api._classes.cache_clear()


# --- a simulator that does nothing


class Idle(Local):
    """Answers everything, and does not do one thing."""

    def __init__(self, leaves_out: str) -> None:
        super().__init__()
        self._leaves_out = leaves_out

    def begin(self, ego: Ego) -> None:
        super().begin(replace(ego, start=replace(ego.start, x_m=50.0)) if self._leaves_out == "start" else ego)

    def tick(self) -> None:
        if self._leaves_out != "ticks":
            super().tick()

    def drive(self, acceleration_mps2: float, steering_rad: float) -> None:
        self._asked = (-9.0, 0.0) if self._leaves_out == "commands" else (acceleration_mps2, steering_rad)

    def places(self) -> dict[str, Pose]:
        if self._leaves_out == "bodies":
            return {}
        if self._leaves_out == "moves":
            return {thing.name: thing.pose for thing in self.things.values()}
        return super().places()


@pytest.mark.parametrize(
    ("leaves_out", "why"),
    [
        ("ticks", "the simulator's ego has not moved 3 s after it should have: nothing shows that"),
        ("bodies", "the simulator does not have '(carton|crosser)', which was spawned there"),
        ("moves", r"the simulator has 'crosser' at .*, where it was put"),
        ("start", r"the simulator's ego begins at \(50.1, .*, 30.1 m from its start"),
    ],
)
def test_a_simulator_that_does_nothing_is_told(leaves_out: str, why: str) -> None:
    scene = setting(crossing(within_m=80.0), duration_s=8.0, obstacles=(box(150.0),))
    world = ExternalWorld(scene.scenario, Idle(leaves_out), 0, scene.road)
    with pytest.raises(InfrastructureError, match=why):
        while not world.ended:
            world.step(Control(None, steering_rad=0.0, speed_mps=SPEED_MPS), world.state.time_s + 0.1)


def test_an_ego_that_never_moves_ends_in_no_result() -> None:
    scene = setting(duration_s=1.0)
    still = replace(scene.scenario, ego=replace(scene.scenario.ego, speed_mps=0.0))
    world = ExternalWorld(still, Idle("commands"), 0, scene.road)
    with pytest.raises(InfrastructureError, match=r"has not moved in the whole episode: .* so nothing was tested"):
        world.step(Control(None, steering_rad=0.0, acceleration_mps2=0.0), 1.0)


def test_frames_are_sent_no_faster_than_time(server: Server, ending: ExitStack) -> None:
    clock = [0.0]
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += seconds

    simulator = TrafficSimulator(
        TrafficSettings(server.endpoint, step_s=0.1, map_path="/m.osm", pace=0.5), lambda: clock[0], wait
    )
    ending.callback(simulator.close)
    simulator.load_map("bridge")
    simulator.begin(Ego(Pose(0.0, 0.0)))
    for late_s in (0.0, 0.05, 0.5, 0.0):
        clock[0] += late_s
        simulator.tick()
    assert waits == pytest.approx([0.0, 0.15, 0.0, 0.2])
    assert server.asked[0].initialize.realtime_factor == 0.5


def test_a_map_and_models_that_the_simulator_lacks_are_told(server: Server, ending: ExitStack) -> None:
    simulator = traffic(server, ending, map_path="", assets={"ego": "lexus"})
    with pytest.raises(UsageError, match=r"map 'bridge': expected a Lanelet2 file \(.osm\), or map_path"):
        simulator.load_map("bridge")
    simulator.load_map("/maps/town.osm@35.0,139.0")
    simulator.begin(Ego(Pose(0.0, 0.0)))
    assert server.asked[0].initialize.lanelet2_map_path == "/maps/town.osm"
    with pytest.raises(UsageError, match="assets: none for truck or truck; name a model that the simulator has"):
        simulator.spawn(SimulatedObject("a", "truck", "truck", Pose(1.0, 1.0), (8.0, 2.5, 3.5)))
