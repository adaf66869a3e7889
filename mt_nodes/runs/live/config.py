# SPDX-License-Identifier: Apache-2.0
"""What ``mt live --config FILE`` is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, param
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.safety_settings import Actuators, BoxSettings, Gpu, Guard, LiveCaps
from mt_nodes.relations.default_relations import DEFAULT, RELATION_WORDS
from mt_nodes.stacks.stack import Stack, refuse_world_inputs

#: mode -> the arms in which it has instances of ours; the other arm of ``shadow`` is the live stack.
OWN_ARMS = {"shadow": ("followup",), "twin": ("source", "followup"), "alternate": ("source",)}
MODES = tuple(OWN_ARMS)
#: A ROS domain that is not given: the one that this process is in, or a free one.
NOT_GIVEN = -1
#: So many processes that make follow-ups as the computer has cores for. Some are left for the suite's own threads and
#: our instance; each process takes memory.
AUTO, OWN_CORES, MOST_WORKERS = -1, 2, 8
#: What takes less processor time (s) is made by the suite's own thread: to hand it over and back takes some ms, too.
LEAST_S = 0.03


@dataclass(frozen=True)
class Segments:
    """How the input is shared by relations: each settles, is tested for a while, and makes place for the next."""

    settle_bundles: int = param(5, low=1, high=10_000, help="so many in a row must agree before a relation is tested")
    test_bundles: int = param(30, low=1, high=1_000_000, help="so many are tested before the next relation's turn")
    restart_after_bundles: int = param(
        50, low=1, high=1_000_000, help="without agreement for so many our instances are restarted"
    )
    give_up_after_restarts: int = param(
        2, low=0, high=100, help="without agreement after so many restarts the next relation's turn comes"
    )
    control_horizon_s: float = param(
        2.0,
        low=0.05,
        high=3600.0,
        unit="s",
        help="commands of a stack that remembers are judged for so long after the arms agreed, then it settles anew",
    )
    swap_arms: bool = param(False, help="twin: the instances change roles with every segment")


@dataclass(frozen=True)
class Limits:
    """How much of the input may be tested; what is beyond is SKIPPED."""

    rate_hz: float = param(0.0, low=0.0, high=1000.0, unit="Hz", help="follow-ups a second at most; 0: no limit")
    duty: float = param(1.0, low=0.0, high=1.0, help="share of the time that may be spent in tests")
    duty_ms_per_s: float = param(
        0.0,
        low=0.0,
        high=64_000.0,
        unit="ms/s",
        help="processor time of all our processes; a test waits until no more was taken; 0: no limit",
    )


def _part(cls: type) -> Callable[[Any, str], Any]:
    def convert(value: Any, where: str) -> Any:
        return value if isinstance(value, cls) else build(cls, value, where)

    return convert


@dataclass(frozen=True)
class LiveConfig(PlainData):
    """One configuration file."""

    stack: str = param("reference_detector", help="what is under test: a shipped stack or a .yaml file")
    mode: str = param(
        "shadow",
        choices=MODES,
        help="shadow: the live stack and an instance of ours; twin: two of ours; alternate: one of ours",
    )
    relations: tuple[str, ...] = param(DEFAULT, help=f"{RELATION_WORDS}; in the order of their turns")
    seed: int = param(0, low=0, high=2**31 - 1, help="what every draw depends on")
    faults: tuple[str, ...] = param((), help="plant a fault in our instances of a reference stack")
    live_domain: int = param(
        NOT_GIVEN, low=NOT_GIVEN, high=232, help="ROS domain of the live system; -1: ROS_DOMAIN_ID. Only listened to"
    )
    control_domain: int = param(
        NOT_GIVEN, low=NOT_GIVEN, high=232, help="ROS domain of /mt/* and its services; -1: a free one, which is told"
    )
    transforms: str = param("", help="YAML file of transforms, where live /tf does not give them")
    qos: str = param("", help="YAML file of QoS profiles by topic, in rosbag2's format for overrides")
    waivers: str = param("", help="YAML file of violations that are known and accepted for now")
    plugins: tuple[str, ...] = param((), help="directories with your own plugins")
    segments: Segments = param(Segments(), convert=_part(Segments), help="how relations take turns")
    limits: Limits = param(Limits(), convert=_part(Limits), help="how much may be tested")
    box: BoxSettings = param(
        BoxSettings(use="off"), convert=_part(BoxSettings), help="namespaces of its own for each instance of ours"
    )
    actuators: Actuators = param(Actuators(), convert=_part(Actuators), help="what moves the vehicle")
    observers: tuple[str, ...] = param((), help="nodes that only look on, such as /rosbag2_recorder or /rviz*")
    caps: LiveCaps = param(LiveCaps(), convert=_part(LiveCaps), help="the most that all of ours may take")
    gpu: Gpu = param(Gpu(), convert=_part(Gpu), help="the most that each instance of ours may take of GPUs")
    guard: Guard = param(Guard(), convert=_part(Guard), help="when testing stops because the live stack suffers")
    delay_s: float = param(
        0.1, low=0.0, high=5.0, unit="s", help="our instances get everything so much later; follow-ups are made in it"
    )
    workers: int = param(
        0,
        low=AUTO,
        high=64,
        help=f"processes that make follow-ups; 0: none, one thread of the suite does; -1: one for each core beyond the "
        f"first {OWN_CORES}, {MOST_WORKERS} at most",
    )
    window_s: float = param(
        0.1, low=0.001, high=10.0, unit="s", help="outputs without a stamp answer an input that came so long before"
    )
    gap_s: float = param(2.0, low=0.05, high=3600.0, unit="s", help="after a longer pause of the input an episode ends")
    use_sim_time: str = param(
        "auto", choices=("auto", "true", "false"), help="whether /clock is handed on; auto: if there is one"
    )
    autostart: bool = param(True, help="testing begins at once; otherwise `mt live start` begins it")
    duration_s: float = param(0.0, low=0.0, unit="s", help="end after so long; 0: when told to")
    bundles: int = param(0, low=0, help="end after so many instants of input; 0: when told to")

    def workers_on(self, cores: int) -> int:
        """Return how many processes make follow-ups on a computer of so many cores.

        In ``alternate`` none: there each follow-up waits for an answer.
        """
        if self.workers != AUTO:
            return 0 if self.mode == "alternate" else self.workers
        cores = min(cores, int(self.caps.cpu_share) or cores)
        return 0 if self.mode == "alternate" else max(0, min(MOST_WORKERS, cores - OWN_CORES))

    def enough(self, instants: int) -> bool:
        """Whether as many instants of input were taken as the run is to last."""
        return 0 < self.bundles <= instants


#: Parts of a configuration, whose keys are named ``part.key``: name -> names of its keys.
PARTS: dict[str, tuple[str, ...]] = {
    field.name: tuple(f.name for f in fields(field.default))
    for field in fields(LiveConfig)
    if is_dataclass(field.default)
}


def live_config(given: Mapping[str, Any], where: str) -> LiveConfig:
    """Check a configuration; names of files in it are as they are written. Raises UsageError."""
    return build(LiveConfig, given, where)


def check_live(config: LiveConfig, stack: Stack) -> None:
    """Refuse what cannot run. Raises UsageError: saying what to write instead."""
    refuse_world_inputs(stack)
    if config.mode == "alternate" and not stack.stateless:
        raise UsageError(f"mode: alternate: stack '{stack.name}' remembers (stateless: false); use twin or shadow")
    if config.segments.swap_arms and config.mode != "twin":
        raise UsageError(f"segments.swap_arms: got true with mode: {config.mode}, expected mode: twin")
    if stack.isolation == "remap":
        raise UsageError(
            f"stack '{stack.name}' has isolation: remap, which would put follow-ups into the domain of the live "
            "system; beside a live stack only isolation: domain is safe"
        )
    if config.control_domain != NOT_GIVEN and config.control_domain == config.live_domain:
        raise UsageError(f"control_domain: got {config.control_domain}, the live domain; expected another")
    own = {arm: stack.domain[arm] for arm in OWN_ARMS[config.mode] if arm in stack.domain}
    if stack.external and (lacking := [arm for arm in OWN_ARMS[config.mode] if arm not in own]):
        raise UsageError(
            f"stack '{stack.name}' is external: got domain: {stack.domain}, expected one for {' and '.join(lacking)}, "
            f"where the instance runs that mode: {config.mode} tests"
        )
    # That the source arm of a shadow is where the live stack is, is as it should be.
    ours, all_fixed = set(own.values()), set(stack.domain.values())
    if fixed := (ours & {config.live_domain} | all_fixed & {config.control_domain}) - {NOT_GIVEN}:
        raise UsageError(
            f"stack '{stack.name}' fixes domain {min(fixed)} for an arm, which is the live or control domain; "
            "expected another, so that no follow-up command reaches an actuator"
        )
    if len(ours) < len(own):
        raise UsageError(f"stack '{stack.name}' has domain: {stack.domain}, expected a different one for each instance")
