# SPDX-License-Identifier: Apache-2.0
"""Kinds of runs, a folder each: replay, live, closed loop, campaign, search, shrinking, experiments, review, vehicle.

It imports every room but :mod:`mt_nodes.cli` and :mod:`mt_nodes.nodes`.
A new kind of run goes here; CONTRIBUTING.md says what else has to know of it.
"""
