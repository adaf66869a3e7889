# SPDX-License-Identifier: Apache-2.0
"""Whether nodes can run in a secured ROS domain (SROS 2) here, where the environment asks for one."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from mt_nodes.base.environment import SECURITY_VARIABLE
from mt_nodes.runs.doctor import Finding

TITLE = "SROS 2"
#: Of an enclave of ours that every kind of run over topics needs.
ENCLAVE = "enclaves/mt_nodes/suite"
#: What the middleware says when it was built without security, and so has in it.
_REFUSAL = b"doesn't have the security libraries"
_LIBRARY = "librmw_fastrtps_shared_cpp.so"


def check_security(env: Mapping[str, str]) -> Iterator[Finding]:
    """Look only where security is switched on: without it topics are neither encrypted nor authenticated."""
    if env.get(SECURITY_VARIABLE) != "true":
        return
    library = _middleware(env)
    if library is not None and _contains(library, _REFUSAL):
        detail = f"{SECURITY_VARIABLE}=true, but Fast DDS here was built without security: nothing is protected"
        fix = f"use ROS 2 from its Debian packages, or unset {SECURITY_VARIABLE}"
        yield Finding("error", TITLE, f"{detail} ({library})", fix)
    elif not (Path(env.get("ROS_SECURITY_KEYSTORE", "")) / ENCLAVE / "permissions.p7s").is_file():
        detail = f"ROS_SECURITY_KEYSTORE={env.get('ROS_SECURITY_KEYSTORE', '')} has no {ENCLAVE}"
        yield Finding("error", TITLE, detail, "docs/security.md#a-secured-ros-domain shows how to make it")
    elif env.get("ROS_SECURITY_STRATEGY") != "Enforce":
        detail = "ROS_SECURITY_STRATEGY is not Enforce: a node without an enclave runs unprotected"
        yield Finding("warn", TITLE, detail, "export ROS_SECURITY_STRATEGY=Enforce")
    else:
        yield Finding("ok", TITLE, f"on and enforced, with {ENCLAVE}")


def _middleware(env: Mapping[str, str]) -> Path | None:
    prefixes = [sys.prefix, *env.get("AMENT_PREFIX_PATH", "").split(os.pathsep)]
    found = (Path(prefix) / "lib" / _LIBRARY for prefix in prefixes if prefix)
    return next((path for path in found if path.is_file()), None)


def _contains(path: Path, text: bytes) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(text) >= 0
