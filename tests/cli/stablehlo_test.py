#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops of StableHLO, CHLO and Shardy without a row, functions that JAX calls by name,
and forms of the text, on llvm and ref: values by numpy and by what factors are
defined by. Exits 77 without numpy."""
import sys

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
from program import Program, call, check, close, finish, layouts, run, t, tensor

rng = np.random.default_rng(35)
np.seterr(invalid="ignore")  # of NaN by design


def one_device():
    a = rng.standard_normal((4, 6)).astype(np.float32)
    p = Program(a)
    p.before = ('sdy.mesh @mesh = <["d"=1]>\n"sdy.mesh"() <{mesh = #sdy.mesh<["d"=1]>, '
                'sym_name = "other"}> : () -> ()\n')
    ty = tensor(a)
    groups = "replica_groups = dense<0> : tensor<1x1xi64>"
    channel = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
    region = ("({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : "
              "tensor<f32>\n stablehlo.return %s : tensor<f32> })")
    p.add(f'"stablehlo.all_reduce"(%a0) <{{{channel}, {groups}, use_global_device_ids}}> '
          f"{region} : ({ty}) -> {ty}", a)
    p.add(f'"stablehlo.all_gather"(%a0) <{{all_gather_dim = 0 : i64, {groups}}}> : ({ty}) '
          f"-> {ty}", a)
    p.add(f'"stablehlo.all_to_all"(%a0) <{{concat_dimension = 0 : i64, split_dimension = 1 '
          f": i64, split_count = 1 : i64, {groups}}}> : ({ty}) -> {ty}", a)
    p.add(f'"stablehlo.reduce_scatter"(%a0) <{{scatter_dimension = 0 : i64, {groups}}}> '
          f"{region} : ({ty}) -> {ty}", a)
    p.add(f'"stablehlo.collective_broadcast"(%a0) <{{{groups}}}> : ({ty}) -> {ty}', a)
    pairs = "source_target_pairs = dense<0> : tensor<1x2xi64>"
    p.add(f'"stablehlo.collective_permute"(%a0) <{{{pairs}}}> : ({ty}) -> {ty}', a)
    pairs = "source_target_pairs = dense<> : tensor<0x2xi64>"
    p.add(f'"stablehlo.collective_permute"(%a0) <{{{pairs}}}> : ({ty}) -> {ty}',
          np.zeros_like(a))
    p.add("stablehlo.partition_id : tensor<ui32>", np.uint32(0))
    p.add('"stablehlo.replica_id"() : () -> tensor<ui32>', np.uint32(0))
    p.add(f'sdy.sharding_constraint %a0 <@mesh, [{{"d"}}, {{}}]> : {ty}', a)
    p.add('stablehlo.custom_call @Sharding(%a0) {backend_config = "", mhlo.sharding = '
          f'"{{replicated}}"}} : ({ty}) -> {ty}', a)
    inside = f"^bb0(%x: {ty}):\n%s = stablehlo.add %x, %x : {ty}\n"
    lies = '[<@mesh, [{"d"}, {}]>]'
    p.add(f"sdy.manual_computation(%a0) in_shardings={lies} out_shardings={lies} "
          f'manual_axes={{"d"}} (%x: {ty}) {{\n%s = stablehlo.add %x, %x : {ty}\n'
          f"sdy.return %s : {ty}\n}} : ({ty}) -> {ty}", 2 * a)
    p.add('"sdy.manual_computation"(%a0) <{in_shardings = #sdy.sharding_per_value<'
          f"{lies}>, manual_axes = #sdy<manual_axes{{\"d\"}}>, out_shardings = "
          f'#sdy.sharding_per_value<{lies}>}}> ({{\n{inside}"sdy.return"(%s) : ({ty}) -> '
          f"()\n}}) : ({ty}) -> {ty}", 2 * a)
    p.add(f'sdy.named_computation<"f">(%a0) in_shardings={lies} (%x: {ty}, ) {{\n'
          f"sdy.return %x, %x : {ty}, {ty}\n}} : ({ty}) -> ({ty}, {ty})".replace(", )", ")"),
          a, a)
    p.add(f'"sdy.named_computation"() <{{name = "f"}}> ({{\n%c = sdy.constant dense<2.0> : '
          f'{t(3)}\n"sdy.return"(%c) : ({t(3)}) -> ()\n}}) : () -> {t(3)}',
          np.full(3, 2, np.float32))
    at = 'out_sharding=<@mesh, [{"d"}, {}]>'
    for line in (f'all_gather [{{"d"}}, {{}}] %a0 {at}', f'all_slice [{{"d"}}, {{}}] %a0 {at}',
                 f'all_to_all [{{"d"}}: 0->1] %a0 {at}', f'all_reduce {{"d"}} %a0 {at}',
                 f'reduce_scatter [{{"d"}}, {{}}] %a0 {at}', f"collective_permute %a0 {at}",
                 f'replicated_to_unreduced {{"d"}} %a0 {at}',
                 f'sharded_to_unreduced [{{"d"}}, {{}}] %a0 {at}',
                 f'data_flow_edge %a0 sharding={at[13:]}'):
        p.add(f"sdy.{line} : {ty}", a)
    p.add(f'"sdy.all_slice"(%a0) <{{out_sharding = #sdy.sharding{at[13:]}, slicing_axes = '
          f'#sdy<list_of_axis_ref_lists[{{"d"}}, {{}}]>}}> : ({ty}) -> {ty}', a)
    p.run()
    said = run(f"sdy.mesh @mesh = <[\"d\"=2]>\nfunc.func @main(%a: {ty}) -> {ty} {{\n"
               f"%r = sdy.manual_computation(%a) in_shardings={lies} out_shardings={lies} "
               f'manual_axes={{"d"}} (%x: {t(2, 6)}) {{\nsdy.return %x : {t(2, 6)}\n}} : '
               f"({ty}) -> {ty}\nreturn %r : {ty}\n}}", [a], "llvm")
    check("parts of two devices", "export it for one device" in str(said), str(said))
    for device, groups in (("llvm", "dense<[[0, 1]]> : tensor<1x2xi64>"),
                           ("llvm", "dense<[[0], [1]]> : tensor<2x1xi64>")):
        said = run(f"func.func @main(%a: {ty}) -> {ty} {{\n %0 = "
                   f'"stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, replica_groups '
                   f"= {groups}}}> : ({ty}) -> {ty}\n return %0 : {ty}\n}}", [a], device)
        check("two devices", "one device" in str(said), str(said))


def older_forms():
    a = rng.standard_normal((3, 4)).astype(np.float32)
    b = rng.standard_normal((4, 5)).astype(np.float32)
    c = rng.standard_normal((3, 5, 4)).astype(np.float32)
    i = np.array([2, 0, 3, 1], np.int32)
    j = np.array([[2, 0], [3, 1], [1, 1]], np.int32)
    p = Program(a, b, c, i, j)
    ta, tb, tc = tensor(a), tensor(b), tensor(c)
    p.add(f"stablehlo.dot %a0, %a1, precision = [DEFAULT, HIGHEST] : ({ta}, {tb}) -> "
          f"{t(3, 5)}", a @ b)
    p.add(f'"stablehlo.einsum"(%a0, %a1) <{{einsum_config = "ij,jk->ki"}}> : ({ta}, {tb}) '
          f"-> {t(5, 3)}", (a @ b).T)
    p.add(f'stablehlo.einsum %a2, %a0, config = "bij,bj->ib" : ({tc}, {ta}) -> {t(5, 3)}',
          np.einsum("bij,bj->ib", c, a))
    p.add(f'stablehlo.einsum %a2, %a1, config = "bij,kl->lb" : ({tc}, {tb}) -> {t(5, 3)}',
          np.einsum("bij,kl->lb", c, b))
    p.add(f'"stablehlo.unary_einsum"(%a2) <{{einsum_config = "abc->cb"}}> : ({tc}) -> '
          f"{t(4, 5)}", np.einsum("abc->cb", c))
    p.add(f"stablehlo.broadcast %a0, sizes = [2, 1] : ({ta}) -> {t(2, 1, 3, 4)}",
          np.broadcast_to(a, (2, 1, 3, 4)))
    p.add('"stablehlo.torch_index_select"(%a2, %a3) <{batch_dims = 0 : i64, dim = 1 : '
          f"i64}}> : ({tc}, {tensor(i)}) -> {t(3, 4, 4)}", c[:, i])
    p.add('"stablehlo.torch_index_select"(%a2, %a4) <{batch_dims = 1 : i64, dim = 2 : '
          f"i64}}> : ({tc}, {tensor(j)}) -> {t(3, 5, 2)}",
          np.take_along_axis(c, j[:, None, :], 2))
    p.run()


def chlo():
    a = rng.standard_normal((3, 4)).astype(np.float32)
    b = rng.standard_normal((4,)).astype(np.float32)
    c = rng.standard_normal((3, 1)).astype(np.float32)
    z = (a + 1j * a[::-1]).astype(np.complex64)
    p = Program(a, b, c, z)
    ta, tb, tc, tz = map(tensor, p.inputs)
    for op, f in (("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply),
                  ("divide", np.divide), ("maximum", np.maximum),
                  ("minimum", np.minimum), ("atan2", np.arctan2)):
        p.add(f"chlo.broadcast_{op} %a0, %a1 : ({ta}, {tb}) -> {ta}", f(a, b))
        p.add(f"chlo.broadcast_{op} %a2, %a1 : ({tc}, {tb}) -> {ta}", f(c, b))
    p.add("chlo.broadcast_subtract %a0, %r0 {broadcast_dimensions = array<i64: 0, 1>} : "
          f"({ta}, {ta}) -> {ta}", -np.broadcast_to(b, (3, 4)))
    p.add("chlo.broadcast_compare %a0, %a1 {comparison_direction = "
          f"#chlo<comparison_direction LT>}} : ({ta}, {tb}) -> {t(3, 4, dtype='i1')}",
          a < b)
    n = len(p.lines) - 1
    p.add(f"chlo.broadcast_select %r{n}, %a0, %a2 : ({t(3, 4, dtype='i1')}, {ta}, {tc}) -> "
          f"{ta}", np.where(a < b, a, c))
    p.add(f"chlo.conj %a3 : {tz} -> {tz}", z.conj())
    p.add(f"chlo.tan %a0 : {ta} -> {ta}", np.tan(a))
    p.add(f"chlo.square %a3 : {tz} -> {tz}", z * z)
    p.add(f'"chlo.constant_like"(%a0) <{{value = 2.5 : f32}}> : ({ta}) -> {ta}',
          np.full_like(a, 2.5))
    p.run()


def chlo_compares_in_total_order():
    """-NaN < -inf < -0 < 0 < inf < NaN, by which rows are compared with a column."""
    bits = np.array([0xffc00000, 0xff800000, 0x80000000, 0, 0x7f800000, 0x7fc00000],
                    np.uint32)
    a = bits.view(np.float32)
    p = Program(a, a.reshape(6, 1).copy())
    ta, tc = map(tensor, p.inputs)
    at = np.arange(6)
    for name, f in (("LT", np.less), ("GE", np.greater_equal), ("EQ", np.equal)):
        p.add(f"chlo.broadcast_compare %a1, %a0 {{comparison_direction = "
              f"#chlo<comparison_direction {name}>, compare_type = "
              f"#chlo<comparison_type TOTALORDER>}} : ({tc}, {ta}) -> "
              f"{t(6, 6, dtype='i1')}", f(at[:, None], at))
    p.run()


def mixed_products():
    x = np.array([[1, -2, .5], [3, 0, 4]], np.float32)
    w = np.array([[3, -7], [1, 100], [-128, 2]], np.int8)
    i = np.array([[2, 1 << 20], [-3, 5], [7, 1]], np.int32)
    p = Program(x, w, i)
    p.add(f"stablehlo.convert %a0 : ({tensor(x)}) -> {t(2, 3, dtype='bf16')}")
    p.lines[-1] = "%b = " + p.lines[-1]
    p.add("stablehlo.dot_general %b, %a1, contracting_dims = [1] x [0] : "
          f"({t(2, 3, dtype='bf16')}, {tensor(w)}) -> {t(2, 2)}", x @ w.astype(np.float32))
    p.add("stablehlo.dot_general %a0, %a2, contracting_dims = [1] x [0] : "
          f"({tensor(x)}, {tensor(i)}) -> {t(2, 2)}", x @ i.astype(np.float32))
    p.add("stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0], algorithm = "
          "<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, "
          "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, "
          f"allow_imprecise_accumulation = false> : ({tensor(x)}, {tensor(w)}) -> {t(2, 2)}",
          x @ w.astype(np.float32))
    y = np.array([[1 + 2**-9, 3], [1, 1]], np.float32)
    q = Program(y)
    for form in ("tf32", "bf16"):
        # 2^-9 is within tf32's ten digits and beyond the seven of bf16.
        want = y if form == "tf32" else y.round().astype(np.float32)
        q.add('"stablehlo.dot_general"(%a0, %a0) <{algorithm = #stablehlo.dot_algorithm<'
              f"lhs_precision_type = {form}, rhs_precision_type = {form}, accumulation_type "
              "= f32, lhs_component_count = 1, rhs_component_count = 1, "
              "num_primitive_operations = 1, allow_imprecise_accumulation = false>, "
              "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], "
              f"rhs_contracting_dimensions = [1]>}}> : ({t(2, 2)}, {t(2, 2)}) -> {t(2, 2)}",
              want @ want.T)
    p.run()
    q.run()
    for device in ("llvm", "ref"):
        out = run(q.text(), q.inputs, device)
        want = 1 + 2**-8 + 2**-18 + 9
        check("tf32 keeps its digits", abs(out[0][0, 0] - want) < 2e-6, f"{out}")
        check("bf16 has no more", out[1][0, 0] == 10, f"{out}")


# --- Linear algebra ---

def factors(dtype, batch):
    m, n = 5, 4
    a = rng.standard_normal(batch + (m, n)).astype(dtype)
    w = rng.standard_normal(batch + (3, n)).astype(dtype)
    s = (a.swapaxes(-1, -2) @ a + np.eye(n)).astype(dtype)
    b = rng.standard_normal(batch + (n, 2)).astype(dtype)
    d = rng.standard_normal((3,) + batch + (n,)).astype(dtype)
    letter = "d" if dtype == np.float64 else "s"
    eps = 1e-12 if dtype == np.float64 else 3e-5
    info = np.zeros(batch, np.int32)
    p = Program(a, w, s, b, d[0], d[1], d[2])

    p.lines.append(f"%minus = stablehlo.negate %a2 : {tensor(s)}")

    def near(x, y):
        return bool(np.all(np.abs(x - y) <= eps * (1 + np.abs(y).max())))

    def empty(*shape, like=dtype):
        return np.empty(batch + shape, like)

    def swapped(x, pivots):
        x = x.copy()
        for at in np.ndindex(*batch):
            for k, q in enumerate(pivots[at]):
                x[at][[k, q]] = x[at][[q, k]]
        return x

    def lu_is(x, first):
        def of(lu, pivots, *rest):
            k = min(lu.shape[-2:])
            lower = np.tril(lu[..., :, :k], -1) + np.eye(lu.shape[-2], k, dtype=dtype)
            right = near(lower @ np.triu(lu[..., :k, :]), swapped(x, pivots - first))
            return right and (first == 0 or not rest[0].any())
        return of

    for name in (f"lapack_{letter}getrf_ffi", "cusolver_getrf_ffi"):
        for v, x in (("%a0", a), ("%a1", w), ("%a2", s)):
            k = min(x.shape[-2:])
            results = [empty(*x.shape[-2:]), empty(k, like=np.int32), info]
            p.add(call(name, [(v, x)], results), *[(r, lu_is(x, 1)) for r in results])
    results = [empty(m, n), empty(n, like=np.int32), empty(m, like=np.int32)]

    def ordered(lu, pivots, order):
        whole = np.take_along_axis(a, order[..., None], -2)
        return lu_is(a, 0)(lu, pivots) and near(swapped(a, pivots), whole)
    p.add(f"stablehlo.custom_call @LuDecomposition(%a0) : ({tensor(a)}) -> "
          f"({', '.join(map(tensor, results))})", *[(r, ordered) for r in results])
    pivots = f"%r{len(p.lines) - 1}#1"
    p.add(call("cu_lu_pivots_to_permutation", [(pivots, results[1])], [results[2]]),
          (results[2], lambda order: near(np.sort(order, -1),
                                          np.broadcast_to(np.arange(m), order.shape))))
    for geqrf, orgqr in ((f"lapack_{letter}geqrf_ffi", f"lapack_{letter}orgqr_ffi"),
                         ("cusolver_geqrf_ffi", "cusolver_orgqr_ffi"),
                         ("Qr", "ProductOfElementaryHouseholderReflectors")):
        packed, tau = empty(m, n), empty(n)
        upper = np.abs(np.linalg.qr(a)[1])
        p.add(call(geqrf, [("%a0", a)], [packed, tau]),
              (packed, lambda x, _: near(np.abs(np.triu(x[..., :n, :])), upper)),
              (tau, lambda _, y: bool(np.all((y >= 0) & (y <= 2)))))
        v = f"%r{len(p.lines) - 1}"
        p.add(call(orgqr, [(v + "#0", packed), (v + "#1", tau)], [packed]),
              (packed, lambda q: near(q.swapaxes(-1, -2) @ q, np.broadcast_to(
                  np.eye(n), batch + (n, n))) and near(
                  np.abs(q.swapaxes(-1, -2) @ a), upper)))
    for name, config in ((f"lapack_{letter}potrf_ffi", "uplo = 76 : ui8"),
                         (f"lapack_{letter}potrf_ffi", "uplo = 85 : ui8"),
                         ("cusolver_potrf_ffi", "lower = true")):
        lower = "85" not in config
        want = np.linalg.cholesky(s)
        want = want if lower else want.swapaxes(-1, -2)
        p.add(call(name, [("%a2", s)], [empty(n, n), info], config),
              (empty(n, n), lambda x, _, low=lower, y=want: near(
                  np.tril(x) if low else np.triu(x), y)),
              (info, lambda _, i: not i.any()))
        p.add(call(name, [("%minus", s)], [empty(n, n), info], config),
              (empty(n, n), lambda *_: True), (info, lambda _, i: bool(np.all(i == 1))))
    for side, uplo, trans, diag in ((76, 76, 78, 78), (76, 85, 84, 78), (76, 76, 67, 85)):
        half = np.tril(s) if uplo == 76 else np.triu(s)
        if diag == 85:
            half = half - np.einsum("...ii->...i", half)[..., None] * np.eye(n) + np.eye(n)
        half = half if trans == 78 else half.swapaxes(-1, -2)
        p.add(call(f"lapack_{letter}trsm_ffi", [("%a2", s), ("%a3", b)], [b],
                   f"diag = {diag} : ui8, side = {side} : ui8, trans_x = {trans} : ui8, "
                   f"uplo = {uplo} : ui8"),
              (b, lambda x, h=half: near(h @ x, b)))
    for name, config in ((f"lapack_{letter}syevd_ffi", "mode = 86 : ui8, uplo = 76 : ui8"),
                         ("cusolver_syevd_ffi", "algorithm = 0 : ui8, lower = true")):
        results = [s, empty(n), info]
        p.add(call(name, [("%a2", s)], results, config), *[
            (r, lambda v, x, i: near(s @ v, v * x[..., None, :]) and near(
                x, np.linalg.eigvalsh(s)) and not i.any()) for r in results])
    results = [s, empty(n)]
    p.add('stablehlo.custom_call @Eigh(%a2) {backend_config = "1,1,100,1e-6"} : '
          f"({tensor(s)}) -> ({tensor(s)}, {tensor(results[1])})", *[
              (r, lambda v, x: near(s @ v, v * x[..., None, :])) for r in results])
    for name, config, full, turned in (
            (f"lapack_{letter}gesdd_ffi", "mode = 83 : ui8", False, False),
            (f"lapack_{letter}gesdd_ffi", "mode = 65 : ui8", True, False),
            ("cusolver_gesvd_ffi", "compute_uv = true, full_matrices = true, transposed = "
             "false", True, False),
            ("cusolver_gesvdj_ffi", "compute_uv = true, full_matrices = true", False, True)):
        u = m if full else n
        results = [a, empty(n), empty(m, u), empty(n, n), info]

        def right(_, x, u, v, i, turned=turned):
            v = v.swapaxes(-1, -2) if turned else v
            return near((u[..., :n] * x[..., None, :]) @ v, a) and near(
                u.swapaxes(-1, -2) @ u, np.broadcast_to(
                    np.eye(u.shape[-1]), batch + (u.shape[-1],) * 2))
        p.add(call(name, [("%a0", a)], results, config), *[(r, right) for r in results])
    full = np.zeros(batch + (n, n), dtype)
    for k in range(n):
        full[..., k, k] = d[1][..., k]
        if k:
            full[..., k, k - 1] = d[0][..., k]
            full[..., k - 1, k] = d[2][..., k - 1]
    operands = [("%a4", d[0]), ("%a5", d[1]), ("%a6", d[2]), ("%a3", b)]
    wide = eps * 100

    def solves(x):
        return bool(np.all(np.abs(full @ x - b) <= wide * (1 + np.abs(x).max())))
    p.add(call("cusparse_gtsv2_ffi", operands, [b]), (b, solves))
    p.add(call(f"lapack_{letter}gtsv_ffi", operands, [d[0], d[1], d[2], b, info]),
          *[(r, lambda *y: solves(y[3])) for r in (d[0], d[1], d[2], b, info)])
    p.run()


def complex_factors(dtype, batch):
    """Of complex matrices, and what no row is of real ones."""
    real = np.float32 if dtype == np.complex64 else np.float64
    letter, eps = ("c", 1e-4) if dtype == np.complex64 else ("z", 1e-11)
    m, n = 5, 4

    def random(*shape):
        x = rng.standard_normal(batch + shape) + 1j * rng.standard_normal(batch + shape)
        return x.astype(dtype)

    def adjoint(x):
        return x.conj().swapaxes(-1, -2)

    def near(x, y):
        return bool(np.all(np.abs(x - y) <= eps * (1 + np.abs(y).max())))

    def empty(*shape, like=dtype):
        return np.empty(batch + shape, like)
    a, w, g, b = random(m, n), random(3, n), random(n, n), random(n, 2)
    s = (adjoint(a) @ a + np.eye(n)).astype(dtype)
    x = rng.standard_normal(batch + (n, n)).astype(real)
    d = [random(n) for _ in range(3)]
    info = empty(like=np.int32)
    p = Program(a, w, g, b, s, x, *d)
    # LAPACK reads one half and no imaginary parts of the diagonal.
    half = np.tril(s)

    def right_lu(y):
        def of(lu, pivots, _):
            z = y.copy()
            for at in np.ndindex(*batch):
                for k, q in enumerate(pivots[at] - 1):
                    z[at][[k, q]] = z[at][[q, k]]
            k = min(y.shape[-2:])
            low = np.tril(lu[..., :k], -1) + np.eye(y.shape[-2], k)
            return near(low @ np.triu(lu[..., :k, :]), z)
        return of

    for v, y in (("%a0", a), ("%a1", w), ("%a2", g)):
        results = [y, empty(min(y.shape[-2:]), like=np.int32), info]
        p.add(call(f"lapack_{letter}getrf_ffi", [(v, y)], results),
              *[(r, right_lu(y)) for r in results])
    p.add(call(f"lapack_{letter}potrf_ffi", [("%a4", s)], [s, info], "uplo = 76 : ui8"),
          (s, lambda l, _: near(np.tril(l), np.linalg.cholesky(s))), (info, lambda _, i: not i.any()))
    p.add(f"stablehlo.cholesky %a4, lower = true : {tensor(s)}", np.linalg.cholesky(s))
    for side, uplo, trans in ((76, 76, 78), (76, 85, 67), (82, 76, 84)):
        t0 = half if uplo == 76 else np.triu(s)
        t0 = {78: t0, 67: adjoint(t0), 84: t0.swapaxes(-1, -2)}[trans]
        v, y = ("%a3", b) if side == 76 else ("%a0", a)
        p.add(call(f"lapack_{letter}trsm_ffi", [("%a4", s), (v, y)], [y],
                   f"diag = 78 : ui8, side = {side} : ui8, trans_x = {trans} : ui8, uplo = "
                   f"{uplo} : ui8"),
              (y, lambda z, c=t0, y=y, left=side == 76: near(c @ z if left else z @ c, y)))
    ta, tb = tensor(s), tensor(b)
    p.add('"stablehlo.triangular_solve"(%a4, %a3) <{left_side = true, lower = true, '
          "transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : "
          f"({ta}, {tb}) -> {tb}", (b, lambda z: near(adjoint(half) @ z, b)))
    upper = np.abs(np.linalg.qr(a)[1])
    p.add(call(f"lapack_{letter}geqrf_ffi", [("%a0", a)], [a, empty(n)]),
          (a, lambda y, _: near(np.abs(np.triu(y[..., :n, :])), upper)),
          (empty(n), lambda *_: True))
    v = f"%r{len(p.lines) - 1}"
    p.add(call(f"lapack_{letter}ungqr_ffi", [(v + "#0", a), (v + "#1", empty(n))], [a]),
          (a, lambda q: near(adjoint(q) @ q, np.broadcast_to(np.eye(n), batch + (n, n)))
           and near(np.abs(adjoint(q) @ a), upper)))
    results = [s, empty(n, like=real), info]
    p.add(call(f"lapack_{letter}heevd_ffi", [("%a4", s)], results,
               "mode = 86 : ui8, uplo = 76 : ui8"), *[
        (r, lambda v, e, _: near(s @ v, v * e[..., None, :]) and near(
            e, np.linalg.eigvalsh(s))) for r in results])
    for y, v in ((a, "%a0"), (w, "%a1")):
        for config, full in (("mode = 83 : ui8", False), ("mode = 65 : ui8", True)):
            rows, columns = y.shape[-2:]
            k = min(rows, columns)
            results = [y, empty(k, like=real), empty(rows, rows if full else k),
                       empty(columns if full else k, columns), info]

            def right_svd(_, e, u, vh, __, y=y, k=k):
                one = np.eye(u.shape[-1])
                return near((u[..., :k] * e[..., None, :]) @ vh[..., :k, :], y) and near(
                    adjoint(u) @ u, np.broadcast_to(one, batch + one.shape)) and near(
                    vh @ adjoint(vh), np.broadcast_to(np.eye(vh.shape[-2]),
                                                      batch + (vh.shape[-2],) * 2))
            p.add(call(f"lapack_{letter}gesdd_ffi", [(v, y)], results, config),
                  *[(r, right_svd) for r in results])

    def right_eig(matrix):
        def of(*made):
            e = made[0] if matrix.dtype == dtype else made[0] + 1j * made[1]
            left, v = made[-3:-1]
            return near(matrix @ v, v * e[..., None, :]) and near(
                adjoint(left) @ matrix, e[..., :, None] * adjoint(left)) and near(
                np.linalg.norm(v, axis=-2), np.ones(batch + (n,)))
        return of
    results = [empty(n), g, g, info]
    flags = "compute_left = 86 : ui8, compute_right = 86 : ui8"
    p.add(call(f"lapack_{letter}geev_ffi", [("%a2", g)], results, flags),
          *[(r, right_eig(g)) for r in results])
    results = [empty(n, like=real), empty(n, like=real), g, g, info]
    p.add(call(f"lapack_{'s' if letter == 'c' else 'd'}geev_ffi", [("%a5", x)], results, flags),
          *[(r, right_eig(x)) for r in results])
    results = [g, g, empty(n), info, info]
    p.add(call(f"lapack_{letter}gees_ffi", [("%a2", g)], results, "mode = 86 : ui8, sort = "
               "78 : ui8"), *[
        (r, lambda h, z, e, *_: near(z @ h @ adjoint(z), g) and near(np.tril(h, -1), 0 * h)
         and near(np.einsum("...ii->...i", h), e)) for r in results])
    for v, y, kind in (("%a2", g, letter), ("%a5", x, "s" if letter == "c" else "d")):
        tau = np.empty(batch + (n - 1,), y.dtype)
        traces = [np.trace(np.linalg.matrix_power(y, k), axis1=-2, axis2=-1) for k in (1, 2, 3)]

        def alike(h, *_, traces=traces):
            h = np.triu(h, -1)
            return all(np.allclose(np.trace(np.linalg.matrix_power(h, k), axis1=-2, axis2=-1),
                                   t0, 1e-3, 1e-3) for k, t0 in zip((1, 2, 3), traces))
        p.add(call(f"lapack_{kind}gehrd_ffi", [(v, y)], [y, tau, info], "high = 4 : i32, low = "
                   "1 : i32"), (y, alike), (tau, alike), (info, lambda *_: True))
    e = empty(n - 1, like=real)
    results = [s, empty(n, like=real), e, empty(n - 1), info]

    def right_three(_, main, below, *__):
        h = np.zeros(batch + (n, n), real)
        for k in range(n):
            h[..., k, k] = main[..., k]
            if k:
                h[..., k, k - 1] = h[..., k - 1, k] = below[..., k - 1]
        return near(np.linalg.eigvalsh(h), np.linalg.eigvalsh(s))
    p.add(call(f"lapack_{letter}hetrd_ffi", [("%a4", s)], results, "uplo = 76 : ui8"),
          *[(r, right_three) for r in results])
    full = np.zeros(batch + (n, n), dtype)
    for k in range(n):
        full[..., k, k] = d[1][..., k]
        if k:
            full[..., k, k - 1] = d[0][..., k]
            full[..., k - 1, k] = d[2][..., k - 1]
    p.add(call("cusparse_gtsv2_ffi", [("%a6", d[0]), ("%a7", d[1]), ("%a8", d[2]), ("%a3", b)],
               [b]), (b, lambda z: bool(np.all(np.abs(full @ z - b) <= 100 * eps * (
                   1 + np.abs(z).max())))))
    p.run()


def singular():
    """info says where elimination stopped."""
    a = np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], np.float32)
    p = Program(a)
    results = [a, np.empty(3, np.int32), np.empty((), np.int32)]
    p.add(call("lapack_sgetrf_ffi", [("%a0", a)], results),
          *[(r, lambda _, __, info: info == 3) for r in results])
    p.run()


def top_k():
    a = rng.standard_normal((3, 7)).astype(np.float32)
    i = np.broadcast_to(np.arange(7, dtype=np.int32), (3, 7)).copy()
    order = np.argsort(-a, -1, kind="stable")[:, :2].astype(np.int32)
    p = Program(a, i)
    p.before = ("func.func private @greater(%a: tensor<f32>, %b: tensor<f32>, %c: "
                "tensor<i32>, %d: tensor<i32>) -> tensor<i1> {\n  %0 = stablehlo.compare GT, "
                "%a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n  return %0 : "
                "tensor<i1>\n}\n")
    p.lines += ["%low = stablehlo.constant dense<0xFF800000> : tensor<f32>",
                "%none = stablehlo.constant dense<-1> : tensor<i32>"]
    p.add("stablehlo.custom_call @ApproxTopK(%a0, %a1, %low, %none) {called_computations = "
          "[@greater], mhlo.backend_config = {aggregate_to_topk = true, recall_target = 0.95 "
          ": f32, reduction_dim = 1 : i64, reduction_input_size_override = -1 : i64, top_k = "
          f"2 : i64}}}} : ({tensor(a)}, {tensor(i)}, tensor<f32>, tensor<i32>) -> "
          f"({t(3, 2)}, {t(3, 2, dtype='i32')})", np.take_along_axis(a, order, 1), order)
    # How many, and what the results' shapes are, as operands: extents that were symbols.
    p.lines += ["%k = stablehlo.constant dense<2> : tensor<i32>",
                "%s = stablehlo.constant dense<[3, 2]> : tensor<2xi32>"]
    p.add(f"stablehlo.custom_call @stablehlo.dynamic_top_k(%a0, %k) : ({tensor(a)}, "
          f"tensor<i32>) -> ({t(3, 2)}, {t(3, 2, dtype='i32')})",
          np.take_along_axis(a, order, 1), order)
    p.add("stablehlo.custom_call @stablehlo.dynamic_approx_top_k(%a0, %a1, %low, %none, %k, %s, "
          "%s) {called_computations = [@greater], indices_of_shape_operands = dense<[5, 6]> : "
          "tensor<2xi64>, mhlo.backend_config = {reduction_dim = 1 : i64}} : "
          f"({tensor(a)}, {tensor(i)}, tensor<f32>, tensor<i32>, tensor<i32>, tensor<2xi32>, "
          f"tensor<2xi32>) -> ({t(3, 2)}, {t(3, 2, dtype='i32')})",
          np.take_along_axis(a, order, 1), order)
    p.run()


def complex_order():
    """By real, then by imaginary parts; NaN of either is the result."""
    z = np.array([1 + 2j, 1 - 1j, -3 + 0.5j, 2 + 2j, complex("nan+1j"), 1], np.complex64)
    w = np.array([1 + 3j, 0.5 + 9j, -3 + 0.25j, 2 + 2j, 1, complex("nan")], np.complex64)
    p = Program(z, w)
    key = lambda c: (c.real, c.imag)
    for op, f in (("maximum", max), ("minimum", min)):
        want = np.array([f(a, b, key=key) for a, b in zip(z, w)][:4], np.complex64)
        p.add(f"stablehlo.{op} %a0, %a1 : {tensor(z)}", (
            z, lambda got, y=want: close(got[:4], y) and bool(np.all(np.isnan(got[4:])))))
    p.add(f"stablehlo.atan2 %a0, %a1 : {tensor(z)}", (z, lambda got: close(
        got[:4], (-1j * np.log((w + 1j * z) / np.sqrt(w * w + z * z)))[:4])))
    p.run()


def wide_folds():
    """Sums of f32 in f64, and raw dimension numbers."""
    a = rng.standard_normal((3, 4)).astype(np.float32)
    x = rng.standard_normal((1, 4, 4, 1)).astype(np.float32)
    k = rng.standard_normal((2, 2, 1, 1)).astype(np.float32)
    p = Program(a, x, k)
    p.lines.append("%c = stablehlo.constant dense<0.0> : tensor<f32>")
    p.add(f'"stablehlo.reduce"(%a0, %c) <{{dimensions = array<i64: 0>}}> ({{\n    ^bb0(%p: '
          "tensor<f64>, %q: tensor<f64>):\n    %s = stablehlo.add %p, %q : tensor<f64>\n    "
          f"stablehlo.return %s : tensor<f64>\n  }}) : ({tensor(a)}, tensor<f32>) -> "
          f"{t(4, dtype='f64')}", a.astype(np.float64).sum(0))
    y = sum(x[:, i:i + 3, j:j + 3] * k[i, j, 0, 0] for i in range(2) for j in range(2))
    p.add('"stablehlo.convolution"(%a1, %a2) <{batch_group_count = 1 : i64, '
          "dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, "
          "input_feature_dimension = 3, input_spatial_dimensions = [1, 2], "
          "kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, "
          "kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, "
          "output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, "
          f"feature_group_count = 1 : i64}}> : ({tensor(x)}, {tensor(k)}) -> {tensor(y)}", y)
    p.run()


def syntax():
    """Aliases of types and attributes, commas at ends, remarks without a dot."""
    a = rng.standard_normal((3, 4)).astype(np.float32)
    text = """!matrix = tensor<3x4xf32>
