# SPDX-License-Identifier: Apache-2.0
"""``mt doctor --vehicle``: what can be looked at before anything is switched on, with a word on what to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.safety_settings import Actuators, Caps
from mt_nodes.runs.doctor import Finding
from mt_nodes.runs.live.config import LiveConfig
from mt_nodes.runs.vehicle.box_report import WITHOUT, what_can_be_boxed
from mt_nodes.runs.vehicle.caps import capped
from mt_nodes.runs.vehicle.gpu import CONTROL, lacking_for
from mt_nodes.runs.vehicle.live_guard import hottest_c, load_per_core

#: ``ARPHRD_CAN`` of ``linux/if_arp.h``.
_CAN = "280"
#: Patterns that let everybody pass.
_EVERYBODY = {"*", "/*", "/**"}
_NEED_FREE = 1.0


def check_vehicle(config: LiveConfig | None = None, net: Path = Path("/sys/class/net")) -> Iterator[Finding]:
    """Look at what keeps tests off the vehicle on this computer, and at what a configuration asks of it.

    ``config``: of ``mt live``; None: only the computer is looked at. ``net``: where the kernel lists interfaces.
    """
    yield from _layers()
    yield from _buses(net)
    yield _groups()
    yield _heat()
    yield _room()
    yield _gpus()
    if config is not None:
        yield from _setting_findings(config)


def refuse_what_is_not_safe(config: LiveConfig) -> None:
    """Refuse a computer and a configuration in which an error is found. Raises UsageError."""
    found = [f"{row.title}: {row.detail} ({row.fix})" for row in check_vehicle(config) if row.level == "error"]
    if found:
        raise UsageError(f"not started on a vehicle: {'; '.join(found)}")


def _layers() -> Iterator[Finding]:
    try:
        report = what_can_be_boxed()
    except InfrastructureError as error:
        yield Finding("error", "box", str(error), "use another computer, or box.use: off, and meet it by other means")
        return
    for name, why in report.missing.items():
        if why:
            fix = "allow it (namespaces(7), a newer kernel, fewer limits on the container)"
            yield Finding("error", f"box: {name}", f"{why}; an instance could {WITHOUT[name]}", fix)
        else:
            yield Finding("ok", f"box: {name}", "can be put up")


def _buses(net: Path) -> Iterator[Finding]:
    found = sorted(each.name for each in net.glob("*") if _kind(each) == _CAN)
    if found:
        yield Finding("ok", "CAN", f"{', '.join(found)} on this computer; not to be seen in a box")
    else:
        yield Finding("ok", "CAN", "no interface on this computer")


def _kind(interface: Path) -> str:
    try:
        return (interface / "type").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _groups() -> Finding:
    with capped(Caps(cpu_share=64.0, memory_mb=1e6, niceness=0)) as held:
        lacking = dict(held.lacking)
    if not lacking:
        return Finding("ok", "caps", "control groups can limit time of processors and memory")
    text = "; ".join(f"{name}: {why}" for name, why in lacking.items())
    fix = "run below a delegated control group (systemd-run --user --scope -p Delegate=yes), or rely on caps.cores"
    return Finding("warn", "caps", text, fix)


def _heat() -> Finding:
    hottest = hottest_c()
    if hottest is None:
        return Finding("warn", "heat", "the kernel tells no temperature", "leave guard.temperature_c at 0")
    return Finding("ok", "heat", f"the hottest zone is at {hottest:.1f} °C")


def _room() -> Finding:
    cores = os.cpu_count() or 1
    free = cores * (1.0 - load_per_core())
    text = f"{cores} cores, {max(0.0, free):.1f} of them free over the last minute"
    if free >= _NEED_FREE:
        return Finding("ok", "room", text)
    return Finding("warn", "room", text, "a second instance needs what the first one needs; use another computer")


def _gpus() -> Finding:
    if shutil.which(CONTROL):
        return Finding("ok", "GPU", f"{CONTROL} is here: once it runs, gpu.memory_mib and gpu.share_percent hold")
    return Finding("ok", "GPU", f"no {CONTROL} here: nothing limits what an instance takes of a GPU that it sees")


def _setting_findings(config: LiveConfig) -> Iterator[Finding]:
    if config.box.use != "required":
        yield Finding("error", "box.use", f"got {config.box.use}", "on a vehicle say box: {use: required}")
    if config.actuators == Actuators():
        fix = "list the topics, services, actions and types that move the vehicle"
        yield Finding("error", "actuators", "none is named, so none is watched", fix)
    if everybody := sorted(_EVERYBODY & set(config.observers)):
        yield Finding("error", "observers", f"got {everybody[0]}: everybody may join", "name them one by one")
    if not config.guard.baseline_s:
        fix = "say guard: {baseline_s: 10}"
        yield Finding("error", "guard", "the live stack is not watched", fix)
    if not (config.caps.cores or config.caps.cpu_share):
        fix = "say caps: {cores: [2, 3]} or caps: {cpu_share: 1.5}"
        yield Finding("warn", "caps", "no limit on time of processors", fix)
    for setting, why in lacking_for(config.gpu, config.box, os.environ).items():
        yield Finding(
            "warn", setting, why, "see docs/vehicle.md on GPUs; a GPU that both stacks share is limited by MPS only"
        )
    if config.mode != "shadow":
        yield Finding("ok", "mode", f"{config.mode}: outputs of the live stack are not used")
