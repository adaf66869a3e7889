# SPDX-License-Identifier: Apache-2.0
"""The one place that knows which processes and domains a run needs."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mt_nodes.base import plugins
from mt_nodes.base.environment import ros_environment, suite_environment, user_domain, user_environment, without_secrets
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import Param, param
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.processes import Process, filled
from mt_nodes.data.datasets.dataset_name import RECORDING_HELP
from mt_nodes.relations.default_relations import DEFAULT, RELATION_WORDS

if TYPE_CHECKING:
    from mt_nodes.stacks.stack import Stack

#: Words of ``--explore-by``: where most new kinds are expected, or by chance.
NEW_KINDS, CHANCE = "new_kinds", "chance"
EXPLORE_BY = (NEW_KINDS, CHANCE)
MODES = ("twin", "alternate", "two_pass")
PACES = ("lockstep", "realtime")
TRANSPORTS = ("ros", "inprocess")
#: The paper drew 1,000; every draw of every frame is kept in memory as a pair.
MOST_DRAWS = 100_000
#: What was found is kept in memory.
MOST_EXPLORED = 1_000_000
#: What writing the summary and the report of an interrupted run may take.
REPORT_S = 20.0
#: The node that carries out a run beside a live stack.
LIVE_SUITE = "live_suite"
#: The node that carries out a run which only watches.
WATCH_SUITE = "watch_suite"


#: Copy of a signed plan in the results directory of a run by it.
PLAN_FILE = "plan.json"


@dataclass(frozen=True)
class ReplayRequest(PlainData):
    """What the user asked of ``mt replay``; everything a run depends on, kept in ``run.json``."""

    bags: tuple[str, ...] = field(metadata={"param": Param(help=RECORDING_HELP)})
    relations: tuple[str, ...] = param(DEFAULT, help=RELATION_WORDS)
    stack: str = param("reference_detector", help="shipped stack, or .yaml file")
    stack_settings: Mapping[str, Any] = param(
        {}, help="override a setting of the stack file, such as scores.detections.high=0.7 or deadline_s=30"
    )
    mode: str = param("twin", help=f"how the two arms share instances of the stack: {', '.join(MODES)}")
    pace: str = param("lockstep", help=f"wait for each answer, or play in real time: {', '.join(PACES)}")
    transport: str = param(
        "ros", help=f"over ROS topics, or by calling a Python stack directly: {', '.join(TRANSPORTS)}"
    )
    limit: int | None = param(None, low=1, help="use at most N bundles per episode")
    seed: int = param(0, help="seed of all random draws")
    faults: tuple[str, ...] = param((), help="plant a fault in a reference stack, see `mt list faults`")
    topics: Mapping[str, str] = param(
        {}, help="topic for a role, such as lidar=/points, where the bag has several; once for each sensor"
    )
    transforms: str = param("", help="YAML file with transforms that the bag lacks")
    qos: str = param("", help="YAML file with QoS profiles by topic, in rosbag2's format for overrides")
    draws: int = param(1, low=1, high=MOST_DRAWS, help="follow-ups per relation and bundle")
    rate: float = param(1.0, help="speed of the realtime pace")
    explore: int | None = param(
        None, low=1, high=MOST_EXPLORED, help="judge only N pairs, each chosen by what those before have found"
    )
    explore_by: str = param(
        NEW_KINDS, help=f"choose where most new kinds of violation are expected, or evenly: {', '.join(EXPLORE_BY)}"
    )
    plugins: tuple[str, ...] = param((), help="directory with your own plugins")
    waivers: str = param("", help="YAML file with known violations that are accepted for now")
    plan: str = param("", help="signed plan of `mt evidence plan`: the run takes all settings from it")
    cases: str = param("", help="YAML file of cases from `mt rules match --plan`, in place of relations")
    only: str = param("", help="the one pair to judge again, of the run in recorded")
    recorded: str = param("", help="results directory whose draws are used again")
    first_episode: int = param(0, low=0, help="number of the first bag's episode")
    report: bool = param(True, help="make tables and report at the end")
    most_evidence: int | None = param(
        None, low=0, help="keep the evidence of at most N violated pairs of each relation (default: of all)"
    )
    from_evidence: bool = param(False, help="the bag is the evidence of the one pair")
    shrunk: str = param("", help="reduced input of the one pair, from `mt shrink`")
    first_pairs: tuple[str, ...] = param((), help="pairs that are judged before all others")
    only_first: bool = param(False, help="judge only these, with control and sham on their bundles")


@dataclass(frozen=True)
class ArmPlan:
    """One arm: its name, its ROS domain (None: a free one is leased), and the prefix of its topics when remapped."""

    name: str
    domain: int | None
    prefix: str = ""

    def topic(self, name: str) -> str:
        """Return a topic's name in this arm."""
        return self.prefix + name


