# SPDX-License-Identifier: Apache-2.0
"""The experiment of AutoMT (arXiv 2510.19438): how often follow-ups are valid, how often stacks violate, by method."""
