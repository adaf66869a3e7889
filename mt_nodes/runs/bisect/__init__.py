# SPDX-License-Identifier: Apache-2.0
"""The version of a stack in which a violation begins: commits, or values of a placeholder, and the search over them."""
