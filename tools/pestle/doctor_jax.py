# SPDX-License-Identifier: Apache-2.0
"""What is wrong when JAX does not find Pestle, in words, and what to do about it.

`pestle doctor --jax` runs this text with the Python whose JAX is meant. Whatever may end
a process is tried in a child. Each line begins with ok, note or wrong; the exit code is 1
when something is wrong.
"""
import ast
import difflib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

OLDEST_JAX = (0, 5)
LIBRARY = "pjrt_plugin_pestle.so"
VARIABLES = ("DEVICE", "FUSE", "INLINE", "LIBRARY", "MERGE", "NUMERICS", "PROGRAM_TEXT",
             "STRICT", "TIMES")

found_wrong = []


def ok(text):
    print("ok     " + text, flush=True)


def note(text):
    print("note   " + text, flush=True)


def wrong(text, cure):
    print(f"wrong  {text}\n       -> {cure}", flush=True)
    found_wrong.append(text)


def child(code, *arguments, timeout=300):
    """(what the code printed last as JSON or None, why not)."""
    try:
        done = subprocess.run([sys.executable, "-c", code, *arguments], check=False,
                              capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, f"it did not end within {timeout} seconds"
    if done.returncode < 0:
        return None, f"the process was ended by signal {-done.returncode}"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    try:
        return json.loads(lines[-1]), ""
    except (IndexError, ValueError):
        text = [line for line in done.stderr.splitlines() if line.strip()]
        return None, text[-1] if text else f"exit code {done.returncode}"


# --- JAX itself ---

def numbers(version):
    """The version's first two numbers."""
    parts = []
    for part in version.split(".")[:2]:
        digits = "".join(c for c in part if c.isdigit())
        parts.append(int(digits or 0))
    return tuple(parts)


def check_jax():
    version = ".".join(map(str, sys.version_info[:3]))
    ok(f"Python {version}: {sys.executable}")
    if importlib.util.find_spec("jax") is None:
        wrong("this Python has no jax",
              "install it (pip install jax), or name the Python that has it: "
              "pestle doctor --jax --python PYTHON")
        return None
    seen, why = child("import json, jax, jaxlib\n"
                      "print(json.dumps(dict(jax=jax.__version__, "
                      "jaxlib=jaxlib.__version__)))")
    if seen is None:
        wrong(f"jax is there and cannot be imported: {why}",
              "install jax anew: pip install --force-reinstall jax jaxlib")
        return None
    jax, jaxlib = seen["jax"], seen["jaxlib"]
    if numbers(jax) < OLDEST_JAX:
        wrong(f"this is JAX {jax}; Pestle needs {OLDEST_JAX[0]}.{OLDEST_JAX[1]} or newer",
              "pip install --upgrade jax")
    elif numbers(jax) != numbers(jaxlib):
        wrong(f"JAX {jax} and jaxlib {jaxlib} are of different releases",
              f"pip install jaxlib=={jax}")
    else:
        ok(f"JAX {jax}, jaxlib {jaxlib}")
    return jax


def check_tested(jax, folder):
    """Against the table of the Python side that is there."""
    try:
        tree = ast.parse((folder / "versions.py").read_text())
        tested = next(ast.literal_eval(node.value) for node in tree.body
                      if isinstance(node, ast.Assign) and node.targets[0].id == "TESTED")
    except (OSError, SyntaxError, StopIteration, ValueError):
        wrong(f"{folder} has no table of JAX's versions that can be read",
              "install jax-pestle anew")
        return
    release = "%d.%d" % numbers(jax)
    if release in tested:
        ok(f"JAX {release} is one that this Pestle is tested with")
    else:
        note(f"Pestle is tested with JAX {', '.join(tested)}; this is {jax}: most will "
             "work, and what JAX has moved is left out with a line in the log")


# --- Who registers the plugin ---

def python_sides():
    """Folders jax_plugins/pestle in the order in which Python takes them."""
    folders = []
    for entry in sys.path:
        folder = pathlib.Path(entry or ".") / "jax_plugins"
        if (folder / "__init__.py").exists():
            return folders, folder
        if (folder / "pestle" / "__init__.py").exists():
            folders.append(folder / "pestle")
    return folders, None


def by_variable():
    """The path that PJRT_NAMES_AND_LIBRARY_PATHS has for pestle."""
    text = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "")
    path = None
    for entry in text.split(",") if text else ():
        parts = entry.split(os.pathsep)
        if len(parts) != 2 or not all(parts):
            wrong(f"PJRT_NAMES_AND_LIBRARY_PATHS has '{entry}', which JAX drops",
                  f"write NAME{os.pathsep}PATH, several with a comma between")
        elif parts[0] == "pestle":
            path = pathlib.Path(parts[1])
        elif pathlib.Path(parts[1]).name == LIBRARY:
            wrong(f"PJRT_NAMES_AND_LIBRARY_PATHS calls {LIBRARY} '{parts[0]}'; the client "
                  "calls itself pestle, and JAX looks for its rules under that name",
                  f"write pestle{os.pathsep}{parts[1]}")
    return path


