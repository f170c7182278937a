"""Two ranks that call MPI from Python. The argument, if there is one, is a library to open before MPI is."""
import ctypes
import os
import sys

if len(sys.argv) > 1:
    ctypes.CDLL(sys.argv[1], os.RTLD_NOW | os.RTLD_GLOBAL)
from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
peer = 1 - rank
a, b = bytearray(range(80)), bytearray(320)
world.Barrier()
if rank == 0:
    world.Send([a, 10, MPI.DOUBLE], 1, 7)
else:
    world.Recv([b, 10, MPI.DOUBLE])
for count in range(10):
    world.Allreduce([a, count, MPI.INT], [b, count, MPI.INT], MPI.MAX)
world.Alltoall([a, 2, MPI.FLOAT], [b, 2, MPI.FLOAT])
if rank == 0:
    world.Gather(MPI.IN_PLACE, [b, 40, MPI.CHAR], 0)
else:
    world.Gather([a, 40, MPI.CHAR], None, 0)
requests = [world.Irecv([b, 7, MPI.INT], peer, 9), world.Isend([a, 7, MPI.INT], peer, 9)]
MPI.Request.Waitall(requests)
half = world.Split(0, -rank)
half.Bcast([a, 5, MPI.LONG], 1)
half.Free()
got = None
if rank == 0:
    world.send({"key": rank}, 1)
else:
    got = world.recv(source=0)
# In one piece: the other rank writes, too.
sys.stdout.write(f"rank {rank} of {world.Get_size()} {bytes(b[:8])} {got}\n")
