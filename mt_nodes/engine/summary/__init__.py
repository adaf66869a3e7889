# SPDX-License-Identifier: Apache-2.0
"""From the lines of a journal to the outcome of each relation.

It imports what :mod:`mt_nodes.engine` does.
A rule by which relations are judged goes here.
"""
