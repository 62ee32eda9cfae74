# SPDX-License-Identifier: Apache-2.0
"""Where backends of other packages lie.

A package that brings a backend has either

- a folder of the namespace package pestle_plugins, pestle_plugins/NAME, with
  libpestle-NAME.so in it: listed at the start, nothing is imported; or
- an entry point of the group pestle.plugins, whose object is a module, whose folder it
  is, or a function that returns a folder: imported when a name is asked for that no
  loaded backend has, or by backends.load_all().

PESTLE_BACKEND_PATH, where it is set, is searched alone."""

import os
import sys

GROUP = "pestle.plugins"


def _alone():
    return "PESTLE_BACKEND_PATH" in os.environ


def folders():
    """Those of the namespace package, in the order of sys.path. A place that depends on
    the current folder is not searched."""
    found = []
    if _alone():
        return found
    for place in sys.path:
        if not isinstance(place, str) or not os.path.isabs(place):
            continue
        try:
            with os.scandir(os.path.join(place, "pestle_plugins")) as entries:
                found += sorted(e.path for e in entries if e.is_dir() and
                                not e.name.startswith(("_", ".")))
        except OSError:
            continue
    return found


def _folders_of(entry):
    what = entry.load()
    if callable(what):
        what = what()
    paths = getattr(what, "__path__", None)
    if paths is not None:
        return [os.path.abspath(p) for p in paths]
    if getattr(what, "__file__", None):
        return [os.path.dirname(os.path.abspath(what.__file__))]
    return [os.path.abspath(os.fspath(what))]


def entry_points():
    """The folders that packages name by entry points; one that fails is a warning."""
    if _alone():
        return []
    from importlib.metadata import entry_points as of
    found = []
    for entry in of(group=GROUP):
        try:
            found += _folders_of(entry)
        except Exception as error:  # pylint: disable=broad-except
            import warnings
            package = entry.dist.name if entry.dist else "a package"
            warnings.warn(f"the entry point {entry.name!r} of {package} in {GROUP} names "
                          f"no backend: {type(error).__name__}: {error}", RuntimeWarning,
                          stacklevel=3)
    return found


_asked = False


def search_entry_points(c):
    """Adds the folders of entry points to the search paths, once a process; whether
    there are new ones."""
    global _asked
    if _asked:
        return False
    _asked = True
    before = c.search_paths()
    new = [f for f in dict.fromkeys(entry_points()) if f not in before]
    if new:
        c.set_search_paths((*before, *new))
    return bool(new)


def install(c):
    """Adds the folders of the namespace package to the search paths."""
    new = folders()
    if new:
        c.set_search_paths((*c.search_paths(), *new))


def find(c, name):
    """Whether an entry point has the backend of the device name, which is loaded."""
    if not search_entry_points(c):
        return False
    try:
        c.load_backend(name.partition(":")[0], True)
    except c.Error:
        return False
    return True
