# SPDX-License-Identifier: Apache-2.0
"""Message types of stacks, by what they say. A new one goes into the file of its kin.

It is found by itself; what every adapter is: ``stacks/message_adapter``.
"""
