# SPDX-License-Identifier: Apache-2.0
"""The libraries: how each makes an array, reads one, and takes a tensor."""

import importlib

from .cells import Absent


class Library:
    """What all of them can do by way of NumPy-like names; each says what it lacks."""

    name = module = ""
    writes = False  # whether elements can be set in place
    views = True  # whether transposes and slices are views
    negative = False  # whether strides may be negative
    takes_capsules = False

    def __init__(self):
        self.m = importlib.import_module(self.module)

    def dtype(self, name):
        found = getattr(self.m, name, None)
        if found is None:
            raise Absent(f"{self.name} has no {name}")
        return found

    def make(self, values, shape, dtype="float32"):
        raise NotImplementedError

    def take(self, x, **keywords):
        return self.m.from_dlpack(x, **keywords)

    def flat(self, y):
        """The elements as Python's numbers, row-major."""
        raise NotImplementedError

    def shape(self, y):
        return tuple(y.shape)

    def address(self, y):
        raise Absent(f"{self.name} shows no addresses")

    def transposed(self, x):
        return x.T

    def stepped(self, x):
        return x[::2]

    def reversed(self, x):
        raise Absent(f"{self.name} has no negative strides")

    def repeated(self, x, shape):
        return self.m.broadcast_to(x, shape)

    def shifted(self, x):
        return x[1:]

    def read_only(self, x):
        raise Absent(f"{self.name} has no read-only arrays")

    def is_writable(self, y):
        return False

    def set(self, x, index, value):
        raise Absent(f"elements of {self.name}'s arrays cannot be set")


class NumPy(Library):
    name = module = "numpy"
    writes = negative = True

    def make(self, values, shape, dtype="float32"):
        wanted = self.m.dtype(bool if dtype == "bool" else self.dtype(dtype))
        return self.m.array(values, wanted).reshape(shape)

    def dtype(self, name):
        return bool if name == "bool" else super().dtype(name)

    def flat(self, y):
        return y.reshape(-1).tolist()

    def address(self, y):
        return y.__array_interface__["data"][0]

    def reversed(self, x):
        return x[::-1]

    def read_only(self, x):
        x.flags.writeable = False
        return x

    def is_writable(self, y):
        return bool(y.flags.writeable)

    def set(self, x, index, value):
        x.reshape(-1)[index] = value


class Strict(Library):
    name, module = "array-api-strict", "array_api_strict"
    writes = True

    def make(self, values, shape, dtype="float32"):
        return self.m.reshape(self.m.asarray(values, dtype=self.dtype(dtype)), shape)

    def flat(self, y):
        return y._array.reshape(-1).tolist()

    def address(self, y):
        return y._array.__array_interface__["data"][0]

    def reversed(self, x):
        return x[::-1] if x.ndim == 1 else x[::-1, ...]

    def stepped(self, x):
        return x[::2] if x.ndim == 1 else x[::2, ...]

    def shifted(self, x):
        return x[1:] if x.ndim == 1 else x[1:, ...]

    def is_writable(self, y):
        return bool(y._array.flags.writeable)

    def set(self, x, index, value):
        x[index] = value


class Torch(Library):
    name = module = "torch"
    writes = takes_capsules = True

    def make(self, values, shape, dtype="float32"):
        wanted = self.dtype(dtype)
        return self.m.tensor(values).to(wanted).reshape(shape)

    def take(self, x, **keywords):
        return self.m.from_dlpack(x, **keywords)

    def flat(self, y):
        wide = y.float() if y.dtype.itemsize < 4 and y.dtype.is_floating_point else y
        return wide.reshape(-1).tolist()

    def address(self, y):
        return y.data_ptr()

    def is_writable(self, y):
        return True

    def set(self, x, index, value):
        x.view(-1)[index] = value


