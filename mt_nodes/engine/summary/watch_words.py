# SPDX-License-Identifier: Apache-2.0
"""Rates of a run that only watched, in words."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any


def duration(seconds: float) -> str:
    """Return a time such as ``1:02:03``; with a tenth below a minute."""
    return f"{seconds:.1f} s" if seconds < 60.0 else str(datetime.timedelta(seconds=round(seconds)))


def amount(value: float) -> str:
    """Return a number of violations an hour with three digits, larger ones whole: ``0.437``, ``14,200``."""
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def rate(each: Mapping[str, Any]) -> str:
    """Return violations an hour; empty where nothing was watched."""
    return "" if each["per_h"] is None else amount(each["per_h"])


def interval(each: Mapping[str, Any]) -> str:
    """Return the confidence sequence of violations an hour; empty where nothing was watched."""
    return "" if each["cs95_per_h"] is None else " to ".join(map(amount, each["cs95_per_h"]))


def cell_words(cell: Mapping[str, str]) -> str:
    """Return a cell of the operational design domain."""
    return ", ".join(f"{axis} {value}" for axis, value in cell.items()) or "everywhere"
