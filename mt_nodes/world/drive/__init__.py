# SPDX-License-Identifier: Apache-2.0
"""The closed loop: a world in which the stack's own commands decide what happens next."""
