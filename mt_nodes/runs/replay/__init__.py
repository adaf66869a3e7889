# SPDX-License-Identifier: Apache-2.0
"""Replays recordings through the mutators, in process or over topics.

It imports what :mod:`mt_nodes.runs` does.
What a replay can be asked for goes here.
"""
