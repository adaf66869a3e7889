# SPDX-License-Identifier: Apache-2.0
"""What a set of runs has tried, and where it failed.

It imports what :mod:`mt_nodes.report` does.
Another measure of coverage goes here.
"""
