# SPDX-License-Identifier: Apache-2.0
"""Foreign functions: what jax.ffi.register_ffi_target() is given for the platform
reaches the plugin's table, whose functions every client knows by name.

    jax.ffi.register_ffi_target("rms_norm", capsule, platform="pestle")

A function that was built for JAX's CPU backend runs where Pestle runs on the CPU.
"""
import ctypes
import logging

from jax_plugins.pestle import versions

STAGES = ("instantiate", "prepare", "initialize", "execute")

logger = logging.getLogger(__name__)


def _pointer(capsule):
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


def install(name, path):
    library = ctypes.CDLL(str(path))
    register = library.pestle_pjrt_ffi_register
    register.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
                         ctypes.c_size_t]
    register_type = library.pestle_pjrt_ffi_register_type
    register_type.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p]
    register_type.restype = ctypes.c_int64
    message = ctypes.create_string_buffer(1024)

    def on_target(target, function, platform, api_version=1, traits=0):
        del platform, traits
        text = target if isinstance(target, str) else target.decode()
        if api_version != 1:
            raise NotImplementedError(
                f"{text} has version {api_version} of XLA's custom calls; Pestle calls "
                "functions of the typed interface (api_version=1)")
        stages = function if isinstance(function, dict) else {"execute": function}
        for stage, capsule in stages.items():
            if stage not in STAGES:
                raise ValueError(f"{text} has a stage '{stage}'; there are "
                                 f"{', '.join(STAGES)}")
            if capsule is None:
                continue
            if register(text.encode(), STAGES.index(stage), _pointer(capsule), message,
                        len(message)):
                raise ValueError(message.value.decode())

    def on_type(type_name, registration):
        given = registration if isinstance(registration, dict) else {
            "type_id": registration}
        place = ctypes.cast(_pointer(given["type_id"]), ctypes.POINTER(ctypes.c_int64))
        deleter = None
        info = given.get("type_info")
        if info is not None:
            # {size_t, pointer, deleter}
            deleter = ctypes.cast(_pointer(info), ctypes.POINTER(ctypes.c_void_p))[2]
        number = register_type(type_name.encode(), place[0], deleter)
        if not number:
            raise ValueError(f"type {type_name} is registered under another number")
        place[0] = number

    versions.on_custom_calls(name, on_target, on_type)
