#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A peer with a Python API as one more program of compare.py, with the protocol
of serve.h:

    peers.py FOLDER THREADS ort|openvino|jax|iree|torch_compile

A peer is a function of a case that prepares its inputs and gives a function
that is timed: it compiles, runs once, and gives what runs again and the output.
"""

import gc
import json
import os
import pathlib
import subprocess
import sys
import time
import types

import numpy as np

FOLDER, THREADS = pathlib.Path(sys.argv[1]), int(sys.argv[2])
clock = time.perf_counter


def ort(case):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    options.log_severity_level = 4

    def first():
        session = onnxruntime.InferenceSession(
            case.path, options, providers=["CPUExecutionProvider"]
        )
        (output,) = session.run(None, case.inputs)
        binding = session.io_binding()
        for name, value in case.inputs.items():
            binding.bind_cpu_input(name, value)
        value = onnxruntime.OrtValue.ortvalue_from_numpy(output)
        binding.bind_ortvalue_output("y0", value)
        return lambda: session.run_with_iobinding(binding), output

    return first


def openvino(case):
    import openvino as ov

    options = {
        "INFERENCE_NUM_THREADS": THREADS,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if case.bf16 else "f32",
    }

    def first():
        compiled = ov.Core().compile_model(case.path, "CPU", options)
        request = compiled.create_infer_request()
        for name, value in case.inputs.items():
            request.set_tensor(name, ov.Tensor(value, shared_memory=True))
        request.infer()
        return request.infer, request.get_output_tensor(0).data.copy()

    return first


def jax(case):
    import jax as xla
    from interpret import function_of, jax_ops

    function, weights = function_of(case.path, jax_ops())
    weights = xla.tree.map(xla.numpy.asarray, weights)
    dtype = "bfloat16" if case.bf16 else None
    inputs = [xla.numpy.asarray(x, dtype) for x in case.inputs.values()]
    compiled = xla.jit(function)

    def spent(event, seconds, **_):
        if event.startswith("/jax/core/compile/"):
            key = "compile_ms" if "backend_compile" in event else "lower_ms"
            case.spans[key] = case.spans.get(key, 0) + seconds * 1e3

    def first():
        xla.monitoring.clear_event_listeners()
        xla.monitoring.register_event_duration_secs_listener(spent)
        output = compiled(weights, *inputs).block_until_ready()
        return lambda: compiled(weights, *inputs).block_until_ready(), output

    return first


def iree(case):
    import iree.compiler as compiler
    import iree.runtime as runtime

    flags = [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
        "--iree-opt-level=O3",
    ]
    importer = [sys.executable, "-m", "iree.compiler.tools.import_onnx"]
    importer += [case.path, "--opset-version", "18"]
    runtime.flags.parse_flags(f"--task_topology_group_count={THREADS}")
    config = runtime.Config("local-sync" if THREADS == 1 else "local-task")
    inputs = [
        runtime.asdevicearray(config.device, x) for x in case.inputs.values()
    ]

    def first():
        text = subprocess.run(importer, capture_output=True, check=True).stdout
        flat = compiler.compile_str(text, input_type="onnx", extra_args=flags)
        context = runtime.SystemContext(config=config)
        module = runtime.VmModule.copy_buffer(context.instance, flat)
        context.add_vm_module(module)
        function = context.modules.module[case.name]
        return lambda: function(*inputs), function(*inputs).to_host()

    return first


def torch_compile(case):
    import torch
    import torch._inductor.config
    from interpret import function_of, torch_ops

    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    torch._inductor.config.freezing = True
    torch._dynamo.reset()
    function, weights = function_of(case.path, torch_ops())
    weights = {k: torch.from_numpy(v.copy()) for k, v in weights.items()}
    inputs = [torch.from_numpy(x) for x in case.inputs.values()]
    if case.bf16:
        inputs = [x.bfloat16() for x in inputs]
    compiled = torch.compile(lambda *inputs: function(weights, *inputs))

    def first():
        output = compiled(*inputs)
        return lambda: compiled(*inputs), output.float()

    return first


# --- The protocol ---


def load(name):
    about = json.loads((FOLDER / "inputs" / name / "case.json").read_text())
    inputs = {}
    for i, (key, dtype, shape) in enumerate(about["inputs"]):
        path = FOLDER / "inputs" / name / f"{i}.bin"
        array = np.fromfile(path, dtype).reshape(shape)
        if dtype == "uint16":  # bf16
            array = (array.astype(np.uint32) << 16).view(np.float32)
        inputs[key] = array
    path, bf16 = str(FOLDER / f"{name}.onnx"), "bf16" in name
    return types.SimpleNamespace(
        name=name, path=path, inputs=inputs, bf16=bf16, spans={}
    )


def prepare(peer, name):
    case = load(name)
    if case.bf16 and peer in (ort, iree):
        raise NotImplementedError("not for this peer: bf16")
    first = peer(case)
    start = clock()
    run, output = first()
    took = clock() - start
    output = np.asarray(output, np.float64)
    chk = [float(output.sum()), float(np.abs(output).mean())]
    answer = {"ok": 1, "first_ms": took * 1e3, "chk": chk} | case.spans
    # OpenVINO's inputs are the case's arrays.
    return (run, case), answer


def measure(run, seconds):
    run()
    start = clock()
    run()
    one = max(clock() - start, 1e-8)
    batch, times = int(1e-4 / one) + 1 if one < 1e-4 else 1, []
    end = clock() + seconds
    while clock() < end or len(times) < 3:
        start = clock()
        for _ in range(batch):
            run()
        times.append((clock() - start) / batch * 1e6)
    times.sort()
    count = len(times) * batch
    return {"min": times[0], "med": times[len(times) // 2], "n": count}


def main():
    say = os.fdopen(os.dup(1), "w", 1)
    os.dup2(2, 1)  # what a peer prints is no answer
    peers = {p.__name__: p for p in (ort, openvino, jax, iree, torch_compile)}
    modules = {"ort": "onnxruntime", "torch_compile": "torch"}
    name, ready = sys.argv[3], None
    if name == "jax" and THREADS == 1:
        os.environ["XLA_FLAGS"] = (
            "--xla_cpu_multi_thread_eigen=false "
            "intra_op_parallelism_threads=1"
        )
    # OpenVINO reports its import by a forked process, which may hang.
    sys.modules["openvino_telemetry"] = None
    try:
        __import__(modules.get(name, name))
        answer = {"ready": 1}
    except ImportError as error:
        answer = {"err": str(error)}
    print(json.dumps(answer), file=say)
    for line in sys.stdin:
        query = json.loads(line)
        try:
            if query["cmd"] == "prep":
                ready = None
                gc.collect()
                ready, answer = prepare(peers[name], query["case"])
            else:
                answer = measure(ready[0], query["ms"] * 1e-3)
        except Exception as error:  # one that fails is a line, not the end
            text = " ".join(str(error).split())
            answer = {"err": f"{type(error).__name__}: {text}"[:300]}
        print(json.dumps(answer), file=say)


main()
