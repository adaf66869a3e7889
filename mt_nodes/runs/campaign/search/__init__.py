# SPDX-License-Identifier: Apache-2.0
"""Looks for the least change of input that violates a relation."""
