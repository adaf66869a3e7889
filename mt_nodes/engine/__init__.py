# SPDX-License-Identifier: Apache-2.0
"""Runs pairs: arms, pairing, judging, lockstep and real time, and what is recorded of them.

It imports relations, stacks and all that they import.
What every kind of run needs for a pair goes here.
"""
