# SPDX-License-Identifier: Apache-2.0
"""Tools to test libraries with, Pestle among them."""
