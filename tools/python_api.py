#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the built package says of itself: the stubs python/pestle/*.pyi and
docs/python-api.md, from signatures and docstrings. With --check, says what differs.

usage: PYTHONPATH=BUILD_DIR/python tools/python_api.py SOURCE_DIR [--check]
"""

import importlib
import inspect
import pathlib
import sys

import pestle

MODULES = ("", "linalg", "fft", "random", "tree", "backends")
HEADS = {
    "": "The namespace", "linalg": "Linear algebra", "fft": "Transforms",
    "random": "Random numbers", "tree": "Trees", "backends": "Backends",
}
SKIPPED = {"Program", "Jit", "hooks", "OPS"}
# What a name of a parameter is, where it is not an array.
TYPES = {
    "axis": "int | tuple[int, ...] | None", "axes": "Any", "dtype": "dtype | None",
    "device": "device | str | None", "stream": "Stream | device | str | None",
    "shape": "int | Sequence[int]",
    "keepdims": "builtins.bool", "function": "Callable[..., Any]", "self": "",
    "x": "Array", "x1": "Array | float", "x2": "Array | float", "key": "Array",
}
RESULTS = {
    "isdtype": "builtins.bool", "can_cast": "builtins.bool", "result_type": "dtype",
    "eval": "None", "async_eval": "None", "jit": "Any", "load": "Function",
    "load_onnx": "Function", "from_stablehlo": "Function", "lower": "Lowered",
    "export": "bytes", "stats": "dict[str, int]", "broadcast_shapes":
    "tuple[int, ...]",
}


def public(module):
    """(name, object) of what a module shows and has itself."""
    for name in sorted(dir(module)):
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or "pestle._pestle"
        own = home.startswith("pestle") or type(value).__name__ in (
            "dtype", "builtin_function_or_method")
        if name.startswith("_") or name in SKIPPED or inspect.ismodule(value) or not own:
            continue
        if module is not pestle and (
                home not in (module.__name__, "pestle._linear") and
                not (name in ("flatten", "register", "Structure") and
                     module is pestle.tree)):
            continue
        if isinstance(value, (int, float, str)) or value is None:
            continue
        yield name, value


def signature_of(value):
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return None
    if not getattr(value, "takes_stream", False):
        return signature
    stream = inspect.Parameter("stream", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = list(signature.parameters.values())
    at = len(parameters) - (bool(parameters) and
                            parameters[-1].kind is inspect.Parameter.VAR_KEYWORD)
    return signature.replace(parameters=[*parameters[:at], stream, *parameters[at:]])


def stub_parameter(p):
    text = p.name
    if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
        kind = p.annotation if isinstance(p.annotation, str) else "Any"
        return ("*" if p.kind is p.VAR_POSITIONAL else "**") + text + ": " + kind
    kind = p.annotation if isinstance(p.annotation, str) else TYPES.get(p.name, "Any")
    text += f": {kind}" if kind else ""
    return text + (" = ..." if p.default is not p.empty else "")


def stub_signature(signature, method=False):
    parts, star = [], False
    parameters = list(signature.parameters.values())
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not star:
            if not any(q.kind is q.VAR_POSITIONAL for q in parameters[:i]):
                parts.append("*")
            star = True
        parts.append(stub_parameter(p))
        only = p.kind is p.POSITIONAL_ONLY
        if only and (i + 1 == len(parameters) or
                     parameters[i + 1].kind is not p.POSITIONAL_ONLY):
            parts.append("/")
    return "(" + ", ".join(parts) + ")"


def stub_function(name, value, indent=""):
    signature = signature_of(value)
    text = stub_signature(signature) if signature else "(*args: Any, **kwargs: Any)"
    default = "Array" if indent == "" else "Any"
    result = RESULTS.get(name, default)
    if signature and isinstance(signature.return_annotation, str):
        result = signature.return_annotation
    return f"{indent}def {name}{text} -> {result}: ..."


def stub_class(name, value):
    lines = [f"class {name}:"]
    lines += [f"    {n}: {kind}" for n, kind in vars(value).get("__annotations__", {}).items()
              if not n.startswith("_")]
    for member, object_ in sorted(vars(value).items()):
        special = member.startswith("__")
        if member.startswith("_") and not special:
            continue
        if special and member in ("__module__", "__dict__", "__weakref__", "__doc__",
                                  "__slots__", "__hash__", "__array_ufunc__", "__annotations__"):
            continue
        if isinstance(object_, property) or inspect.isgetsetdescriptor(object_):
            lines += ["    @property", f"    def {member}(self) -> Any: ..."]
        elif callable(object_):
            if special and not getattr(object_, "__annotations__", None):
                lines.append(f"    def {member}(self, *args: Any, **kwargs: Any) -> "
                             "Any: ...")
            else:
                lines.append(stub_function(member, object_, "    "))
    return lines if len(lines) > 1 else [lines[0] + " ..."]


def stub(module):
    lines = ["# SPDX-License-Identifier: Apache-2.0",
             "# Written by tools/python_api.py.", "import builtins",
             "from typing import Any, Callable, " +
             ("Iterator, " if module is pestle else "") + "Sequence", ""]
    if module is not pestle:
        lines += ["from pestle import Array, device, dtype", ""]
    for name, value in public(module):
        if inspect.isclass(value):
            lines += stub_class(name, value)
        elif type(value).__name__ == "dtype":
            lines.append(f"{name}: dtype")
        elif callable(value):
            lines.append(stub_function(name, value))
    if module is pestle:
        lines += ["e: float", "pi: float", "inf: float", "nan: float", "newaxis: None",
                  "__version__: str", "__array_api_version__: str",
                  "def __array_namespace_info__() -> Any: ...",
                  "from pestle import backends as backends, fft as fft",
                  "from pestle import linalg as linalg, random as random, tree as tree"]
    return "\n".join(lines) + "\n"


def plain(signature):
    """Without types, which the stubs have."""
    return inspect.Signature([p.replace(annotation=p.empty) for p in signature.parameters.values()])


def entry(name, value):
    signature = signature_of(value)
    shown = "" if signature is None or not callable(value) else str(plain(signature))
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    text = text.replace("|", "\\|")
    return f"| `{name}{shown.replace('|', chr(92) + '|')}` | {text} |"


def page():
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->",
             "<!-- Written by tools/python_api.py. -->", "# What the package has", "",
             "[python.md](python.md) says how it is used.", ""]
    for name in MODULES:
        module = importlib.import_module("pestle" + ("." + name if name else ""))
        prefix = "pestle" + ("." + name if name else "")
        lines += [f"## {HEADS[name]}: `{prefix}`", "", "| | |", "|---|---|"]
        lines += [entry(n, v) for n, v in public(module)
                  if type(v).__name__ != "dtype"]
        lines.append("")
    return "\n".join(lines)


def undocumented():
    for name in MODULES:
        module = importlib.import_module("pestle" + ("." + name if name else ""))
        for n, value in public(module):
            if callable(value) and not inspect.getdoc(value):
                yield f"pestle.{name + '.' if name else ''}{n}"


def main():
    root = pathlib.Path(sys.argv[1])
    files = {root / "docs/python-api.md": page()}
    for name in MODULES:
        module = importlib.import_module("pestle" + ("." + name if name else ""))
        files[root / f"python/pestle/{name or '__init__'}.pyi"] = stub(module)
    problems = [f"{name} has no docstring" for name in undocumented()]
    for path, text in files.items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            problems.append(f"{path.relative_to(root)} is not what the package says: "
                            "run tools/python_api.py")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
