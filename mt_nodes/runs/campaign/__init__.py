# SPDX-License-Identifier: Apache-2.0
"""Campaigns: many drives, stacks, relations and seeds, worked off as items by workers that may die."""
