# SPDX-License-Identifier: Apache-2.0
"""What principles can demand, one file each."""
