# SPDX-License-Identifier: Apache-2.0
"""Reflectivities by which paint tells the materials of meshes apart, beside tyres, panes and skin (``meshes.py``)."""

from __future__ import annotations

RETRO, FILM, PLASTIC, STEEL, HORSE, SLEEVE, CLOTH, WOOD, DARK = 1.0, 0.95, 0.9, 0.4, 0.37, 0.34, 0.33, 0.28, 0.1
