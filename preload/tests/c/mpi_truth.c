/* Counts the calls of MPI that pass it, by MPI's own interface and header. Each rank writes a line a call to
   $MPI_TRUTH.RANK: name, begin and end in ticks, peer or root, bytes; - where there is none. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

static struct { const char *name; unsigned long long begin, end; int peer; long bytes; } calls[65536];
static int count;
enum { NONE = -1000 };

static void put(const char *name, unsigned long long begin, unsigned long long end, int peer, long bytes) {
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

#define PASS(name, parameters, arguments, peer, bytes) \
    int MPI_##name parameters { \
        unsigned long long begin = __rdtsc(); \
        int result = PMPI_##name arguments; \
        unsigned long long end = __rdtsc(); \
        put("MPI_" #name, begin, end, peer, bytes); \
        return result; \
    }

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
PASS(Comm_split, (MPI_Comm m, int c, int k, MPI_Comm *n), (m, c, k, n), NONE, NONE)
PASS(Comm_free, (MPI_Comm *m), (m), NONE, NONE)

int MPI_Test(MPI_Request *r, int *flag, MPI_Status *s) {
    unsigned long long begin = __rdtsc();
    int result = PMPI_Test(r, flag, s);
    put(*flag ? "MPI_Test" : "empty", begin, __rdtsc(), NONE, NONE);
    return result;
}
int MPI_Finalize(void) {
    char path[4096];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned long long begin = __rdtsc();
    int result = PMPI_Finalize();
    put("MPI_Finalize", begin, __rdtsc(), NONE, NONE);
    snprintf(path, sizeof path, "%s.%d", getenv("MPI_TRUTH"), rank);
    FILE *file = fopen(path, "w");
    for (int at = 0; at < count; at++)
        fprintf(file, "%s %llu %llu %d %ld\n", calls[at].name, calls[at].begin, calls[at].end, calls[at].peer, calls[at].bytes);
    fclose(file);
    return result;
}
