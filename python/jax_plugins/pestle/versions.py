# SPDX-License-Identifier: Apache-2.0
"""Every name of JAX's own that the plugin uses, each looked up where the JAX at hand has
it: what moves between releases is mended here and nowhere else."""
import logging

import jax

TESTED = ("0.10", "0.11")

logger = logging.getLogger(__name__)


def _internal(module, name):
    """jax._src.MODULE.NAME, or None with a line in the log."""
    import importlib
    try:
        return getattr(importlib.import_module("jax._src." + module), name)
    except (ImportError, AttributeError):
        logger.debug("jax %s has no jax._src.%s.%s", jax.__version__, module,
                     name)
        return None


def check(log):
    release = ".".join(jax.__version__.split(".")[:2])
    if release not in TESTED:
        log.warning("Pestle is tested with JAX %s; this is %s",
                    ", ".join(TESTED), jax.__version__)


def mark_as_tested(name):
    """No warning that the platform is experimental."""
    known = _internal("xla_bridge", "_nonexperimental_plugins")
    if known is not None:
        known.add(name)


def register_plugin(name, path, options):
    register = _internal("xla_bridge", "register_plugin")
    register(name, priority=500, library_path=path, options=options)


def allow_donation(name):
    """Donated arguments are marked in programs for listed platforms alone."""
    platforms = _internal("interpreters.mlir", "_platforms_with_donation")
    if platforms is not None and name not in platforms:
        platforms.append(name)


def mlir():
    """The module that builds MLIR."""
    from jax._src.interpreters import mlir as module
    return module


def ir():
    from jax._src.lib.mlir import ir as module
    return module


def hlo():
    from jax._src.lib.mlir.dialects import hlo as module
    return module


def shaped_array():
    return _internal("core", "ShapedArray")


def primitive(module, name):
    """A primitive or None: linalg's are in jax._src.lax.linalg."""
    return _internal(module, name)


def cpu_rule(prim):
    """The rule that JAX's own CPU backend has for a primitive, or None."""
    rules = _internal("interpreters.mlir", "_platform_specific_lowerings")
    entry = rules["cpu"].get(prim) if rules is not None else None
    return getattr(entry, "rule", entry)


def register_lowering(prim, rule, platform, cacheable=True):
    if prim is not None:
        mlir().register_lowering(prim, rule, platform=platform,
                                 cacheable=cacheable)


def replace_emit_python_callback(replacement):
    """All Python callbacks are lowered by one function. |replacement| gets the one that
    was there and returns the one to be used."""
    from jax._src import callback
    callback.emit_python_callback = replacement(callback.emit_python_callback)


def on_custom_calls(name, on_target, on_type):
    """|on_target| and |on_type| are called for what is registered for platform |name|,
    before and from now on."""
    from jax._src.lib import xla_client
    xla_client.register_custom_call_handler(name, on_target)
    # Not in every release.
    handler = getattr(xla_client, "register_custom_type_handler", None)
    if handler is not None:
        handler(name, on_type)


def array_type():
    """The class of arrays, or None."""
    return _internal("array", "ArrayImpl")


def dlpack_cpu():
    """JAX's name for the host's memory."""
    types = _internal("dlpack", "DLDeviceType")
    return types.kDLCPU if types is not None else 1


def replace_from_dlpack(replacement):
    """|replacement| gets the function that was there and returns the one to be used."""
    import jax.dlpack
    from jax._src import dlpack
    dlpack.from_dlpack = jax.dlpack.from_dlpack = replacement(dlpack.from_dlpack)


def canonical(array):
    """What a callback returned, as an array of types that JAX has on."""
    import numpy as np
    convert = (_internal("dtypes", "canonicalize_value") or
               _internal("dtypes", "canonicalize_python_scalar"))
    array = np.asarray(array)
    return np.asarray(convert(array)) if convert else array


def wait_for_effects():
    """What JAX does when the process ends, and what must be done before nobody calls
    back any more."""
    tokens = _internal("dispatch", "runtime_tokens")
    if tokens is not None:
        try:
            tokens.block_until_ready()
        except Exception:  # pylint: disable=broad-except
            logger.debug("an effect failed at the end", exc_info=True)


def debug_primitives():
    """(primitive, its rule) of debug.print and debug.callback."""
    yield (_internal("debugging", "debug_callback_p"),
           _internal("debugging", "debug_callback_lowering"))
    yield (_internal("debugging", "debug_print_p"),
           _internal("debugging", "debug_print_lowering_rule"))