@dataclass(frozen=True)
class NodePlan:
    """A node that runs alone: its name, which is its module's too, its ROS domain, its command, parameters, remaps."""

    name: str
    domain: int
    argv: tuple[str, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remappings: tuple[tuple[str, str], ...] = ()


class ReplayedTopic(NamedTuple):
    """How a topic of the bag reaches a stack: topic and type there, and whether it is latched (transient local)."""

    topic: str
    type: str
    latched: bool = False


def check_request(request: ReplayRequest, stack: Stack) -> None:
    """Refuse what cannot run. Raises UsageError: saying what to type instead."""
    for name, value, known in (
        ("--mode", request.mode, MODES),
        ("--pace", request.pace, PACES),
        ("--transport", request.transport, TRANSPORTS),
    ):
        if value not in known:
            hint = "; shadow needs a live stack" if value == "shadow" else suggest(value, known, " ").rstrip("; ")
            raise UsageError(f"{name}: got '{value}', expected {', '.join(known)}{hint}")
    from mt_nodes.stacks.stack import refuse_world_inputs  # the command line is declared without it

    refuse_world_inputs(stack)
    if request.mode == "alternate" and not stack.stateless:
        raise UsageError(f"--mode alternate: stack '{stack.name}' remembers (stateless: false); use twin or two_pass")
    if request.transport == "inprocess" and not stack.callable:
        raise UsageError(f"--transport inprocess: stack '{stack.name}' is not a Python callable; use --transport ros")
    if stack.match == "arrival":
        raise UsageError(
            f"stack '{stack.name}' has match: arrival, which is for `mt live`; a replay needs stamp or order"
        )
    if request.pace == "realtime" and (request.transport == "inprocess" or request.mode != "twin"):
        raise UsageError("--pace realtime: needs --transport ros and --mode twin")
    if stack.external and (request.mode == "two_pass" or not stack.stateless):
        raise UsageError(
            f"stack '{stack.name}' is external: it cannot be restarted, so only a stateless one can be replayed"
        )
    if request.mode == "twin" and stack.isolation == "domain" and len({*stack.domain.values()}) == 1:
        raise UsageError(
            f"--mode twin: stack '{stack.name}' has domain: {stack.domain}, expected a different one for followup"
        )
    if not 0 < request.rate < math.inf:
        raise UsageError(f"--rate: got {request.rate:g}, expected more than 0 and finite")
    if not 1 <= request.draws <= MOST_DRAWS:
        raise UsageError(f"--draws: got {request.draws}, expected 1 to {MOST_DRAWS:,}")
    if request.limit is not None and request.limit < 1:
        raise UsageError(f"--limit: got {request.limit}, expected at least 1")


class WithMode(Protocol):
    """What must be known of a request to tell its arms."""

    @property
    def mode(self) -> str:
        """How arms are made of instances of the stack."""


def arm_plans(request: WithMode, stack: Stack) -> tuple[ArmPlan, ...]:
    """Return the arms of a run: two in ``twin``, one (named source) otherwise."""
    names = ("source", "followup") if request.mode == "twin" else ("source",)
    if stack.isolation == "remap":
        shared = stack.domain.get("source")
        return tuple(ArmPlan(n, shared, f"/mt/{n}") for n in names)
    return tuple(ArmPlan(n, stack.domain.get(n)) for n in names)


def stack_process(
    stack: Stack, arm: ArmPlan, domain: int, out: Path, base_env: Mapping[str, str], *, report_errors: bool = False
) -> Process | None:
    """Return the process of the stack in one arm; None when somebody else starts it.

    ``report_errors``: whether a callable that raises an exception goes on, and reports it.
    """
    if stack.external:
        return None
    log = out / f"stack_{arm.name}.log"
    name = f"stack '{stack.name}' ({arm.name} arm)"
    if stack.callable:
        argv = (*_hosted(out), "--prefix", arm.prefix, *(["--report-errors"] if report_errors else []))
        env = {**ros_environment(without_secrets(base_env), domain), **stack.env}
        return Process(name, argv, env, log, stack.limits)
    remap = [word for topic in _topics(stack) for word in ("-r", f"{topic}:={arm.topic(topic)}")] if arm.prefix else []
    values = {"arm": [arm.name], "domain": [str(domain)], "remap": remap}
    env = {**user_environment(base_env), "ROS_DOMAIN_ID": str(domain), **stack.env}
    return Process(name, filled(stack.command, values), env, log, stack.limits)


def suite_process(out: Path, base_env: Mapping[str, str], node: str = "suite") -> Process:
    """Return the process that carries out the run of a directory; beside a live stack that is ``LIVE_SUITE``.

    What it prints goes to the console log.
    """
    argv = (*_node(node), "--run", str(out))
    return Process(node.replace("_", " "), argv, suite_environment(base_env), out / "console.log")


def inline_process(config: str, arm: bool, duration: str, out: str, base_env: Mapping[str, str]) -> Process:
    """Return the process of ``mt inline``, which starts relays and mutator itself."""
    where = ("--out", out) if out else ()
    words = ("--config", config, *(["--arm"] if arm else []), "--duration", duration, *where)
    argv = (sys.executable, "-m", "mt_nodes.cli.main", "inline", *words)
    return Process("mt inline", argv, dict(base_env), Path(out) / "console.log")


def simulator_processes(
    parameters: Mapping[str, str], stack: Stack, out: Path, base_env: Mapping[str, str]
) -> tuple[Process, Process | None]:
    """Return the process of the simulator node, and that of the stack in its domain (None for an external one).

    ``parameters``: of the node, as text; empty ones are left out. ``out``: where stack and transforms were saved.
    """
    domain = user_domain(base_env)
    words = [word for name, text in parameters.items() if text for word in ("-p", f"{name}:={text}")]
    argv = (*_node("simulator"), "--ros-args", *words)
    simulator = Process("simulator", argv, ros_environment(base_env, domain), out / "console.log")
    return simulator, stack_process(stack, ArmPlan("source", domain), domain, out, base_env)


def live_client(
    domain: int, words: Sequence[str], base_env: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return command and environment of the process that tells the run with this control domain what to do."""
    return (*_node("live_client"), *words), ros_environment(base_env, domain)


def suite_stop_s(stack: Stack) -> float:
    """Return how long an interrupted suite may take: two stacks end, each after three signals at most; the report."""
    return 2 * 3 * stack.stop_timeout_s + REPORT_S


def demo_process(out: str, seed: str, base_env: Mapping[str, str]) -> Process:
    """Return the process of ``mt demo``, which starts the suite twice, one run after the other."""
    where = ("--out", out) if out else ()
    argv = (sys.executable, "-m", "mt_nodes.cli.main", "demo", "--seed", seed, *where)
    return Process("mt demo", argv, dict(base_env), Path(out) / "console.log")


def realtime_nodes(
    request: ReplayRequest, stack: Stack, topics: Mapping[str, str], out: Path, domains: tuple[int, int]
) -> tuple[NodePlan, ...]:
    """Return the nodes that together test a stack at the pace of the recording, the replayer last.

    Replayer, mutator, monitor and one instance of the stack are in the first domain, as beside a live stack; the
    other instance is in the second. The monitor says ``/mt/verdicts`` in the first.
    Raises UsageError: nodes that run alone cannot do that.

    Args:
        request: what is replayed; one bag and one relation.
        stack: what is under test; a callable.
        topics: topic of the bag -> topic in the first domain.
        out: where stack and transforms were saved.
        domains: of the source arm and of the follow-up arm.
    """
    _check_realtime_nodes(request, stack)
    source, followup = domains
    inputs, files = ",".join(stack.sensor_topics), {"transforms": str(out / "transforms.yaml")}
    relation = request.relations[0]
    mutator = {"relation": relation, "input_topic": inputs, "output_topic": inputs, "sync_s": stack.sync_s, **files}
    monitor = {"relation": relation, "stack": str(out / "stack.yaml"), "followup_domain": followup, **files}
    recorded = {name: topic for topic, name in topics.items()}
    chosen = {
        f"{role}_topic": ",".join(recorded[name] for name in stack.topics.get(role, ()) if name in recorded)
        for role in ("lidar", "camera", "radar")
    }
    awaited = {"await_subscribers": 2}  # the stack and the mutator
    replayer = {"bag": request.bags[0], "rate": request.rate, "limit": request.limit or 0, **chosen, **awaited}
    renamed = tuple((old, new) for old, new in topics.items() if old != new)
    return (
        NodePlan("callable_stack", source, _hosted(out)),
        NodePlan("callable_stack", followup, _hosted(out)),
        NodePlan("monitor", source, _node("monitor"), monitor),
        NodePlan("mutator", source, _node("mutator"), {**mutator, "seed": request.seed, "output_domain": followup}),
        NodePlan("replayer", source, _node("replayer"), replayer, renamed),
    )


def _check_realtime_nodes(request: ReplayRequest, stack: Stack) -> None:
    for name, given in (("bag", request.bags), ("relations", request.relations)):
        if len(given) != 1:
            raise UsageError(f"{name}: got {len(given)} ({', '.join(given)}), expected one: these nodes work on one")
    if not stack.callable:
        raise UsageError(
            f"stack '{stack.name}': these nodes host a Python callable; start another stack yourself "
            "in both domains, and `ros2 run mt_nodes replayer`, `mutator` and `monitor` beside it"
        )


def _node(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"mt_nodes.nodes.{name}")


def _hosted(out: Path) -> tuple[str, ...]:
    more = (word for directory in plugins.directories() for word in ("--plugins", str(directory)))
    files = ("--stack", str(out / "stack.yaml"), "--transforms", str(out / "transforms.yaml"))
    return (*_node("callable_stack"), *files, *more)


def _topics(stack: Stack) -> list[str]:
    return [*stack.sensor_topics, *(row.topic for row in stack.published), "/clock", "/tf", "/tf_static"]
