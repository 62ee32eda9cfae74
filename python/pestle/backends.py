# SPDX-License-Identifier: Apache-2.0
"""Backends: which there are, why others are not, loading them at any time."""

from . import _pestle as c


class Backend:
    """A backend that was found: name, path, score, device_type, device_count, reason
    why it is not used ("" where it is), properties of its devices.

    Raises nothing but what its fields raise.

    >>> [b.available for b in pt.backends.list() if b.name == "ref"]
    [True]
    """

    def __init__(self, row):
        self.__dict__.update(row)

    @property
    def available(self):
        """Whether it runs."""
        return not self.reason

    @property
    def properties(self):
        """A dict for each device."""
        if not self.available:
            return []
        return [c.device(f"{self.name}:{i}" if i else self.name).properties
                for i in range(self.device_count)]

    def __repr__(self):
        state = "" if self.available else f", reason={self.reason!r}"
        return (f"Backend({self.name}, score={self.score}, type={self.device_type}, "
                f"devices={self.device_count}{state})")


def list():
    """All backends that were found, those that are not used too.

    Raises Error where no backend can be looked for.

    >>> any(b.name == "ref" for b in pt.backends.list())
    True
    """
    return [Backend(row) for row in c.backend_list()]


def devices():
    """All devices: those of GPUs first, the best backend first.

    Raises Error where no backend is there.

    >>> pt.device("cpu") in pt.backends.devices()
    True
    """
    return c.device_list()


def load(path):
    """Loads a file of a backend.

    Raises Error that says why the file is no backend that runs here.

    >>> pt.backends.load("libpestle-none.so")
    Traceback (most recent call last):
        ...
    pestle.Error: ...
    """
    import os
    c.load_backend(os.fspath(path), False)


def load_best(name):
    """Loads the best file of the backend name that the search paths have, or an entry
    point of the group pestle.plugins names.

    Raises Error that says which files were found and why none of them runs here.

    >>> pt.backends.load_best("ref")
    """
    try:
        c.load_backend(name, True)
    except c.Error as error:
        from . import _plugins
        if error.code != "NOT_FOUND" or not _plugins.search_entry_points(c):
            raise
        c.load_backend(name, True)


def load_all(allowed=(), blocked=(), filter=None):
    """Loads what the search paths and the entry points of the group pestle.plugins have:
    names that one of the globs allowed matches, and none of blocked, and that
    filter(name, path, score) takes.

    Raises TypeError for no texts, and what filter raises.

    >>> pt.backends.load_all(allowed=["ref"])
    """
    from . import _plugins
    _plugins.search_entry_points(c)
    c.load_backends(tuple(allowed), tuple(blocked), filter)


def search_paths():
    """The folders that backends are looked for in.

    Raises Error where no backend can be looked for.

    >>> isinstance(pt.backends.search_paths(), (list, tuple))
    True
    """
    return c.search_paths()


def set_search_paths(paths):
    """Replaces the folders for loads that follow.

    Raises TypeError for no texts.

    >>> pt.backends.set_search_paths(pt.backends.search_paths())
    """
    c.set_search_paths(tuple(paths))


def why():
    """A line for each backend: what became of it.

    Raises Error where no backend can be looked for.

    >>> "ref" in pt.backends.why()
    True
    """
    return "\n".join(
        f"{b.name:10} {'loaded' if b.available else b.reason}  {b.path}".rstrip()
        for b in list())
