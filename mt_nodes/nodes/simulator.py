# SPDX-License-Identifier: Apache-2.0
"""``ros2 run mt_nodes simulator``: a world that a stack drives through, over the topics that the stack's file names.

Ends with 0 when every episode ended well, 1 when the stack has to answer for one (collision, off the road, a command
that cannot be carried out, silence), 4 when the stack never came, 5 when somebody else publishes the same topics, 130
when interrupted before the last episode was over; see docs/simulators.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from mt_nodes.base.errors import ExitCode, InfrastructureError, IsolationError, MtError, UsageError
from mt_nodes.base.params import param
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.outputs import Control
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.nodes import qos
from mt_nodes.nodes.bundle_publisher import BundlePublisher, ClockPublisher
from mt_nodes.nodes.convert import topics_of_world
from mt_nodes.nodes.frames_topic import FramesTopic
from mt_nodes.nodes.managed_node import ManagedNode, ManagedParameters
from mt_nodes.nodes.node_main import run_node
from mt_nodes.nodes.output_listener import OutputListener
from mt_nodes.nodes.participants import Meeting
from mt_nodes.nodes.simulation_pace import LockstepPace, RealtimePace, SimulationPace
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.loop.simulation import Simulation
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.scenario_files import scenarios_of

PACES = ("lockstep", "realtime")
#: Time for those who listen to get what was said last.
FLUSH_S = 5.0


@dataclass(frozen=True)
class SimulatorParameters(ManagedParameters):
    """What the node is told."""

    scenario: str = param("", help="scenario file (.scenario, .xosc), or the name of one that ships")
    stack: str = param("reference_planner", help="name or file of the stack: which topics it takes and says")
    pace: str = param(
        "lockstep", choices=PACES, help="lockstep: the world waits for the command; realtime: it goes by the wall clock"
    )
    rate: float = param(1.0, low=0.01, high=100.0, help="speed of the world in pace realtime")
    late_s: float = param(
        0.02, low=0.0, high=10.0, unit="s", help="an instant that comes so long after it was due is late"
    )
    episodes: int = param(1, low=0, high=1_000_000, help="how many, the file's scenarios in turn; 0: without end")
    seed: int = param(0, low=0, high=2**31 - 1, help="what ranges in the scenario and all noise depend on")
    silent_s: float = param(
        1.0, low=0.1, high=3600.0, unit="s", help="a stack without a command for so long ends the episode (world time)"
    )
    await_stack: bool = param(True, help="begin when the stack has subscribed to all that it takes and advertised")
    transforms: str = param("", help="YAML file to write: where the ego's sensors are, for stacks that need it")
    clock_step_s: float = param(0.01, low=0.0001, high=1.0, unit="s", help="largest step of /clock")


class DriveFailure(MtError):
    """The stack has to answer for the end of an episode."""

    exit_code = ExitCode.FAIL


class SimulatorNode(ManagedNode):
    """Publishes what a world shows and tells, takes the stack's commands; while it is not active, time stands still."""

    def __init__(self) -> None:
        super().__init__("simulator")
        self._given = self.parameters(SimulatorParameters)
        self.endless = not self._given.episodes
        self.begin()

    def open(self) -> None:
        """Make the first world, and open the stack's topics."""
        given = self._given
        if not given.scenario:
            raise UsageError("simulator: no scenario given; add --ros-args -p scenario:=FILE (`mt list scenarios`)")
        self._stack = stack = load_stack(given.stack)
        if "control" not in stack.outputs:
            raise UsageError(
                f"simulator: stack '{stack.name}' says {', '.join(stack.outputs)}, no control: nobody drives"
            )
        scenarios = scenarios_of(given.scenario, given.seed)
        rig = Rig.for_stack(stack)
        if given.transforms:
            dump_transforms(rig.mounts, Path(given.transforms))
        self._simulation = Simulation(scenarios, rig, given.seed, given.episodes, given.silent_s)
        self._topics = frozenset(topics_of_world(stack))
        self._publisher = BundlePublisher(self, topics_of_world(stack), self._topics)
        self._sim_clock = ClockPublisher(self, "/clock", given.clock_step_s)
        self._frames = FramesTopic(self)
        self._diagnostics = self.create_publisher(DiagnosticArray, "mt/diagnostics", qos.STATUS)
        self._pace = self._paced()
        # All that it says is heard, though only commands count: stacks wait for listeners before they say something.
        self._listener = OutputListener(self, stack.outputs, lambda topic: topic, self._pace.inbox, **stack.reading)
        self._meeting = Meeting(self, self._publisher, self._listener, self._topics)
        self._connected = False
        self._opened_s = nan
        self.create_timer(0.001, self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Go on where it stopped."""
        self._opened_s = process_time_s()
        self._pace.resume()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop."""
        self._pace.hold()
        return super().on_deactivate(state)

    def close(self) -> None:
        """Ask nobody any more whether he knows of us."""
        self._meeting.forget()

    def _paced(self) -> SimulationPace:
        given, ways = self._given, (self._sim_clock, self._look, self._go)
        if given.pace == "lockstep":
            return LockstepPace(self._simulation, self._stack, *ways)
        return RealtimePace(self._simulation, given.rate, given.late_s, *ways)

    def _tick(self) -> None:
        if not self.active or self.finished:
            return
        try:
            self._check()
            if self._connected:
                self._pace.tick()
            elif self._awaited():
                self._connected = True
                self._pace.begin()
        except MtError as error:
            self.failure, self.finished = error, True

    def _awaited(self) -> bool:
        """Tell whether the stack is there, and knows of us."""
        if self._given.await_stack and (lacking := self._meeting.lacking()):
            if process_time_s() - self._opened_s > self._stack.ready_timeout_s:
                raise InfrastructureError(
                    f"stack '{self._stack.name}' did not come within {self._stack.ready_timeout_s:g} s: "
                    f"{'; '.join(lacking)}; start it in this domain, or give its own file with -p stack:=FILE"
                )
            return False
        if others := [topic for topic in (*sorted(self._topics), "/clock") if self.count_publishers(topic) > 1]:
            raise IsolationError(
                f"{', '.join(others)}: somebody else publishes that here; end it, or use another ROS_DOMAIN_ID"
            )
        return self._meeting.known()

    def _check(self) -> None:
        if incompatible := [*self._publisher.incompatible, *self._sim_clock.incompatible]:
            raise UsageError(f"incompatible QoS: {incompatible[0]}")
        if self._listener.failure:
            raise InfrastructureError(self._listener.failure)

    def _look(self) -> int:
        """Publish what is seen of the instant that is due; return its stamp."""
        bundle = self._simulation.look()
        self._sim_clock.advance(bundle.stamp_ns)
        self._frames.publish(bundle)
        self._publisher.publish(bundle, self._topics)
        self._tell()
        return bundle.stamp_ns

    def _go(self, command: Control | None, until_s: float) -> None:
        """Let the world go on; where that ends the episode, begin the next one, or end."""
        for hit in self._simulation.step(command, until_s):
            where = f"{hit.name} ({hit.kind}) at its {hit.side}"
            self.get_logger().warning(f"{hit.time_s:.2f} s: the ego hits {where} at {hit.ego_mps:.1f} m/s")
        if not self._simulation.over:
            return
        ended = self._simulation.end()
        self._tell()
        late = (
            f"; {self._pace.late} late instants so far, {self._pace.slipped_s:.2f} s behind" if self._pace.late else ""
        )
        (self.get_logger().error if ended.failed else self.get_logger().info)(f"{ended}{late}")
        if self._simulation.next_episode():
            self._pace.begin()
        else:
            self._end()

    def _end(self) -> None:
        """Have everybody get the last words, and say how it went."""
        rows = self._simulation.ended
        self._publisher.flush(FLUSH_S)
        self._diagnostics.wait_for_all_acked(Duration(seconds=FLUSH_S))
        if failed := [row for row in rows if row.failed]:
            self.failure = DriveFailure(f"{len(failed)} of {len(rows)} episodes failed, the first: {failed[0]}")
        self.finished = True

    def _tell(self) -> None:
        """Say on ``/mt/diagnostics`` how far it is, and what happened."""
        values = self._values()
        level, text = DiagnosticStatus.OK, "driving"
        if over := self._simulation.over:
            failed = self._simulation.ended[-1].failed
            level, text = (DiagnosticStatus.ERROR if failed else DiagnosticStatus.OK), str(self._simulation.ended[-1])
        elif values["unanswered"] or values["late"]:
            level, text = DiagnosticStatus.WARN, "instants without a command, or late ones"
        status = DiagnosticStatus(level=level, name="mt_nodes: simulator", message=text, hardware_id="")
        status.values = [KeyValue(key=k, value=str(v)) for k, v in {**values, "ended": over}.items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)

    def _values(self) -> dict[str, Any]:
        simulation, state = self._simulation, self._simulation.world.state
        return {
            "episode": simulation.number,
            "scenario": simulation.world.scenario.name,
            "time_s": round(state.time_s, 3),
            "speed_mps": round(state.ego.speed_mps, 3),
            "collisions": ", ".join(hit.name for hit in simulation.world.collisions),
            "unanswered": simulation.unanswered,
            "late": self._pace.late,
            "slipped_s": round(self._pace.slipped_s, 3),
        }


def main(args: list[str] | None = None) -> None:
    """Play all episodes; who is interrupted before they are over says so."""
    nodes: list[SimulatorNode] = []

    def make() -> SimulatorNode:
        nodes.append(SimulatorNode())
        return nodes[0]

    run_node(make, args, name="simulator")
    if nodes and not (nodes[0].finished or nodes[0].endless):
        sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    main()