class Jax(Library):
    name, module = "jax", "jax"

    def __init__(self):
        super().__init__()
        self.m.config.update("jax_enable_x64", True)
        self.m.config.update("jax_platforms", "cpu")
        self.n = importlib.import_module("jax.numpy")
        self.d = importlib.import_module("jax.dlpack")

    def dtype(self, name):
        found = getattr(self.n, "bool_" if name == "bool" else name, None)
        if found is None:
            raise Absent(f"jax has no {name}")
        return found

    def make(self, values, shape, dtype="float32"):
        made = self.n.array(values).astype(self.dtype(dtype)).reshape(shape)
        return made.block_until_ready()

    def take(self, x, **keywords):
        if "device" in keywords:
            keywords["device"] = self.m.devices("cpu")[0]
        return self.d.from_dlpack(x, **keywords)

    def flat(self, y):
        import numpy
        return numpy.asarray(y).astype(
            numpy.float32 if str(y.dtype).startswith(("bf", "float8", "float4"))
            else y.dtype).reshape(-1).tolist()

    def address(self, y):
        return y.unsafe_buffer_pointer()

    def repeated(self, x, shape):
        raise Absent("jax copies what is repeated")

    def reversed(self, x):
        return x[::-1]


class Mlx(Library):
    name, module = "mlx", "mlx.core"

    def dtype(self, name):
        return super().dtype("bool_" if name == "bool" else name)

    def make(self, values, shape, dtype="float32"):
        made = self.m.array(values).astype(self.dtype(dtype)).reshape(shape)
        self.m.eval(made)
        return made

    def take(self, x, **keywords):
        if keywords:
            raise Absent("mlx.core.array takes no copy and no device")
        if hasattr(self.m, "from_dlpack"):
            return self.m.from_dlpack(x)
        return self.m.array(x)

    def flat(self, y):
        wide = y.astype(self.m.float32) if y.dtype == self.m.bfloat16 else y
        return self.m.reshape(wide, (-1,)).tolist() if y.size else []

    def reversed(self, x):
        return x[::-1]


class TvmFfi(Library):
    name, module = "tvm-ffi", "tvm_ffi"
    takes_capsules = True

    def make(self, values, shape, dtype="float32"):
        import numpy
        wanted = getattr(numpy, "bool_" if dtype == "bool" else dtype, None)
        if wanted is None:
            raise Absent(f"numpy has no {dtype}")
        return self.m.from_dlpack(numpy.array(values, wanted).reshape(shape))

    def take(self, x, **keywords):
        if keywords:
            raise Absent("tvm_ffi.from_dlpack takes no copy and no device")
        return self.m.from_dlpack(x)

    def flat(self, y):
        import numpy
        return numpy.from_dlpack(y).reshape(-1).tolist()

    def address(self, y):
        import numpy
        return numpy.from_dlpack(y).__array_interface__["data"][0]

    def transposed(self, x):
        raise Absent("tvm_ffi has no transposes")

    stepped = shifted = transposed

    def repeated(self, x, shape):
        raise Absent("tvm_ffi repeats nothing")


class Pestle(Library):
    name = module = "pestle"
    takes_capsules = True

    def make(self, values, shape, dtype="float32"):
        m = self.m
        made = m.reshape(m.asarray(values), shape)
        made = m.astype(made, self.dtype(dtype))
        m.eval(made)
        return made

    def flat(self, y):
        return self.m.reshape(y, (-1,)).tolist()

    def address(self, y):
        from .zoo import capsule_struct
        # The struct ends with the capsule.
        capsule = y.__dlpack__(max_version=(1, 3))
        tensor = capsule_struct(capsule).dl_tensor
        return (tensor.data or 0) + tensor.byte_offset

    def reversed(self, x):
        return x[::-1]

    def is_writable(self, y):
        return False


LIBRARIES = {c.name: c for c in (NumPy, Torch, Jax, Mlx, TvmFfi, Strict, Pestle)}


def available():
    """Names of those that can be imported here."""
    import importlib.util
    found = []
    for name, c in LIBRARIES.items():
        try:
            if importlib.util.find_spec(c.module):
                found.append(name)
        except ImportError:
            pass
    return found
