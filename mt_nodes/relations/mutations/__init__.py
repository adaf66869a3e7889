# SPDX-License-Identifier: Apache-2.0
"""Mutations: changes of the input. A long one has a file of its own; short ones share a file with related ones."""
