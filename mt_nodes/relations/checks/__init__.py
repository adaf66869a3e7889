# SPDX-License-Identifier: Apache-2.0
"""Checks: how the follow-up's output may differ from the source's.

A new check goes into the file of related checks, ``…_checks``, or into its own if it is long. Shared code is in
``base``, ``controls``, ``obstacles``, ``boxes``, ``sequence``, ``command_series`` and ``trace_check``.
"""
