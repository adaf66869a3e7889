# SPDX-License-Identifier: Apache-2.0
"""A request to watch bags, from the command line and a configuration file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.runs.watch.watch_request import WatchRequest, watch_settings


def bag_request(
    config: Path | None, *, bags: Sequence[str], inprocess: bool, relations: Sequence[str] | None, **given: Any
) -> WatchRequest:
    """Return what the command line asks for; Raises UsageError: a setting is none.

    ``config``: file with a part ``watch``, such as one of ``mt live``. ``relations``: names, in place of the file's.
    """
    rows = dict(read_mapping(config).get("watch") or {}) if config is not None else {}
    if relations:
        known = {str(name): row for row in rows.get("relations", ()) if isinstance(row, dict) for name in row}
        rows["relations"] = [known.get(name, name) for name in relations]
    settings = watch_settings(rows, f"{config}: watch" if config is not None else "watch")
    return WatchRequest(source="inprocess" if inprocess else "recorded", bags=tuple(bags), watch=settings, **given)
