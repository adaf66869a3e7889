# SPDX-License-Identifier: Apache-2.0
"""Changes of camera images."""
