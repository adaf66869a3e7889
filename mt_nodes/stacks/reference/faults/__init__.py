# SPDX-License-Identifier: Apache-2.0
"""Faults that can be planted in a reference stack, by the stack and the part of it that they break.

A new one goes into the file of its part; ``base`` and the other ``…_base`` say which steps each stack has.
"""
