# SPDX-License-Identifier: Apache-2.0
"""Pictures, camera models and depth."""
