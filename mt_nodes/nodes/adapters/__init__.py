# SPDX-License-Identifier: Apache-2.0
"""Message types of stacks, one file each."""
