# SPDX-License-Identifier: Apache-2.0
"""What is asked of ``mt scenario``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import Param, param
from mt_nodes.base.plain_data import PlainData
from mt_nodes.engine.plan import TRANSPORTS
from mt_nodes.relations.default_relations import LOOP_DEFAULT, RELATION_WORDS

if TYPE_CHECKING:
    from mt_nodes.stacks.stack import Stack

MODES = ("two_pass", "twin")
#: As many episodes a relation needs to be decided; see ``min_decided`` of relations.
USUAL_EPISODES = 20
MOST_EPISODES = 10_000


@dataclass(frozen=True)
class ScenarioRequest(PlainData):
    """Everything a run in the closed loop depends on, kept in ``run.json``."""

    scenarios: tuple[str, ...] = field(metadata={"param": Param(help="shipped scenario, or .scenario or .xosc file")})
    relations: tuple[str, ...] = param(LOOP_DEFAULT, help=f"{RELATION_WORDS}; rules:germany: those of a region's rules")
    stack: str = param("reference_planner", help="shipped stack, .yaml file, or a driver's .py file")
    mode: str = param("two_pass", help=f"one instance of the stack, or two at once: {', '.join(MODES)}")
    transport: str = param("", help=f"{', '.join(TRANSPORTS)} (default inprocess for a Python callable, else ros)")
    seed: int = param(0, help="seed of all random draws")
    repeat: int = param(
        0, low=0, high=MOST_EPISODES, help=f"episodes per scenario (default: up to {USUAL_EPISODES} in all)"
    )
    jitter: float = param(
        1.0,
        low=0.0,
        high=10.0,
        help="how much episodes of a scenario differ in places, speeds and times; 0: not at all",
    )
    faults: tuple[str, ...] = param((), help="plant a fault in a reference stack, see `mt list faults`")
    parameters: Mapping[str, str] = param({}, help="set a parameter of the scenario files")
    strict: bool = param(False, help="refuse errors in scenario files instead of correcting them")
    plugins: tuple[str, ...] = param((), help="directory with your own plugins")
    simulator: str = param("", help="drive in another simulator: carla or awsim (default: the own world)")
    simulator_settings: str = param("", help="YAML file with its address, map, origin and models")
    waivers: str = param("", help="YAML file with known violations that are accepted for now")
    claim_followups: bool = param(False, help="judge the claims of scripts on drives of follow-ups, too")
    only: str = param("", help="the one pair to drive and judge again, of the run in recorded")
    recorded: str = param("", help="results directory whose worlds are driven again")


def checked_request(request: ScenarioRequest, stack: Stack) -> ScenarioRequest:
    """Refuse what cannot run; return the request with what it leaves to us. Raises UsageError."""
    if not request.transport:
        # Hosted as a node it answers the same, and the loop waits for topics most of the time.
        request = replace(request, transport="inprocess" if stack.callable else "ros")
    if not request.scenarios:
        raise UsageError("got no scenario; type `mt scenario FILE`, `mt list scenarios` shows those that ship")
    for name, value, known in (("--mode", request.mode, MODES), ("--transport", request.transport, TRANSPORTS)):
        if value not in known:
            raise UsageError(f"{name}: got '{value}', expected {', '.join(known)}")
    if not 0 <= request.repeat <= MOST_EPISODES:
        raise UsageError(f"--repeat: got {request.repeat}, expected 0 to {MOST_EPISODES:,}")
    if not 0.0 <= request.jitter <= 10.0:
        raise UsageError(f"--jitter: got {request.jitter:g}, expected 0 to 10")
    if request.transport == "inprocess" and not stack.callable:
        raise UsageError(f"--transport inprocess: stack '{stack.name}' is not a Python callable; use --transport ros")
    refuse_undrivable(stack, "nothing moves in a closed loop", "episode")
    return request


def refuse_undrivable(stack: Stack, without_control: str, each: str) -> None:
    """Refuse a stack that cannot drive in a world, anew each time. Raises UsageError.

    ``without_control``: what is wrong with one that commands nothing. ``each``: what it is started anew for.
    """
    if "control" not in stack.answers:
        raise UsageError(f"stack '{stack.name}' answers {', '.join(stack.answers)}, no control: {without_control}")
    if not (stack.forgets or stack.stateless):
        raise UsageError(
            f"stack '{stack.name}' is external and cannot be started anew for each {each}; let reset: in its file "
            "name the service that makes it forget"
        )
    if stack.needs:
        raise UsageError(f"stack '{stack.name}' needs {', '.join(stack.needs)}, which worlds do not publish")
    if stack.match == "arrival":
        raise UsageError(f"stack '{stack.name}' has match: arrival, which is for `mt live`; expected stamp or order")