def find_plugin(jax):
    """The library that JAX will open; None where there is none."""
    folders, hidden_by = python_sides()
    if hidden_by is not None:
        wrong(f"{hidden_by}/__init__.py hides the plugins of other folders: jax_plugins "
              "is a package without a file of its own",
              "remove that file")
    given = by_variable()
    if not folders and given is None:
        wrong("JAX finds no plugin called pestle: there is no jax_plugins/pestle on "
              "Python's path, and PJRT_NAMES_AND_LIBRARY_PATHS does not name one",
              "pip install jax-pestle, or add LIB/pestle/python of an installation to "
              "PYTHONPATH")
        return None
    for other in folders[1:]:
        note(f"{other} is hidden by {folders[0]}")
    if given is not None and folders:
        wrong(f"the plugin is registered twice: by {folders[0]} and by "
              "PJRT_NAMES_AND_LIBRARY_PATHS",
              "unset PJRT_NAMES_AND_LIBRARY_PATHS; PESTLE_PJRT_LIBRARY is what names "
              "another library to the Python side")
    if folders:
        ok(f"the Python side is {folders[0]}")
        check_tested(jax, folders[0])
        return library_of(folders[0])
    note("the plugin is named by PJRT_NAMES_AND_LIBRARY_PATHS alone: nothing is donated, "
         "and there are no Python callbacks")
    return check_file(given, "PJRT_NAMES_AND_LIBRARY_PATHS")


def library_of(folder):
    given = os.environ.get("PESTLE_PJRT_LIBRARY")
    if given:
        return check_file(pathlib.Path(given), "PESTLE_PJRT_LIBRARY")
    folder = folder.resolve()
    places = [folder, *folder.parents[3:4]]  # none above /FOLDER/jax_plugins/pestle
    for place in places:
        if (place / LIBRARY).exists():
            return check_file(place / LIBRARY, None)
    wrong(f"{LIBRARY} is neither in {' nor in '.join(map(str, places))}",
          "install jax-pestle anew, or set PESTLE_PJRT_LIBRARY to its path")
    return None


def check_file(path, variable):
    said = f"{variable} names {path}" if variable else str(path)
    cure = (f"set {variable} to the path of {LIBRARY}" if variable else
            "install jax-pestle anew")
    if not path.exists():
        wrong(f"{said}, which is not there", cure)
        return None
    if path.suffix == ".json":  # JAX reads the path from it
        try:
            return check_file(pathlib.Path(json.loads(path.read_text())["library_path"]),
                              None)
        except (OSError, ValueError, KeyError):
            wrong(f"{said}, which has no library_path", cure)
            return None
    if path.is_dir():
        wrong(f"{said}, which is a folder", cure)
        return None
    return path


