# SPDX-License-Identifier: Apache-2.0
"""A stack that is only watched: checks of one stream, and rates of their violations by operating conditions."""
