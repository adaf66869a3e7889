# SPDX-License-Identifier: Apache-2.0
"""Closed-loop runs: scenarios are driven twice, and the drives are compared.

It imports what :mod:`mt_nodes.runs` does.
What a run of scenarios can be asked for goes here.
"""
