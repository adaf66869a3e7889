# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# A shared machine may stall for longer than any deadline that would mean something; pytest-timeout bounds each test.
settings.register_profile("mt_nodes", deadline=None, derandomize=True)
settings.load_profile("mt_nodes")
