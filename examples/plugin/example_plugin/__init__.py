# SPDX-License-Identifier: Apache-2.0
"""Plugins for mt_nodes, each in a module of its own; pyproject.toml lists them."""
