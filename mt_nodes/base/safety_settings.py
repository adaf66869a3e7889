# SPDX-License-Identifier: Apache-2.0
"""Safety settings of ``mt live`` on a vehicle computer."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param


@dataclass(frozen=True)
class BoxSettings:
    """Namespaces for each test instance: no network but loopback, no devices but those listed."""

    use: str = param(
        "auto",
        choices=("required", "auto", "off"),
        help="required: refused (exit 5) where the system does not allow all of it; auto: as much as it allows, told",
    )
    devices: tuple[str, ...] = param((), help="device files that the instance gets, such as /dev/nvidia0")
    writable: tuple[str, ...] = param((), help="directories that it may write to; empty: as the user may")


@dataclass(frozen=True)
class Actuators:
    """What moves the vehicle: endpoints that no test node may have. Names may end in ``*``."""

    topics: tuple[str, ...] = param((), help="topics of commands to actuators, as the live system names them")
    types: tuple[str, ...] = param((), help="message, service or action types that only actuators take")
    services: tuple[str, ...] = param((), help="services that engage, arm or move something")
    actions: tuple[str, ...] = param((), help="actions that do")


@dataclass(frozen=True)
class Caps:
    """Limits for all test processes together."""

    cores: tuple[int, ...] = param((), help="CPU cores that they may run on; empty: all")
    cpu_share: float = param(0.0, low=0.0, high=64.0, help="cores' worth of time at most; 0: no limit")
    memory_mb: float = param(0.0, low=0.0, high=4e6, unit="MB", help="memory at most; 0: no limit")
    niceness: int = param(0, low=0, high=19, help="added to the priority number, so that everybody else goes first")


@dataclass(frozen=True)
class LiveCaps(Caps):
    """Limits beside a live stack, which is to notice nothing."""

    policy: str = param(
        "idle",
        choices=("idle", "normal"),
        help="idle: instances and judging run only where a core has nothing else to do",
    )


@dataclass(frozen=True)
class Gpu:
    """Limits for each instance on NVIDIA GPUs; without a running MPS only ``devices`` takes effect."""

    devices: tuple[str, ...] = param((), help="GPUs that it sees, by UUID (`nvidia-smi -L`) or number; empty: all")
    memory_mib: int = param(0, low=0, high=4_000_000, unit="MiB", help="memory of each at most, by MPS; 0: no limit")
    share_percent: float = param(0.0, low=0.0, high=100.0, unit="%", help="of its threads at most, by MPS; 0: all")


@dataclass(frozen=True)
class Guard:
    """When injection stops because the live stack or the computer suffers; a ratio or limit of 0 turns a check off."""

    baseline_s: float = param(
        0.0, low=0.0, high=3600.0, unit="s", help="the live stack alone is measured so long; 0: it is not watched"
    )
    latency_ratio: float = param(1.5, low=0.0, high=100.0, help="p95 of the live stack's latency, of the baseline's")
    throttle_ratio: float = param(
        1.2, low=0.0, high=100.0, help="the same; beyond it tests get half the processor time that they took; 0: off"
    )
    raise_ms_per_s: float = param(
        50.0,
        low=0.0,
        high=64_000.0,
        unit="ms/s",
        help="they get so much more after each window in which it is well below",
    )
    rate_ratio: float = param(0.9, low=0.0, high=1.0, help="rate of the live stack's outputs, of the baseline's")
    window_s: float = param(5.0, low=0.5, high=600.0, unit="s", help="over which both are taken")
    recover_s: float = param(10.0, low=0.0, high=3600.0, unit="s", help="well for so long before it goes on")
    temperature_c: float = param(0.0, low=0.0, high=150.0, unit="°C", help="of any thermal zone at most")
    load: float = param(0.0, low=0.0, high=100.0, help="runnable processes for each core at most, over a minute")