# --- The library ---

LOAD = r"""
import ctypes, importlib.util, json, pathlib, sys
class Version(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p),
                ("major", ctypes.c_int), ("minor", ctypes.c_int)]
class Api(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p),
                ("version", Version)]
out = {}
def maps():
    paths = []
    try:
        for line in open("/proc/self/maps"):
            path = line.split(None, 5)[-1].strip()
            if "/libpestle.so" in path and path not in paths:
                paths.append(path)
    except OSError:
        pass
    return paths
def shared():
    spec = importlib.util.find_spec("pestle")
    for folder in spec.submodule_search_locations or () if spec else ():
        library = pathlib.Path(folder) / "lib" / "libpestle.so.0"
        if library.exists():
            ctypes.CDLL(str(library))
            return
try:
    if sys.argv[2] == "1":
        shared()
    plugin = ctypes.CDLL(sys.argv[1])
    try:
        get = plugin.GetPjrtApi
    except AttributeError:
        raise OSError("no GetPjrtApi")
    get.restype = ctypes.POINTER(Api)
    version = get().contents.version
    out["abi"] = [version.major, version.minor]
    try:
        import pestle
        out["package"] = getattr(pestle, "__version__", "")
    except ImportError as e:
        out["no_package"] = str(e) if e.name not in ("pestle", None) else ""
    out["libraries"] = maps()
    if out["libraries"]:
        library = ctypes.CDLL(out["libraries"][0])
        library.pestle_version.restype = ctypes.c_char_p
        out["library_version"] = library.pestle_version().decode()
except OSError as e:
    out["error"] = str(e)
print(json.dumps(out))
"""


def say_not_loaded(path, error):
    if "libpestle.so" in error and "cannot open shared object" in error:
        wrong(f"{path} finds no libpestle.so.0",
              "pip install pestle, or put the folder of libpestle.so.0 into "
              "LD_LIBRARY_PATH")
    elif "undefined symbol" in error:
        symbol = error.split("undefined symbol:")[-1].split(",")[0].strip()
        wrong(f"{path} needs {symbol}, which the libpestle.so.0 that it finds does not "
              "have: they are of different releases",
              "install pestle and jax-pestle of one version")
    elif "GLIBC" in error:
        wrong(f"{path} needs a newer C library than this system has: {error}",
              "use a newer system, or build Pestle on this one")
    elif "no GetPjrtApi" in error:
        wrong(f"{path} has no GetPjrtApi: it is no PJRT plugin",
              f"name {LIBRARY} instead")
    elif any(word in error for word in ("invalid ELF header", "file too short",
                                        "wrong ELF class", "wrong architecture")):
        wrong(f"{path} is no shared library of this machine: {error}",
              "install jax-pestle anew, for this machine")
    else:
        wrong(f"{path} cannot be loaded: {error}", "install jax-pestle anew")


def check_library(path, has_python_side):
    seen, why = child(LOAD, str(path.absolute()), "1" if has_python_side else "0")
    if seen is None:
        wrong(f"{path} cannot be loaded: {why}", "install jax-pestle anew")
        return False
    if "error" in seen:
        say_not_loaded(path, seen["error"])
        return False
    major, minor = seen["abi"]
    if major != 0 or minor < 29:
        wrong(f"{path} speaks version {major}.{minor} of the PJRT C API; JAX needs 0.29 or "
              "newer", "install jax-pestle anew")
        return False
    ok(f"{path}: PJRT C API {major}.{minor}")
    libraries = seen["libraries"]
    if len(libraries) > 1:
        wrong("libpestle is in the process twice, with a thread pool and a cache each: "
              + " and ".join(libraries),
              "keep one: uninstall one of them, or unset LD_LIBRARY_PATH or "
              "PESTLE_PJRT_LIBRARY that leads to the other")
    elif libraries:
        ok(f"{libraries[0]}: Pestle {seen['library_version']}")
    package = seen.get("package")
    if package and package != seen.get("library_version", package):
        wrong(f"the package pestle is {package}, the library that the plugin uses "
              f"{seen['library_version']}", "install pestle and jax-pestle of one version")
    if seen.get("no_package"):
        note(f"the package pestle cannot be imported: {seen['no_package']}")
    return True


