# SPDX-License-Identifier: Apache-2.0
"""Registers Pestle with JAX: imported and called by JAX when it looks for plugins.

PESTLE_PJRT_LIBRARY names the plugin's library; without it, it is looked for in this folder
and where it is installed.
"""
import logging
import os
import pathlib

from jax_plugins.pestle import versions

NAME = "pestle"
LIBRARY = "pjrt_plugin_pestle.so"

logger = logging.getLogger(__name__)


def library_path():
    """Where the plugin's library lies, or None."""
    given = os.environ.get("PESTLE_PJRT_LIBRARY")
    if given:
        return pathlib.Path(given)
    here = pathlib.Path(__file__).resolve().parent
    # In this folder, or beside libpestle.so, which is installed to LIB with this in
    # LIB/pestle/python/jax_plugins/pestle.
    for folder in (here, here.parents[3]):
        if (folder / LIBRARY).exists():
            return folder / LIBRARY
    return None


def share_library():
    """Maps the library of the package pestle, where that is installed, so that the plugin
    and the package have one: a process that has a file of its name takes no other."""
    import importlib.util
    spec = importlib.util.find_spec("pestle")
    for folder in spec.submodule_search_locations or () if spec else ():
        library = pathlib.Path(folder) / "lib" / "libpestle.so.0"
        if library.exists():
            import ctypes
            ctypes.CDLL(str(library))
            return


def initialize():
    path = library_path()
    if path is None or not path.exists():
        logger.error("Pestle's plugin is not used: %s is not there; set "
                     "PESTLE_PJRT_LIBRARY to the path of %s",
                     path or LIBRARY, LIBRARY)
        return
    share_library()
    versions.check(logger)
    versions.mark_as_tested(NAME)
    options = {}
    # What fails from here on costs the feature, not the plugin.
    callback = None
    try:
        from jax_plugins.pestle import callback
        options["python_callback"] = callback.address()
    except Exception:  # pylint: disable=broad-except
        logger.exception("Pestle runs no Python callbacks with this JAX")
    versions.register_plugin(NAME, str(path), options)
    versions.allow_donation(NAME)
    try:
        if callback is not None:
            callback.install(NAME)
        from jax_plugins.pestle import lowering
        lowering.install(NAME)
    except Exception:  # pylint: disable=broad-except
        logger.exception("Pestle lacks rules of its own with this JAX")
    try:
        from jax_plugins.pestle import ffi
        ffi.install(NAME, path)
    except Exception:  # pylint: disable=broad-except
        logger.exception("Pestle calls no foreign functions with this JAX")
    try:
        from jax_plugins.pestle import dlpack
        dlpack.install(NAME)
    except Exception:  # pylint: disable=broad-except
        logger.exception("Pestle's arrays have no DLPack with this JAX")
