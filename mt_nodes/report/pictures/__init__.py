# SPDX-License-Identifier: Apache-2.0
"""Pictures of what a mutation does to a frame.

It imports what :mod:`mt_nodes.report` does.
Another picture of a frame goes here.
"""
