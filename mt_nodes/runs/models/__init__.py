# SPDX-License-Identifier: Apache-2.0
"""Networks that learn: those that drive by pictures, and those that find obstacles in clouds and pictures."""
