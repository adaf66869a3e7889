# SPDX-License-Identifier: Apache-2.0
"""Reference stacks and the faults that can be planted in them."""
