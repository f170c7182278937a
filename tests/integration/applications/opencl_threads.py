"""Two spawned processes with three threads each, each thread with an OpenCL queue: writes, kernels, copies and reads."""

import multiprocessing
import sys
import threading

ROUNDS = 20
SOURCE = """
kernel void scale(global float *x, float by) { x[get_global_id(0)] *= by; }
kernel void shift(global float *x, float by) { x[get_global_id(0)] += by; }
"""


def work(context, program):
    import numpy
    import pyopencl as cl

    queue = cl.CommandQueue(context)
    host = numpy.ones(64 * 1024, dtype=numpy.float32)
    here = cl.Buffer(context, cl.mem_flags.READ_WRITE, host.nbytes)
    there = cl.Buffer(context, cl.mem_flags.READ_WRITE, host.nbytes)
    # A kernel object belongs to one thread.
    kernels = [cl.Kernel(program, name) for name in ("scale", "shift")]
    for _ in range(ROUNDS):
        cl.enqueue_copy(queue, here, host, is_blocking=False)
        for kernel in kernels:
            kernel(queue, host.shape, None, here, numpy.float32(2))
        cl.enqueue_copy(queue, there, here)
        cl.enqueue_copy(queue, host, there)
    queue.finish()


def process():
    import pyopencl as cl

    context = cl.Context(cl.get_platforms()[0].get_devices())
    program = cl.Program(context, SOURCE).build()
    threads = [threading.Thread(target=work, args=(context, program)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=process) for _ in range(2)]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
    print("exit codes", [one.exitcode for one in processes])
    sys.exit(any(one.exitcode for one in processes))
