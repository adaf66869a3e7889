# SPDX-License-Identifier: Apache-2.0
"""Puts commands into a box (:mod:`mt_nodes.runs.vehicle.box`), and says what this system allows of one."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.safety_settings import BoxSettings
from mt_nodes.runs.vehicle import box

#: layer -> what a process without it can still do.
WITHOUT = {
    "network": "reach every network and bus of this computer (CAN, Ethernet), and the ROS graph of the vehicle",
    "devices": "open every device file that its user may (serial ports, CAN adapters, cameras, GPUs)",
    "memory": "join the vehicle's DDS through shared memory, and the sockets of services in /run",
    "processes": "see and signal the processes of its user, the live stack's among them",
    "system": "change what its user may below /sys and /proc (GPIO pins, clocks of processors)",
    "files": "write to every file that its user may",
    "privileges": "use the capabilities of its user",
    "sockets": "open sockets of CAN, Bluetooth and raw packets",
}
_PROBE_S = 20.0


@dataclass(frozen=True)
class BoxReport:
    """What became of a box: layer -> why it is missing, empty where it is there."""

    missing: Mapping[str, str]

    @property
    def whole(self) -> bool:
        """Whether every layer is there."""
        return not any(self.missing.values())

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Say of each layer that is missing why, and what a process in there can still do."""
        rows = ((name, why) for name, why in self.missing.items() if why)
        return tuple(f"no layer '{name}' ({why}): the instance can {WITHOUT[name]}" for name, why in rows)


def boxed(settings: BoxSettings, argv: Sequence[str], report: Path, keep: Sequence[int] = ()) -> tuple[str, ...]:
    """Return the command that runs another one in a box.

    Raises UsageError: a device or a directory is not there; nothing would be in its place.
    ``report``: file that it tells what became of its layers: :func:`read_report`. ``keep``: descriptors that the
    command inherits, beside 0 to 2.
    """
    for device in settings.devices:
        path = Path(device)
        if not device.startswith("/dev/") or not (path.is_char_device() or path.is_block_device()):
            raise UsageError(f"box.devices: got {device}, expected a device file that is there, such as /dev/nvidia0")
    for directory in settings.writable:
        if not Path(directory).is_absolute() or not Path(directory).is_dir():
            raise UsageError(f"box.writable: got {directory}, expected the whole path of a directory that is there")
    spec = {
        "required": settings.use == "required",
        "devices": list(settings.devices),
        "writable": list(settings.writable),
        "keep": list(keep),
        "report": str(report.absolute()),
    }
    return (sys.executable, "-I", "-S", str(Path(box.__file__)), json.dumps(spec), "--", *argv)


def read_report(path: Path) -> BoxReport:
    """Read what a box told. Raises InfrastructureError: it has told nothing, since it did not come so far."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InfrastructureError(f"{path}: got no report of a box ({error}); its command was not started") from error
    return BoxReport({name: str(report[name]) for name in box.LAYERS})


@lru_cache(maxsize=1)
def what_can_be_boxed() -> BoxReport:
    """Return what this system allows, by trying it on a command that does nothing.

    Raises InfrastructureError: the command does not come to its end.
    """
    with tempfile.TemporaryDirectory(prefix="mt_box_") as place:
        report = Path(place) / "report.json"
        command = boxed(BoxSettings(), (sys.executable, "-I", "-S", "-c", ""), report)
        try:
            subprocess.run(command, check=True, timeout=_PROBE_S, capture_output=True, text=True)
        except (subprocess.SubprocessError, OSError) as error:
            stderr = getattr(error, "stderr", "") or ""
            raise InfrastructureError(f"no command can be run in a box: {error}; {stderr.strip()}") from error
        return read_report(report)
