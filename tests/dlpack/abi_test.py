#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""base/dlpack_abi.h against the dlpack.h of a wheel: sizes, offsets and values, by a C
compiler that sees both. Skips where no installed package has the header of 1.3."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PLACES = [("tvm_ffi", "include/dlpack/dlpack.h"),
          ("torch", "include/ATen/dlpack.h")]

STRUCTS = {
    ("struct DLManagedTensor", "TheirManagedTensor"):
        ["dl_tensor", "manager_ctx", "deleter"],
    ("struct DLManagedTensorVersioned", "TheirManagedTensorVersioned"):
        ["version", "manager_ctx", "deleter", "flags", "dl_tensor"],
    ("pestle_tensor_t", "DLTensor"):
        ["data", "device", "ndim", "dtype", "shape", "strides", "byte_offset"],
    ("pestle_dl_device_t", "DLDevice"): ["device_type", "device_id"],
    ("pestle_dl_dtype_t", "DLDataType"): ["code", "bits", "lanes"],
    ("pestle_dl_version_t", "DLPackVersion"): ["major", "minor"],
    ("pestle_dl_exchange_header_t", "DLPackExchangeAPIHeader"):
        ["version", ("previous", "prev_api")],
    ("pestle_dl_exchange_t", "DLPackExchangeAPI"): [
        "header", ("allocate", "managed_tensor_allocator"),
        ("from_object", "managed_tensor_from_py_object_no_sync"),
        ("to_object", "managed_tensor_to_py_object_no_sync"),
        ("borrow", "dltensor_from_py_object_no_sync"),
        ("current_stream", "current_work_stream")],
}

DEVICES = {"CPU": "CPU", "CUDA": "CUDA", "CUDA_HOST": "CUDAHost",
           "OPENCL": "OpenCL", "VULKAN": "Vulkan", "METAL": "Metal",
           "VPI": "VPI", "ROCM": "ROCM", "ROCM_HOST": "ROCMHost",
           "EXT_DEV": "ExtDev", "CUDA_MANAGED": "CUDAManaged",
           "ONE_API": "OneAPI", "WEB_GPU": "WebGPU", "HEXAGON": "Hexagon",
           "MAIA": "MAIA", "TRN": "Trn"}

CODES = {"INT": "Int", "UINT": "UInt", "FLOAT": "Float",
         "OPAQUE_HANDLE": "OpaqueHandle", "BFLOAT": "Bfloat",
         "COMPLEX": "Complex", "BOOL": "Bool", "FLOAT8_E3M4": "Float8_e3m4",
         "FLOAT8_E4M3": "Float8_e4m3", "FLOAT8_E4M3B11FNUZ":
         "Float8_e4m3b11fnuz", "FLOAT8_E4M3FN": "Float8_e4m3fn",
         "FLOAT8_E4M3FNUZ": "Float8_e4m3fnuz", "FLOAT8_E5M2": "Float8_e5m2",
         "FLOAT8_E5M2FNUZ": "Float8_e5m2fnuz", "FLOAT8_E8M0FNU":
         "Float8_e8m0fnu", "FLOAT6_E2M3FN": "Float6_e2m3fn",
         "FLOAT6_E3M2FN": "Float6_e3m2fn", "FLOAT4_E2M1FN": "Float4_e2m1fn"}

FLAGS = {"READ_ONLY": "READ_ONLY", "IS_COPIED": "IS_COPIED",
         "IS_PADDED": "IS_SUBBYTE_TYPE_PADDED"}


def find_header():
    for package, place in PLACES:
        spec = importlib.util.find_spec(package)
        for root in (spec.submodule_search_locations or []) if spec else []:
            path = pathlib.Path(root) / place
            if path.exists() and "DLPackExchangeAPI" in path.read_text():
                return path
    return None


def enumerators(path, prefix):
    """Those of dlpack.h that a table of ours must have."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    body = re.search(r"enum[^{]*\{([^}]*)\}\s*" + prefix, text)
    assert body, f"dlpack.h has no enum {prefix}"
    return set(re.findall(r"kDL(\w+)", body.group(1)))


def unit(path):
    text = ["#define DLManagedTensor TheirManagedTensor",
            "#define DLManagedTensorVersioned TheirManagedTensorVersioned",
            f'#include "{path}"', "#undef DLManagedTensor",
            "#undef DLManagedTensorVersioned",
            '#include "base/dlpack_abi.h"', "#include <stddef.h>"]

    def equal(a, b):
        text.append(f'_Static_assert((long)({a}) == (long)({b}), "{a}, {b}");')

    for (ours, theirs), fields in STRUCTS.items():
        equal(f"sizeof({ours})", f"sizeof({theirs})")
        equal(f"_Alignof({ours})", f"_Alignof({theirs})")
        for field in fields:
            mine, other = field if isinstance(field, tuple) else (field, field)
            equal(f"offsetof({ours}, {mine})", f"offsetof({theirs}, {other})")
            equal(f"sizeof((({ours}*)0)->{mine})",
                  f"sizeof((({theirs}*)0)->{other})")
    for table, prefix in ((DEVICES, "PESTLE_DL_"), (CODES, "PESTLE_DL_")):
        for ours, theirs in table.items():
            equal(prefix + ours, "kDL" + theirs)
    for ours, theirs in FLAGS.items():
        equal(f"PESTLE_DL_{ours}", f"DLPACK_FLAG_BITMASK_{theirs}")
    equal("PESTLE_DL_MAJOR", "DLPACK_MAJOR_VERSION")
    equal("PESTLE_DL_MINOR", "DLPACK_MINOR_VERSION")
    return "\n".join(text) + "\n"


def main():
    path = find_header()
    if not path:
        print("no package has dlpack.h 1.3: pip install apache-tvm-ffi")
        return 77
    assert enumerators(path, "DLDeviceType") == set(DEVICES.values())
    assert enumerators(path, "DLDataTypeCode") == set(CODES.values())
    source = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"])
    build = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "abi.c"
        file.write_text(unit(path), encoding="utf-8")
        subprocess.run(
            [shutil.which("cc"), "-std=c11", "-fsyntax-only", f"-I{source}",
             f"-I{source / 'include'}", f"-I{build / 'include'}", str(file)],
            check=True)
        # The check can fail.
        file.write_text(unit(path) +
                        "_Static_assert(sizeof(DLTensor) == 47, \"\");\n")
        wrong = subprocess.run(
            [shutil.which("cc"), "-std=c11", "-fsyntax-only", f"-I{source}",
             f"-I{source / 'include'}", f"-I{build / 'include'}", str(file)],
            check=False, stderr=subprocess.DEVNULL)
        assert wrong.returncode
    print(f"equal to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
