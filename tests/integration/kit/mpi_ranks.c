/* Ranks of MPI that come late by script, and write when they called what. Built twice: with -DBELOW as a library between
   the program and MPI, which is below roctop, and as the program.

   Lines of the log: process, function, communicator, and four times: before the call, in the library before MPI's function
   and after it, and after the call. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

#ifdef BELOW
uint64_t below[2];

#define BELOW_CALL(name, parameters, arguments) \
    int MPI_##name parameters {                 \
        below[0] = now();                       \
        int result = PMPI_##name arguments;     \
        below[1] = now();                       \
        return result;                          \
    }

BELOW_CALL(Barrier, (MPI_Comm comm), (comm))
BELOW_CALL(Bcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm), (data, count, type, root, comm))
BELOW_CALL(Allreduce, (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (from, to, count, type, op, comm))
BELOW_CALL(Reduce, (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (from, to, count, type, op, root, comm))
#else
extern uint64_t below[2];
static FILE *file;
static int rank;

#define LOG(name, comm, call)                                                                         \
    do {                                                                                              \
        uint64_t before = now();                                                                      \
        call;                                                                                         \
        uint64_t after = now();                                                                       \
        fprintf(file, "%d MPI_%s %s %llu %llu %llu %llu\n", getpid(), name, comm, (unsigned long long)before, \
                (unsigned long long)below[0], (unsigned long long)below[1], (unsigned long long)after); \
    } while (0)

static void late(int who, int milliseconds) {
    if (rank == who) usleep(milliseconds * 1000);
}

int main(int argc, char **argv) {
    int size, steps = argc > 2 ? atoi(argv[2]) : 5, alone = argc > 3;
    double a[4] = {1}, b[4];
    char path[4096];
    MPI_Comm copy, part;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(path, sizeof path, "%s.%d", argv[1], rank);
    file = fopen(path, "w");
    if (!file) return 3;
    LOG("Barrier", "world", MPI_Barrier(MPI_COMM_WORLD));
    for (int step = 0; step < steps; step++) {
        late(1, 20);
        LOG("Allreduce", "world", MPI_Allreduce(a, b, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    }
    if (!alone) {
        /* A call that MPI refuses takes no part. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (rank == 0) MPI_Allreduce(a, b, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);
        late(0, 10);
        LOG("Bcast", "world", MPI_Bcast(a, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD));
        MPI_Barrier(MPI_COMM_SELF);
        late(1, 5);
        LOG("Reduce", "world", MPI_Reduce(a, b, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Comm_split(copy, rank == size - 1 ? MPI_UNDEFINED : rank % 2, -rank, &part);
        late(0, 5);
        LOG("Barrier", "copy", MPI_Barrier(copy));
        if (part != MPI_COMM_NULL) {
            const char *name = rank % 2 ? "odd" : "even";
            late(2, 5);
            for (int at = 0; at < 3; at++) LOG("Barrier", name, MPI_Barrier(part));
            MPI_Comm_free(&part);
        }
        MPI_Comm_free(&copy);
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        LOG("Barrier", "again", MPI_Barrier(copy));
        LOG("Barrier", "world", MPI_Barrier(MPI_COMM_WORLD));
    }
    fclose(file);
    MPI_Finalize();
    return 0;
}
#endif
