# SPDX-License-Identifier: Apache-2.0
"""Violated pairs as labelled training data.

It imports what :mod:`mt_nodes.runs` does.
Another rule by which a label may be carried over to a follow-up goes here; a file format, to ``data/datasets``.
"""
