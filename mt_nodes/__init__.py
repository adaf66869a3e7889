# SPDX-License-Identifier: Apache-2.0
"""Metamorphic testing of a driving stack while it runs."""

__version__ = "0.1.0"
