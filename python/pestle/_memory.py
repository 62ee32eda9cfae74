# SPDX-License-Identifier: Apache-2.0
"""Memory: of a device, or of all GPUs together, of CPUs where there are none."""

from . import _pestle as c


def get_active_memory(device=None):
    """Bytes that arrays and plans hold now."""
    return c.memory("active", device)


def get_peak_memory(device=None):
    """The most bytes that were held."""
    return c.memory("peak", device)


def reset_peak_memory(device=None):
    """Lets the peak begin anew."""
    c.memory("peak", device, 0)


def get_cache_memory(device=None):
    """Bytes that are kept to be used again."""
    return c.memory("cache", device)


def clear_cache(device=None):
    """Gives back what is kept to be used again."""
    c.memory("cache", device, 0)


def set_cache_limit(limit, device=None):
    """Sets how many bytes may be kept. Returns what it was."""
    return c.memory("cache_limit", device, limit)


def get_memory_limit(device=None):
    """How many bytes may be held."""
    return c.memory("limit", device)


def set_memory_limit(limit, device=None):
    """Sets how many bytes may be held. Returns what it was."""
    return c.memory("limit", device, limit)


def set_wired_limit(limit, device=None):
    """Sets how many bytes may stay wired. Returns what it was."""
    return c.memory("wired_limit", device, limit)


def device_info(device=None):
    """What the backend tells of a device, as a dict."""
    return c.device(device).properties
