# SPDX-License-Identifier: Apache-2.0
"""``mt blame``: which node of a stack is the first whose outputs differ where they must not."""
