"""A data loader as training programs have them, on hip-python: forked workers make batches, the parent copies them to the
GPU and launches a kernel on each; then spawned children use the GPU themselves.

    loader.py MODULE [WORKERS=3] [BATCHES=20]

MODULE is the code object that module_kernels.hip makes. Calls of HIP are counted as made, those of the children as well,
and written to the file that APP_CALL_COUNTS names.
"""

import collections
import ctypes
import multiprocessing
import os
import sys

from hip import hip

counts = collections.Counter()
SIZE = 1 << 16


def call(function, *arguments):
    counts[function.__name__] += 1
    result = function(*arguments)
    error, rest = (result[0], result[1:]) if isinstance(result, tuple) else (result, ())
    if error != hip.hipError_t.hipSuccess:
        raise RuntimeError(f"{function.__name__}: {error}")
    return rest[0] if len(rest) == 1 else rest


def produce(number, batches, queue):
    """A worker: it has the parent's HIP in its memory, and does not touch it."""
    for batch in range(batches):
        queue.put(bytes([number * 16 + batch % 16]) * SIZE)
    queue.put(None)


def consume(module, workers, batches):
    device = call(hip.hipMalloc, SIZE)
    stream = call(hip.hipStreamCreate)
    code = call(hip.hipModuleLoad, module.encode())
    kernel = call(hip.hipModuleGetFunction, code, b"module_add")
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue(4)
    children = [fork.Process(target=produce, args=(number, batches, queue)) for number in range(workers)]
    for child in children:
        child.start()
    back, total, open_workers = bytearray(SIZE), 0, workers
    while open_workers:
        batch = queue.get()
        if batch is None:
            open_workers -= 1
            continue
        call(hip.hipMemcpy, device, batch, SIZE, hip.hipMemcpyKind.hipMemcpyHostToDevice)
        arguments = (device, ctypes.c_int(1))
        call(
            hip.hipModuleLaunchKernel,
            kernel,
            *(SIZE // 4 // 256, 1, 1),
            *(256, 1, 1),
            0,
            stream,
            None,
            arguments,
        )
        call(hip.hipStreamSynchronize, stream)
        call(hip.hipMemcpy, back, device, SIZE, hip.hipMemcpyKind.hipMemcpyDeviceToHost)
        total += sum(back[:16])
    for child in children:
        child.join()
    call(hip.hipModuleUnload, code)
    call(hip.hipStreamDestroy, stream)
    call(hip.hipFree, device)
    return total, [child.exitcode for child in children]


def alone(number, queue):
    """A spawned child: a new interpreter that loads HIP again."""
    memory = call(hip.hipMalloc, SIZE)
    call(hip.hipMemset, memory, number, SIZE)
    call(hip.hipDeviceSynchronize)
    call(hip.hipFree, memory)
    queue.put(dict(counts))


def main():
    module = sys.argv[1]
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    batches = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    print("devices", call(hip.hipGetDeviceCount))
    total, codes = consume(module, workers, batches)
    print("bytes", total, "workers", codes)
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    children = [spawn.Process(target=alone, args=(number, queue)) for number in range(2)]
    for child in children:
        child.start()
    for child in children:
        counts.update(queue.get())
        child.join()
    print("children", [child.exitcode for child in children])
    path = os.environ.get("APP_CALL_COUNTS")
    if path:
        with open(path, "w") as out:
            out.writelines(f"{name} {count}\n" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
