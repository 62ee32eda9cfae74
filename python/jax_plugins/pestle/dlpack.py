# SPDX-License-Identifier: Apache-2.0
"""DLPack of arrays on a Pestle that runs on the CPU, whose memory is the host's: what JAX
gives its own CPU backend's arrays alone. By way of NumPy, which shares the memory too.

`np.from_dlpack(x)`, `torch.from_dlpack(x)` see the array where it lies; `jnp.from_dlpack(y)`
puts what lies in the host's memory onto Pestle where that is JAX's default. Element types
that NumPy has not (bfloat16, float8) go the way that JAX has for them, or are an error."""
import ctypes
import functools
import logging

import numpy as np

from jax_plugins.pestle import versions

logger = logging.getLogger(__name__)
CPU = 1  # kDLCPU


def _is_ours(device, name):
    """Whether |device| is one of Pestle's whose memory is the host's."""
    return (device.platform == name and
            getattr(device, "device_kind", "").startswith("cpu"))


def _writable(array, owner):
    """|array|'s memory without the mark that consumers of DLPack before 1.0 cannot be
    told of: who writes there breaks |owner|, as with JAX's own."""
    if not array.nbytes or array.flags.writeable:
        return array
    memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    memory.owner = owner  # as long as anybody sees the memory
    return np.frombuffer(memory, array.dtype).reshape(array.shape)


def _export(x, stream, max_version, dl_device, copy):
    if stream not in (None, 0):
        raise BufferError(f"an array in the host's memory has no stream; stream={stream}")
    if dl_device is not None and (int(dl_device[0]), dl_device[1]) != (CPU, 0):
        raise BufferError(f"an array of Pestle's lies in the host's memory, not on {dl_device}")
    array = np.asarray(x)
    if array.dtype.kind == "V":
        raise BufferError(f"NumPy has no {array.dtype}, so DLPack cannot be made of it")
    if copy:
        array = np.array(array, copy=True)
    if max_version is None or max_version < (1, 0):
        return _writable(array, x).__dlpack__()
    return array.__dlpack__(max_version=max_version)


def _wrap_array(array_type, name):
    dlpack, dlpack_device = array_type.__dlpack__, array_type.__dlpack_device__

    def device_of(x):
        devices = x.devices()
        return next(iter(devices)) if len(devices) == 1 else None

    @functools.wraps(dlpack)
    def export(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        device = device_of(self)
        if device is not None and _is_ours(device, name):
            return _export(self, stream, max_version, dl_device, copy)
        return dlpack(self, stream=stream, max_version=max_version, dl_device=dl_device,
                      copy=copy)

    @functools.wraps(dlpack_device)
    def where(self):
        device = device_of(self)
        if device is not None and _is_ours(device, name):
            return versions.dlpack_cpu(), 0
        return dlpack_device(self)
    array_type.__dlpack__, array_type.__dlpack_device__ = export, where


def _wrap_import(original, name):
    @functools.wraps(original)
    def from_dlpack(external_array, device=None, copy=None):
        import jax
        target = device
        if target is None:
            target = jax.config.jax_default_device or jax.devices()[0]
        if not hasattr(target, "platform") or not _is_ours(target, name):
            return original(external_array, device, copy)
        kind = getattr(external_array, "__dlpack_device__", lambda: (None, 0))()[0]
        if kind is None or int(kind) != CPU:
            return original(external_array, device, copy)
        if isinstance(external_array, jax.Array) and external_array.devices() == {target}:
            return jax.numpy.array(external_array, copy=bool(copy))
        try:
            array = np.from_dlpack(external_array)
        except (RuntimeError, BufferError, TypeError):  # a type that NumPy has not
            return original(external_array, device, copy)
        if copy:
            array = np.array(array, copy=True)
        return jax.device_put(array, target)
    return from_dlpack


def install(name):
    array_type = versions.array_type()
    if array_type is not None and hasattr(array_type, "__dlpack_device__"):
        _wrap_array(array_type, name)
    versions.replace_from_dlpack(lambda original: _wrap_import(original, name))
