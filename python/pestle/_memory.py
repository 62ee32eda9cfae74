# SPDX-License-Identifier: Apache-2.0
"""Memory: of a device, or of all GPUs together, of CPUs where there are none."""

from . import _pestle as c


def get_active_memory(device=None):
    """Bytes that arrays and plans hold now.

    device: None: all GPUs, or all CPUs where there are none.
    Raises TypeError for no device.

    >>> pt.get_active_memory("cpu") >= 0
    True
    """
    return c.memory("active", device)


def get_peak_memory(device=None):
    """The most bytes that were held.

    device: None: all GPUs, or all CPUs where there are none.
    Raises TypeError for no device.

    >>> pt.get_peak_memory("cpu") >= 0
    True
    """
    return c.memory("peak", device)


def reset_peak_memory(device=None):
    """Lets the peak begin anew.

    device: None: all of them.
    Raises TypeError for no device, Error for one that is not there.

    >>> pt.reset_peak_memory("cpu")
    """
    c.memory("peak", device, 0)


def get_cache_memory(device=None):
    """Bytes that are kept to be used again.

    device: None: all GPUs, or all CPUs where there are none.
    Raises TypeError for no device.

    >>> pt.get_cache_memory("cpu") >= 0
    True
    """
    return c.memory("cache", device)


def clear_cache(device=None):
    """Gives back what is kept to be used again.

    device: None: all of them.
    Raises TypeError for no device, Error for one that is not there.

    >>> pt.clear_cache("cpu")
    """
    c.memory("cache", device, 0)


def set_cache_limit(limit, device=None):
    """Sets how many bytes may be kept. Returns what it was.

    device may be None where there is one GPU, or none.
    Raises ValueError where there are several, TypeError for no number and no device.

    >>> pt.set_cache_limit(pt.set_cache_limit(1 << 30, "cpu"), "cpu")
    1073741824
    """
    return c.memory("cache_limit", device, limit)


def get_memory_limit(device=None):
    """How many bytes may be held.

    device: None: all GPUs, or all CPUs where there are none.
    Raises TypeError for no device.

    >>> pt.get_memory_limit("cpu") >= 0
    True
    """
    return c.memory("limit", device)


def set_memory_limit(limit, device=None):
    """Sets how many bytes may be held. Returns what it was.

    device may be None where there is one GPU, or none.
    Raises ValueError where there are several, TypeError for no number and no device.

    >>> pt.set_memory_limit(pt.set_memory_limit(1 << 40, "cpu"), "cpu")
    1099511627776
    """
    return c.memory("limit", device, limit)


def set_wired_limit(limit, device=None):
    """Sets how many bytes may stay wired. Returns what it was.

    device may be None where there is one GPU, or none.
    Raises ValueError where there are several, TypeError for no number and no device,
    NotImplementedError where the device has none.

    >>> pt.set_wired_limit(0, "ref")
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    return c.memory("wired_limit", device, limit)


def device_info(device=None):
    """What the backend tells of a device, as a dict.

    Raises TypeError for no device, Error for one that is not there.

    >>> isinstance(pt.device_info("cpu"), dict)
    True
    """
    return c.device(device).properties
