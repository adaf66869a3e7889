# SPDX-License-Identifier: Apache-2.0
"""Conditions: when a relation applies."""
