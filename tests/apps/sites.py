"""Launches and copies by many paths of Python functions, and notes by which one.

    sites.py LIBRARY [ROUNDS=20] [THREADS=2]

LIBRARY is what liblaunch.hip makes. Before each call its path is noted, `function:line` of each Python frame, the
innermost first. APP_SITES names the file that gets a line `thread-id path` for each call, in order within a thread.
"""

import ctypes
import functools
import os
import sys
import tempfile
import threading

library = ctypes.CDLL(sys.argv[1])
# This one keeps the interpreter's lock.
locked = ctypes.PyDLL(sys.argv[1])
launch, copy, held = library.launch_kernel, library.launch_copy, locked.launch_kernel
Function = ctypes.CFUNCTYPE(None)
local = threading.local()
# What a local variable has must not leave the session.
CANARY = "".join(chr(65 + (at * 7 + 3) % 26) for at in range(32))


def note():
    frame, path = sys._getframe(1), []
    while frame:
        code = frame.f_code
        path.append(f"{getattr(code, 'co_qualname', code.co_name)}:{frame.f_lineno}")
        frame = frame.f_back
    local.noted.append(" < ".join(path))


def two_lines():
    secret = CANARY.encode()
    note(); launch()
    note(); launch()
    note(); copy()
    return secret


def wrapper(function):
    note(); function()


def by_a_wrapper():
    wrapper(launch)
    wrapper(launch)
    wrapper(held)


def lock_is_kept():
    note(); held()
    note(); held()


def recursive(depth):
    if depth == 0:
        note(); launch()
        return 0
    return 1 + recursive(depth - 1)


class Layer:
    def forward(self):
        note(); launch()

    def __call__(self, *arguments, **keywords):
        return self.forward(*arguments, **keywords)


class Dense(Layer):
    def forward(self, times=1):
        for _ in range(times):
            note(); launch()
        super().forward()

    @property
    def value(self):
        note(); held()

    @functools.lru_cache(maxsize=0)
    def cached(self, _):
        note(); copy()

    def __del__(self):
        note(); held()


class Made:
    def __init__(self):
        note(); launch()


def made():
    # From 3.12 on the interpreter soon goes another way to `__init__`.
    for _ in range(12):
        Made()


def generated(times):
    for at in range(times):
        note(); launch()
        yield at
        note(); held()


def delegating():
    yield from generated(2)
    note(); launch()


async def awaited():
    note(); launch()


async def waiting():
    await awaited()
    note(); held()
    await awaited()


def run(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


def failing(depth):
    try:
        if depth:
            failing(depth - 1)
        raise ValueError
    except ValueError:
        note(); launch()
        if depth in (1, 2):
            raise
    finally:
        note(); held()


def key(value):
    note(); launch()
    return -value


def called_from_c():
    sorted([3, 1, 2], key=key)
    functools.partial(wrapper, launch)()
    library.call_back(Function(two_lines))
    locked.call_back(Function(lambda: wrapper(held)))
    list(map(lambda _: wrapper(launch), range(2)))
    [wrapper(held) for _ in range(2)]
    exec(compile("\n" * 700 + "note(); launch()\n" + "\n" * 300 + "note(); held()", "<généré>", "exec"))


def über_unicode():
    note(); launch()


def long_function():
    note(); launch()
































































































































    note(); launch()
    (launch if note() is None else
     held)()


def pair(first, second):
    first(); return second()


def hot():
    """Loops that an interpreter with a just-in-time compiler has compiled when they launch: the calls are those of the steps."""
    quiet = functools.partial(int)
    compiler = getattr(sys, "_jit", None)
    is_compiled = compiler.is_active if compiler else quiet
    steps = [(quiet, quiet)] * 6000
    steps += [(functools.partial(note), called) for called in (launch, held, copy) * 10]
    steps.append((quiet, is_compiled))
    for first, second in steps:
        first(); answer = second()
    answers = [answer]
    for first, second in steps:
        answer = pair(first, second)
    answers.append(answer)
    assert not compiler or answers == [compiler.is_enabled()] * 2, answers


def all_paths(recursion):
    two_lines(); by_a_wrapper()
    lock_is_kept()
    for depth in range(recursion):
        recursive(depth)
    dense = Dense()
    dense(); dense(times=2); dense.value
    dense.cached(1)
    Dense()
    for _ in generated(2):
        note(); held()
    list(delegating())
    run(waiting())
    failing(3)
    called_from_c()
    über_unicode(); long_function()
    made()


def in_another_interpreter():
    """Runs two_lines and a generator in one, on this thread; before 3.12 its frames are not read."""
    if sys.version_info < (3, 12):
        return
    try:
        import _interpreters as interpreters
        number = interpreters.create("legacy")
    except ImportError:
        import _xxsubinterpreters as interpreters
        number = interpreters.create(isolated=False)
    with tempfile.NamedTemporaryFile("r") as file:
        program = f"""
import sys
sys.argv = {sys.argv[:2]!r}
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import sites
sites.local.noted = []
sites.by_a_wrapper()
list(sites.delegating())
open({file.name!r}, "w").write("\\n".join(sites.local.noted))
"""
        failure = interpreters.run_string(number, program)
        assert not failure, failure
        local.noted.extend(file.read().split("\n"))
    interpreters.destroy(number)


def work(rounds, recursion, notes):
    local.noted = []
    for _ in range(rounds):
        all_paths(recursion)
    hot()
    library.wait_for_all()
    notes.append((threading.get_native_id(), local.noted))


def write(notes):
    with open(os.environ["APP_SITES"], "a") as file:
        for thread, noted in notes:
            file.writelines(f"{thread} {path}\n" for path in noted)


def main():
    rounds, count = (int(word) for word in (sys.argv[2:] + ["20", "2"][len(sys.argv) - 2:]))
    child = os.fork()
    local.noted, notes = [], []
    note(); library.allocate()
    notes.append((threading.get_native_id(), local.noted))
    threads = [threading.Thread(target=work, args=(rounds, 4 + number, notes)) for number in range(count)]
    for thread in threads:
        thread.start()
    work(rounds, 30, notes)
    for thread in threads:
        thread.join()
    in_another_interpreter()
    library.wait_for_all()
    write(notes)
    if child:
        assert os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    main()
