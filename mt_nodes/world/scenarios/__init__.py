# SPDX-License-Identifier: Apache-2.0
"""Scenarios of the closed loop: the language they are written in, and what reads them from other formats."""
