# SPDX-License-Identifier: Apache-2.0
"""Objects that are added, removed, moved or replaced."""
