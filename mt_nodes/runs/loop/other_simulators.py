# SPDX-License-Identifier: Apache-2.0
"""Other simulators by name, with their settings files: what ``mt scenario --simulator`` drives in."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import MtError, UsageError
from mt_nodes.base.params import build
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.world.drive.external import Origin, Simulator

if TYPE_CHECKING:
    from mt_nodes.runs.loop.scenario_request import ScenarioRequest
    from mt_nodes.stacks.stack import Stack

SIMULATORS = ("carla", "awsim")
#: What AWSIM's vehicle is driven by (its list of topics).
_AWSIM_CONTROL = ("/control/command/control_cmd", "autoware_control_msgs/msg/Control")


def settings_given(request: ScenarioRequest) -> dict[str, Any]:
    """Return the settings of a request's simulator, as they are in its file; empty without one.

    Raises UsageError: the file cannot be read, or there is one without a simulator.
    """
    if request.simulator_settings and not request.simulator:
        raise UsageError(f"--simulator-settings {request.simulator_settings}: expected --simulator, too")
    return read_mapping(Path(request.simulator_settings)) if request.simulator_settings else {}


def check_simulator(request: ScenarioRequest, stack: Stack) -> None:
    """Refuse what another simulator cannot do. Raises UsageError: saying what to type instead."""
    name, given = request.simulator, settings_given(request)
    if not name:
        return
    if name not in SIMULATORS:
        raise UsageError(f"--simulator: got '{name}', expected {', '.join(SIMULATORS)}, or none for the own world")
    _settings(name, given)
    if request.mode == "twin":
        raise UsageError(f"--mode twin: --simulator {name} has one ego at a time; use --mode two_pass")
    if name == "awsim":
        control = stack.outputs["control"]
        if (control.topic, control.type) != _AWSIM_CONTROL:
            topic, kind = _AWSIM_CONTROL
            raise UsageError(
                f"--simulator awsim: its vehicle takes its commands from {topic} ({kind}) itself, and stack "
                f"'{stack.name}' publishes {control.topic} ({control.type})"
            )
        if request.transport != "ros" or "source" not in stack.domain:
            raise UsageError(
                "--simulator awsim: expected --transport ros and a stack with domain: {source: N}, where N is the "
                "ROS domain in which AWSIM listens"
            )


def open_simulator(request: ScenarioRequest, ending: ExitStack) -> Simulator | None:
    """Connect to the simulator of a request and put its end on the stack; None for the own world.

    Raises UsageError: its library is missing. InfrastructureError: it does not answer.
    """
    if not request.simulator:
        return None
    settings = _settings(request.simulator, settings_given(request))
    found: Any
    if request.simulator == "carla":
        from mt_nodes.world.drive.carla_simulator import CarlaSimulator

        found = CarlaSimulator(settings)
    else:
        from mt_nodes.world.drive.traffic_simulator import TrafficSimulator

        found = TrafficSimulator(settings)
    ending.callback(_leave, found)
    opened: Simulator = found
    return opened


def _leave(simulator: Any) -> None:
    """Remove what an episode that broke off left there, as far as the simulator still answers, and disconnect."""
    with suppress(MtError):
        simulator.end()
    with suppress(MtError):
        simulator.close()


def _settings(name: str, given: Mapping[str, Any]) -> Any:
    """Return a simulator's settings. Raises UsageError: one is unknown or wrong."""
    from mt_nodes.world.drive.carla_simulator import CarlaSettings
    from mt_nodes.world.drive.traffic_simulator import TrafficSettings

    kinds: dict[str, Any] = {"carla": CarlaSettings, "awsim": TrafficSettings}
    where = "simulator settings"
    origin = {"origin": build(Origin, given["origin"], f"{where}.origin")} if "origin" in given else {}
    settings = build(kinds[name], {**given, **origin}, where)
    if not 0.0 < settings.step_s <= 0.1:
        raise UsageError(f"{where}.step_s: got {settings.step_s:g}, expected more than 0 and at most 0.1 s")
    return settings
