# SPDX-License-Identifier: Apache-2.0
"""How outputs may differ.

A new check goes into the file of its kin, ``…_checks``, or into one of its own where it is of some size. What kin share
stands in ``base``, ``controls``, ``obstacles``, ``boxes``, ``sequence``, ``command_series`` and ``trace_check``.
"""
