# SPDX-License-Identifier: Apache-2.0
"""Moral relations: what a stack does where it cannot but hit somebody, judged by principles that files declare."""