# --- What JAX is told ---

def check_variables():
    for name in sorted(os.environ):
        if not name.startswith("PESTLE_PJRT_"):
            continue
        key = name[len("PESTLE_PJRT_"):]
        if key not in VARIABLES:
            near = difflib.get_close_matches(key, VARIABLES, 1)
            wrong(f"nobody reads {name}", f"did you mean PESTLE_PJRT_{near[0]}?" if near
                  else "its names are in docs/jax.md")
    text = os.environ.get("JAX_PJRT_CLIENT_CREATE_OPTIONS", "")
    for option in text.split(";") if text else ():
        if option and ":" not in option:
            wrong(f"JAX_PJRT_CLIENT_CREATE_OPTIONS has '{option}', which JAX refuses",
                  "write name:value, several with a ';' between")
    name = "JAX_PLATFORMS"
    platforms = os.environ.get(name) or ""
    if not platforms:
        name = "JAX_PLATFORM_NAME"
        platforms = os.environ.get(name) or ""
    names = [p.strip() for p in platforms.split(",") if p.strip()]
    if not names or "pestle" in names:
        return
    near = [p for p in names if difflib.get_close_matches(p, ["pestle"], 1)]
    if near:
        wrong(f"{name} has '{near[0]}', which is no platform",
              f"write {name}={platforms.replace(near[0], 'pestle')}")
    else:
        wrong(f"{name} is '{platforms}', which leaves Pestle out",
              f"set {name}=pestle,cpu, or unset it")


# --- A program ---

RUN = r"""
import json, os, warnings
warnings.simplefilter("ignore")
out = {}
try:
    import jax, jax.numpy as jnp
    devices = jax.devices("pestle")
    out["devices"] = [str(d) for d in devices]
    out["kind"] = devices[0].device_kind
    out["default"] = jax.default_backend()
    with jax.default_device(devices[0]):
        y = jax.jit(lambda x: (x @ x).sum())(jnp.ones((4, 4)))
    out["value"] = float(y)
except Exception as e:
    out["error"] = f"{type(e).__name__}: {e}".splitlines()[0]
print(json.dumps(out))
"""


def check_program():
    seen, why = child(RUN)
    if seen is None:
        wrong(f"JAX with Pestle ends the process: {why}", "report it, with this text")
        return
    error = seen.get("error")
    if error and "devices" not in seen:
        device = os.environ.get("PESTLE_PJRT_DEVICE")
        cure = ("'pestle plugins list --why' says why a backend is not used")
        if device:
            cure += f"; PESTLE_PJRT_DEVICE={device} asks for it, unset it for the default"
        wrong(f"JAX makes no client of Pestle: {error}", cure)
    elif error:
        wrong(f"a first program fails: {error}",
              "'pestle plugins list --why' says what each backend lacks")
    elif seen["value"] != 64.0:
        wrong(f"a first program gives {seen['value']} instead of 64", "report it")
    else:
        ok(f"a program runs on {', '.join(seen['devices'])} ({seen['kind']})")
        if seen["default"] != "pestle":
            note(f"JAX's default is {seen['default']}: set JAX_PLATFORMS=pestle,cpu, or "
                 "name the device")


def main():
    jax = check_jax()
    check_variables()
    path = find_plugin(jax) if jax else None
    if path is not None and check_library(path, bool(python_sides()[0])):
        check_program()
    print("JAX finds Pestle" if not found_wrong else
          f"{len(found_wrong)} thing{'s are' if len(found_wrong) > 1 else ' is'} wrong")
    return 1 if found_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
