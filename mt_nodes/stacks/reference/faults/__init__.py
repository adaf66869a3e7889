# SPDX-License-Identifier: Apache-2.0
"""Faults that can be planted in a reference stack, one file each."""
