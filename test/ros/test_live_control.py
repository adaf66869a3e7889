# SPDX-License-Identifier: Apache-2.0
"""A run beside a live stack is told what to do: services, parameters, life cycle, and clocks of other computers."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters, SetParametersAtomically
from rclpy.parameter import Parameter, parameter_value_to_python
from ros_support import LIMIT_S, Peer, asked, until
from std_msgs.msg import String
from std_srvs.srv import Trigger

from mt_nodes.nodes.clock_echo import ClockEcho, ClockPings
from mt_nodes.nodes.live_control import NAME, SERVICES, LiveControl, parameters_of
from mt_nodes.nodes.run_diagnostics import run_level
from mt_nodes.nodes.spinning_context import SpinningContext
from mt_nodes.runs.live.commands import Commands, RunState
from mt_nodes.runs.live.config import PARTS, LiveConfig

KNOWN = ("fog", "rain", "noise")


CALLED = {
    **dict.fromkeys(SERVICES, Trigger),
    "get_state": GetState,
    "change_state": ChangeState,
    "get_parameters": GetParameters,
    "set_parameters": SetParameters,
    "set_parameters_atomically": SetParametersAtomically,
    "describe_parameters": DescribeParameters,
}


class Run:
    """A control node and somebody who calls it, in one domain.

    The caller is there first, and has met the node before any test asks something.
    """

    def __init__(self, ending: ExitStack, domain: int, config: LiveConfig) -> None:
        self.commands = Commands(config, KNOWN)
        caller = Peer(ending, domain, "caller").node
        self._clients = {name: caller.create_client(kind, f"/{NAME}/{name}") for name, kind in CALLED.items()}
        ros = SpinningContext(domain)
        ending.callback(ros.close)
        self.node: LiveControl = ros.add(lambda *, context: LiveControl(self.commands, context=context))
        asked(self._clients["get_state"], GetState.Request())

    def call(self, name: str, request: Any) -> Any:
        assert self._clients[name].wait_for_service(LIMIT_S)
        answer = self._clients[name].call_async(request)
        until(answer.done)
        return answer.result()

    def do(self, verb: str) -> tuple[bool, str]:
        response = self.call(verb, Trigger.Request())
        return response.success, response.message

    def set(self, name: str, value: Any) -> tuple[bool, str]:
        request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        [result] = self.call("set_parameters", request).results
        return result.successful, result.reason

    def get(self, *names: str) -> list[Any]:
        values = self.call("get_parameters", GetParameters.Request(names=names)).values
        return [parameter_value_to_python(value) for value in values]

    def cycle(self, transition: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=transition))
        return bool(self.call("change_state", request).success)

    @property
    def cycle_state(self) -> str:
        return str(self.call("get_state", GetState.Request()).current_state.label)

    @property
    def state(self) -> RunState:
        return self.commands.wishes.state


@pytest.fixture
def begun(domains: tuple[int, ...], ending: ExitStack) -> Iterator[Callable[..., Run]]:
    yield lambda **given: Run(ending, domains[0], LiveConfig(**given))


def test_it_begins_at_once_or_when_told(begun: Callable[..., Run]) -> None:
    assert (begun().cycle_state, begun().state) == ("active", RunState.RUNNING)


def test_start_pause_stop_and_the_life_cycle_say_the_same(begun: Callable[..., Run]) -> None:
    run = begun(autostart=False)
    assert (run.cycle_state, run.state) == ("inactive", RunState.WAITING)
    assert run.do("start") == (True, "testing")
    assert (run.cycle_state, run.state) == ("active", RunState.RUNNING)
    assert run.do("start") == (True, "testing")
    ok, text = run.do("pause")
    assert ok and text.startswith("paused: an instance that remembers gets the source")
    assert (run.cycle_state, run.state) == ("inactive", RunState.PAUSED)
    assert run.cycle(Transition.TRANSITION_ACTIVATE) and run.state is RunState.RUNNING
    assert run.cycle(Transition.TRANSITION_DEACTIVATE) and run.state is RunState.PAUSED
    assert run.cycle(Transition.TRANSITION_CLEANUP)
    assert (run.cycle_state, run.state) == ("unconfigured", RunState.PAUSED)
    assert run.do("start") == (True, "testing")
    assert (run.cycle_state, run.state) == ("active", RunState.RUNNING)
    ok, text = run.do("stop")
    assert ok and text.startswith("ending")
    assert (run.cycle_state, run.state) == ("finalized", RunState.STOPPING)
    assert run.do("start") == (False, "the run is ending; begin another with `mt live --config FILE`")
    assert run.do("stop")[0]
    assert run.state is RunState.STOPPING


def test_shutting_down_ends_the_run(begun: Callable[..., Run]) -> None:
    run = begun()
    assert run.cycle(Transition.TRANSITION_ACTIVE_SHUTDOWN)
    assert run.state is RunState.STOPPING


def test_a_run_that_ends_by_itself_is_not_activated_again(begun: Callable[..., Run]) -> None:
    run = begun(autostart=False)
    run.commands.stop()
    assert not run.cycle(Transition.TRANSITION_ACTIVATE)
    assert run.cycle_state == "inactive"


def test_the_status_tells_what_is_wished_and_what_the_driver_told(begun: Callable[..., Run]) -> None:
    run = begun()
    run.commands.tell({"relation": "fog", "outcomes": {"HOLDS": 3}})
    ok, text = run.do("status")
    told = json.loads(text)
    assert ok and told["state"] == "running" and told["relations"] == list(KNOWN)
    assert told["relation"] == "fog" and told["outcomes"] == {"HOLDS": 3} and told["clocks"] == {}
    assert told["segments"]["test_bundles"] == 30 and told["limits"] == {
        "rate_hz": 0.0,
        "duty": 1.0,
        "duty_ms_per_s": 0.0,
    }


def test_relations_are_chosen_by_a_parameter(begun: Callable[..., Run]) -> None:
    run = begun()
    assert run.get("relations") == [list(KNOWN)]
    assert run.set("relations", ["rain", "fog"])[0] and run.commands.wishes.relations == ("rain", "fog")
    assert run.set("relations", "noise, rain")[0] and run.commands.wishes.relations == ("noise", "rain")
    ok, why = run.set("relations", ["fogg"])
    assert not ok and why.startswith("relation 'fogg' was not loaded; did you mean 'fog'?")
    assert not run.set("relations", [])[0]
    assert run.commands.wishes.relations == ("noise", "rain") and run.get("relations") == ["noise, rain"]


def test_parameters_change_where_that_is_safe(begun: Callable[..., Run]) -> None:
    run = begun()
    assert run.set("segments.test_bundles", 7)[0] and run.commands.wishes.segments.test_bundles == 7
    assert run.set("limits.rate_hz", 5)[0] and run.commands.wishes.limits.rate_hz == 5.0
    assert run.get("segments.test_bundles", "limits.rate_hz") == [7, 5]
    assert json.loads(run.do("status")[1])["limits"]["rate_hz"] == 5.0


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("seed", 5, "seed holds for the whole run"),
        ("mode", "twin", "mode holds for the whole run"),
        ("stack", "x", "stack holds for the whole run"),
        ("use_sim_time", True, "use_sim_time holds for the whole run"),
        ("segments.test_bundles", "many", "segments.test_bundles: got str 'many', expected int"),
        ("segments.swap_arms", True, "segments.swap_arms: roles change in mode twin only; this run's is shadow"),
        ("limits.duty", 2.0, "limits.duty"),
        ("segments.settle_bundles", 0, "segments.settle_bundles"),
    ],
)
def test_what_is_not_safe_is_refused_with_the_reason(shared: Run, name: str, value: Any, why: str) -> None:
    before = shared.commands.wishes
    ok, said = shared.set(name, value)
    assert not ok and why in said
    assert shared.commands.wishes == before


def test_several_changes_at_once_are_refused_before_any_is_made(shared: Run) -> None:
    before = shared.commands.wishes
    rows = [Parameter("segments.test_bundles", value=8), Parameter("seed", value=9)]
    request = SetParametersAtomically.Request(parameters=[row.to_parameter_msg() for row in rows])
    result = shared.call("set_parameters_atomically", request).result
    assert not result.successful and "one at a time" in result.reason
    assert shared.commands.wishes == before


def test_every_field_of_the_configuration_is_a_parameter_with_help_and_range(shared: Run) -> None:
    rows = {name: value for name, _, value in parameters_of(shared.commands)}
    whole = {f.name for f in dataclasses.fields(LiveConfig)} - set(PARTS)
    parts = {f"{part}.{key}" for part, keys in PARTS.items() for key in keys}
    assert set(rows) == whole | parts
    names = ["segments.settle_bundles", "limits.duty", "seed"]
    request = DescribeParameters.Request(names=names)
    told = shared.call("describe_parameters", request).descriptors
    assert [d.integer_range[0].to_value for d in told if d.integer_range] == [10_000, 2**31 - 1]
    assert told[1].floating_point_range[0].to_value == 1.0
    assert all(d.description for d in told)


@pytest.fixture(scope="module")
def shared(domains: tuple[int, ...]) -> Iterator[Run]:
    """A run that no test of it changes."""
    with ExitStack() as ending:
        yield Run(ending, domains[1], LiveConfig())


# --- from the command line's client, a process of its own


def told_by_the_client(domain: int, *words: str) -> Any:
    command = [sys.executable, "-m", "mt_nodes.nodes.live_client", *words]
    env = {**os.environ, "ROS_DOMAIN_ID": str(domain)}
    return json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)


def test_the_client_commands_a_run(begun: Callable[..., Run], domains: tuple[int, ...]) -> None:
    run = begun()
    assert told_by_the_client(domains[0], "relations", "rain")["ok"]
    assert run.commands.wishes.relations == ("rain",)
    assert told_by_the_client(domains[0], "set", "limits.rate_hz", "2.5")["text"] == "limits.rate_hz: 2.5"
    assert json.loads(told_by_the_client(domains[0], "status")["text"])["limits"]["rate_hz"] == 2.5


# --- clocks


def test_a_clock_that_is_off_is_told_with_its_bound_and_what_to_do(
    begun: Callable[..., Run], domains: tuple[int, ...], ending: ExitStack
) -> None:
    run = begun()
    for name, ahead_ns in (("nuc", 0), ("orin", 5 * 10**9)):
        ros = SpinningContext(domains[0])
        ending.callback(ros.close)
        ros.add(ClockEcho, name, lambda ahead_ns=ahead_ns: time.time_ns() + ahead_ns)

    def both_told() -> bool:
        run.node.pings.ping()
        return set(run.node.pings.offsets()) == {"nuc", "orin"}

    until(both_told)
    clocks = json.loads(run.do("status")[1])["clocks"]
    for name, ahead_ms in (("nuc", 0.0), ("orin", 5000.0)):
        assert abs(clocks[name]["offset_ms"] - ahead_ms) <= clocks[name]["bound_ms"] + 0.001
    assert "warning" not in clocks["nuc"] and "chrony" in clocks["orin"]["warning"]


def test_answers_to_another_suite_are_not_ours(shared: Run) -> None:
    pings = ClockPings(shared.node)
    about = {"computer": "nuc", "sent_ns": 1, "received_ns": 2, "answered_ns": 2}
    pings._answered(String(data=json.dumps({**about, "from": "another"})))
    assert pings.offsets() == {}
    pings._answered(String(data=json.dumps({**about, "from": pings._us})))
    assert set(pings.offsets()) == {"nuc"}


def test_the_services_are_those_of_the_table(shared: Run) -> None:
    until(lambda: all(name in dict(shared.node.get_service_names_and_types()) for name in served()))


def served() -> list[str]:
    return [f"/{NAME}/{name}" for name in SERVICES]


def test_what_is_to_be_done_is_a_warning_in_the_diagnostics() -> None:
    assert run_level({"HOLDS": 3}, [], 3) == (DiagnosticStatus.OK, "judging")
    assert run_level({"HOLDS": 3}, [], 0) == (DiagnosticStatus.STALE, "nothing decided yet"), "of control and sham"
    assert run_level({"HOLDS": 3}, ["use chrony"], 3) == (DiagnosticStatus.WARN, "use chrony")
    assert run_level({"UNPAIRED_BOTH": 1}, ["x"], 0) == (DiagnosticStatus.WARN, "pairs stay unpaired; x")
    assert run_level({"ERROR": 1}, ["x"], 3)[0] == DiagnosticStatus.ERROR
