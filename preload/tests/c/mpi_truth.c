/* Counts the calls of MPI that pass it, by MPI's own interface and header. Each rank writes a line a call to
   $MPI_TRUTH.RANK: name, begin and end in ticks, peer or root, bytes; - where there is none.

   Calls of Fortran pass it with -DFORTRAN: then it is in front of both names of C, of which MPI's library of Fortran calls
   one. Calls that MPI makes of itself are left out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

static struct { const char *name; unsigned long long begin, end; int peer; long bytes; } calls[65536];
static int count, depth;
enum { NONE = -1000 };

static void put(const char *name, unsigned long long begin, unsigned long long end, int peer, long bytes) {
    if (depth) return;
    if (count == sizeof calls / sizeof *calls) abort();
    calls[count].name = name;
    calls[count].begin = begin;
    calls[count].end = end;
    calls[count].peer = peer;
    calls[count++].bytes = bytes;
}
static long size_of(int number, MPI_Datatype type) {
    int size;
    if (type == MPI_DATATYPE_NULL) return 0;
    PMPI_Type_size(type, &size);
    return (long)number * size;
}
static int ranks(MPI_Comm comm) {
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

#ifdef FORTRAN
#define BOTH(name) int MPI_##name() __attribute__((alias("PMPI_" #name)));
#define WRAP(name) PMPI_##name
#define REAL(name) ((__typeof__(&PMPI_##name))dlsym(RTLD_NEXT, "PMPI_" #name))
#else
#define BOTH(name)
#define WRAP(name) MPI_##name
#define REAL(name) PMPI_##name
#endif
#define PASS_AS(name, shown, parameters, arguments, peer, bytes) \
    int WRAP(name) parameters { \
        static __typeof__(&PMPI_##name) real; \
        if (!real) real = REAL(name); \
        depth++; \
        unsigned long long begin = __rdtsc(); \
        int result = real arguments; \
        unsigned long long end = __rdtsc(); \
        depth--; \
        put(shown, begin, end, peer, bytes); \
        return result; \
    } \
    BOTH(name)
#define PASS(name, parameters, arguments, peer, bytes) PASS_AS(name, "MPI_" #name, parameters, arguments, peer, bytes)

PASS(Init_thread, (int *c, char ***v, int r, int *p), (c, v, r, p), NONE, NONE)
PASS(Init, (int *c, char ***v), (c, v), NONE, NONE)
PASS(Barrier, (MPI_Comm m), (m), NONE, NONE)
PASS(Send, (const void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm m), (b, n, t, p, g, m), p, p < 0 ? 0 : size_of(n, t))
PASS(Recv, (void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm m, MPI_Status *s), (b, n, t, p, g, m, s), p, size_of(n, t))
PASS(Isend, (const void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm m, MPI_Request *r), (b, n, t, p, g, m, r), p, size_of(n, t))
PASS(Irecv, (void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm m, MPI_Request *r), (b, n, t, p, g, m, r), p, size_of(n, t))
PASS(Sendrecv, (const void *b, int n, MPI_Datatype t, int p, int g, void *b2, int n2, MPI_Datatype t2, int p2, int g2, MPI_Comm m,
     MPI_Status *s), (b, n, t, p, g, b2, n2, t2, p2, g2, m, s), p, size_of(n, t))
PASS(Waitall, (int n, MPI_Request *r, MPI_Status *s), (n, r, s), NONE, NONE)
PASS(Allreduce, (const void *b, void *b2, int n, MPI_Datatype t, MPI_Op o, MPI_Comm m), (b, b2, n, t, o, m), NONE, size_of(n, t))
PASS(Alltoall, (const void *b, int n, MPI_Datatype t, void *b2, int n2, MPI_Datatype t2, MPI_Comm m), (b, n, t, b2, n2, t2, m), NONE,
     ranks(m) * size_of(n, t))
PASS(Gather, (const void *b, int n, MPI_Datatype t, void *b2, int n2, MPI_Datatype t2, int p, MPI_Comm m),
     (b, n, t, b2, n2, t2, p, m), p, b == MPI_IN_PLACE ? size_of(n2, t2) : size_of(n, t))
PASS(Bcast, (void *b, int n, MPI_Datatype t, int p, MPI_Comm m), (b, n, t, p, m), p, size_of(n, t))
PASS(Reduce, (const void *b, void *b2, int n, MPI_Datatype t, MPI_Op o, int p, MPI_Comm m), (b, b2, n, t, o, p, m), p, size_of(n, t))
PASS(Wait, (MPI_Request *r, MPI_Status *s), (r, s), NONE, NONE)
PASS(Mprobe, (int p, int g, MPI_Comm m, MPI_Message *e, MPI_Status *s), (p, g, m, e, s), p, NONE)
PASS(Mrecv, (void *b, int n, MPI_Datatype t, MPI_Message *e, MPI_Status *s), (b, n, t, e, s), NONE, NONE)
PASS(Win_create, (void *b, MPI_Aint n, int u, MPI_Info i, MPI_Comm m, MPI_Win *w), (b, n, u, i, m, w), NONE, NONE)
PASS(Win_fence, (int a, MPI_Win w), (a, w), NONE, NONE)
PASS(Win_free, (MPI_Win *w), (w), NONE, NONE)
PASS(File_open, (MPI_Comm m, const char *n, int a, MPI_Info i, MPI_File *f), (m, n, a, i, f), NONE, NONE)
PASS(File_write_at_all, (MPI_File f, MPI_Offset o, const void *b, int n, MPI_Datatype t, MPI_Status *s), (f, o, b, n, t, s), NONE,
     size_of(n, t))
PASS(File_close, (MPI_File *f), (f), NONE, NONE)
PASS(Comm_dup, (MPI_Comm m, MPI_Comm *n), (m, n), NONE, NONE)
PASS(Comm_split, (MPI_Comm m, int c, int k, MPI_Comm *n), (m, c, k, n), NONE, NONE)
PASS(Comm_free, (MPI_Comm *m), (m), NONE, NONE)
PASS_AS(Test, *flag ? "MPI_Test" : "empty", (MPI_Request *r, int *flag, MPI_Status *s), (r, flag, s), NONE, NONE)

int WRAP(Finalize)(void) {
    char path[4096];
    int rank;
    __typeof__(&PMPI_Finalize) real = REAL(Finalize);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned long long begin = __rdtsc();
    int result = real();
    put("MPI_Finalize", begin, __rdtsc(), NONE, NONE);
    snprintf(path, sizeof path, "%s.%d", getenv("MPI_TRUTH"), rank);
    FILE *file = fopen(path, "w");
    for (int at = 0; at < count; at++)
        fprintf(file, "%s %llu %llu %d %ld\n", calls[at].name, calls[at].begin, calls[at].end, calls[at].peer, calls[at].bytes);
    fclose(file);
    return result;
}
BOTH(Finalize)
