# SPDX-License-Identifier: Apache-2.0
"""Tests, intervals and e-values.

It imports :mod:`mt_nodes.base` alone. Statistics that are independent of relations go here.
"""
