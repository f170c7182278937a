"""Calls `measure` of the library made of sites.c with different numbers of Python frames: sites.py LIBRARY ROUNDS"""

import ctypes
import sys

library = ctypes.PyDLL(sys.argv[1])
rounds = int(sys.argv[2])


def at(depth, name):
    if depth > 1:
        return at(depth - 1, name)
    return library.measure(name, rounds // 4)


# The module is a frame, too.
for _ in range(4):
    for frames in (2, 4, 8, 12, 30):
        if at(frames - 1, b"python%d" % frames):
            sys.exit("no control file")
