# SPDX-License-Identifier: Apache-2.0
"""Scenarios of the closed loop: their language, and readers of other formats."""
