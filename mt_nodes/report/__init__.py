# SPDX-License-Identifier: Apache-2.0
"""What people read after a run."""