#axes = array<i64: 1, 0>
#both = {remark = #axes, other = 3 : i64,}
func.func @main(%a: !matrix) -> (tensor<4x3xf32>, !matrix) {
  %0 = "stablehlo.transpose"(%a) <{permutation = #axes}> {more = #both} : (!matrix) -> tensor<4x3xf32>
  %1 = stablehlo.add %a, %a {whatever = 1 : i32,} : !matrix
  return %0, %1 : tensor<4x3xf32>, !matrix
}
"""
    for device in ("llvm", "ref"):
        out = run(text, [a], device)
        good = not isinstance(out, str) and close(out[0], a.T) and close(out[1], a + a)
        check("aliases", good, str(out))


def invalid():
    """Is refused, with what is wrong."""
    for text, said in (
            ("func.func @main(%a: tensor<7xf32>) -> tensor<12xf32> {\n%0 = stablehlo.reshape "
             "%a : (tensor<7xf32>) -> tensor<12xf32>\nreturn %0 : tensor<12xf32>\n}", "12"),
            ("func.func @main(%a: tensor<1x4x4x1xi64>, %b: tensor<2x2x1x1xi32>) -> "
             "tensor<1x3x3x1xi64> {\n%0 = stablehlo.convolution(%a, %b) dim_numbers = "
             "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} "
             "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
             "(tensor<1x4x4x1xi64>, tensor<2x2x1x1xi32>) -> tensor<1x3x3x1xi64>\nreturn %0 : "
             "tensor<1x3x3x1xi64>\n}", "element types must be equal"),
            ("func.func @main(%a: tensor<1x4x4x1xf32>, %b: tensor<2x2x1x1xf32>) -> "
             "tensor<1x4x4x1xf32> {\n%0 = \"stablehlo.convolution\"(%a, %b) "
             "<{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x"
             "[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[0], "
             "[1], [0], [1]]> : tensor<4x1xi64>}> : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) "
             "-> tensor<1x4x4x1xf32>\nreturn %0 : tensor<1x4x4x1xf32>\n}", "a pair of")):
        out = run(text, [], "ref")
        check("invalid", isinstance(out, str) and said in out, str(out))


one_device()
older_forms()
chlo()
chlo_compares_in_total_order()
mixed_products()
for kind in (np.float32, np.float64):
    for outer in ((), (2,)):
        factors(kind, outer)
for kind in (np.complex64, np.complex128):
    for outer in ((), (2,)):
        complex_factors(kind, outer)
singular()
top_k()
complex_order()
wide_folds()
syntax()
invalid()
finish()
