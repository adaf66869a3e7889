# SPDX-License-Identifier: Apache-2.0
"""Detections of radars in files: binary ``.pcd`` as of nuScenes, fields of any width without gaps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.messages import Points

_KINDS = {"F": "f", "I": "i", "U": "u"}
_DATA = b"DATA binary\n"


def load_radar(path: Path) -> Points:
    """Return the detections (N,) of a file, with every field of its header.

    Raises InfrastructureError: it is no binary ``.pcd``, or holds fewer detections than it says.
    """
    head, _, body = path.read_bytes().partition(_DATA)
    rows = {line.split()[0]: line.split()[1:] for line in head.decode("latin-1").splitlines() if line.split()}
    try:
        columns = zip(rows["FIELDS"], rows["TYPE"], rows["SIZE"], strict=True)
        dtype = np.dtype([(name, f"<{_KINDS[kind]}{size}") for name, kind, size in columns])
        count = int(rows["POINTS"][0])
        return np.frombuffer(body, dtype, count)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        got = f"got {len(body)} bytes behind its header"
        text = f"{path}: {got}, expected a binary .pcd with FIELDS, TYPE, SIZE and POINTS: {error}"
        raise InfrastructureError(text) from error


def store_radar(path: Path, points: Any) -> bytes:
    """Return the content of a file with other detections of the same fields."""
    head = path.read_bytes().partition(_DATA)[0].decode("latin-1")
    for name in ("WIDTH", "POINTS"):
        head = re.sub(rf"(?m)^{name} \d+$", f"{name} {len(points)}", head)
    return b"".join((head.encode("latin-1"), _DATA, points.tobytes()))
