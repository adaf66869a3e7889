# SPDX-License-Identifier: Apache-2.0
"""How outputs may differ, one file each."""
