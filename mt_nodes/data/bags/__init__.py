# SPDX-License-Identifier: Apache-2.0
"""Reads and writes recordings.

It imports :mod:`mt_nodes.base` and :mod:`mt_nodes.data`.
Another format of recordings goes here.
"""
