# SPDX-License-Identifier: Apache-2.0
"""Limits of what an instance may take of NVIDIA GPUs: which it sees, and by MPS how much memory and time.

CUDA reads them from the environment of the process (docs.nvidia.com/deploy/mps, "Environment Variables"). Those of
memory and time mean something only where the MPS control daemon runs, and the instance becomes its client.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from mt_nodes.base.safety_settings import BoxSettings, Gpu

#: What manages MPS; where it leaves its pid, unless ``CUDA_MPS_PIPE_DIRECTORY`` says so.
CONTROL, PIPES = "nvidia-cuda-mps-control", "/tmp/nvidia-mps"
_PIPES_ARE_AT = "CUDA_MPS_PIPE_DIRECTORY"


def gpu_environment(gpu: Gpu) -> dict[str, str]:
    """Return variables by name that hold an instance to these limits; without any, none.

    GPUs are numbered as the instance sees them. A limit of memory holds for each of them alike.
    """
    found = {}
    if gpu.devices:
        found["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.devices)
    if gpu.share_percent:
        found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = f"{gpu.share_percent:g}"
    if gpu.memory_mib:
        limits = (f"{number}={gpu.memory_mib}M" for number in range(max(1, len(gpu.devices))))
        found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = ",".join(limits)
    return found


def lacking_for(
    gpu: Gpu, box: BoxSettings, environ: Mapping[str, str], which: Callable[[str], str | None] = shutil.which
) -> dict[str, str]:
    """Return why limits that were asked for may not hold, by name of the setting.

    ``environ``: of the instance. ``which``: finds a program.
    """
    found = {}
    if gpu.devices and box.use != "off" and not any("nvidia" in device or "/dri" in device for device in box.devices):
        found["gpu.devices"] = "box.devices names no device of a GPU: in its box the instance sees none"
    if gpu.memory_mib or gpu.share_percent:
        if why := _no_mps(environ, which):
            found["gpu"] = why
        elif box.use != "off":
            found["gpu"] = "MPS is reached through shared memory, which is another one in a box: it may hold nothing"
    return found


def _no_mps(environ: Mapping[str, str], which: Callable[[str], str | None]) -> str:
    if which(CONTROL) is None:
        return f"no program {CONTROL} here: memory and share of a GPU are not limited"
    place = Path(environ.get(_PIPES_ARE_AT, PIPES))
    if not (place / f"{CONTROL}.pid").exists():
        return f"MPS does not run ({place} has no {CONTROL}.pid; start it: {CONTROL} -d): a GPU is not limited"
    return ""
