#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data/NAME.VERSION.bc from data/NAME.mlir: portable artifacts of old and
new versions of StableHLO, and its own bytecode (NAME.own.bc); of specification.mlir the
generic form, too. Needs jaxlib.

usage: make_data.py [NAME ...]
"""

import io
import pathlib
import sys

from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

# What has no form in the older versions is left out there.
VERSIONS = ("0.9.0", "0.12.0", "0.14.0", "1.4.0", "1.17.0")
DATA = pathlib.Path(__file__).parent / "data"


def main():
    names = sys.argv[1:] or sorted(p.stem for p in DATA.glob("*.mlir")
                                   if "." not in p.stem)
    for name in names:
        text = (DATA / f"{name}.mlir").read_text()
        with mlir.make_ir_context():
            module = ir.Module.parse(text)
            if name == "specification":
                form = module.operation.get_asm(print_generic_op_form=True)
                (DATA / f"{name}.generic.mlir").write_text(form)
            strip = "builtin.module(strip-debuginfo)"
            passmanager.PassManager.parse(strip).run(module.operation)
            own = io.BytesIO()
            module.operation.write_bytecode(own)
            (DATA / f"{name}.own.bc").write_bytes(own.getvalue())
            for version in VERSIONS:
                try:
                    data = stablehlo.serialize_portable_artifact(module, version, True)
                except Exception as error:
                    print(f"{name} {version}: {str(error).splitlines()[0]}")
                    continue
                (DATA / f"{name}.{version}.bc").write_bytes(data)


if __name__ == "__main__":
    main()
