/* Ranks of MPI that send each other messages, late by script, and write when they called what. Each message carries its
   number, so the receiver knows which one it got. Built twice, as mpi_ranks.c: with -DBELOW as a library below roctop.

   Lines of the log: process, function, number of the message, whether it is to be matched (1) or must not be (0), and four
   times: before the call, in the library before MPI's function and after it, and after the call. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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
#define OUT const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm
#define IN void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm

BELOW_CALL(Send, (OUT), (data, count, type, peer, tag, comm))
BELOW_CALL(Ssend, (OUT), (data, count, type, peer, tag, comm))
BELOW_CALL(Isend, (OUT, MPI_Request *request), (data, count, type, peer, tag, comm, request))
BELOW_CALL(Recv, (IN, MPI_Status *status), (data, count, type, peer, tag, comm, status))
BELOW_CALL(Irecv, (IN, MPI_Request *request), (data, count, type, peer, tag, comm, request))
#else
extern uint64_t below[2];
static FILE *file;
static int rank, known = 1;
static int numbers[64];
static uint64_t before, after;

enum { LARGE = 1 << 18 };
static int out[LARGE], in[LARGE];

/* Calls are further apart than times are exact. */
#define TIMED(call)     \
    do {                \
        usleep(100);    \
        before = now(); \
        call;           \
        after = now();  \
    } while (0)

static void say(const char *name, int number, const uint64_t times[4]) {
    fprintf(file, "%d MPI_%s %d %d %llu %llu %llu %llu\n", getpid(), name, number, known, (unsigned long long)times[0],
            (unsigned long long)times[1], (unsigned long long)times[2], (unsigned long long)times[3]);
}

static void logged(const char *name, int number) {
    say(name, number, (uint64_t[]){before, below[0], below[1], after});
}

static int next(void) { return out[0] = rank * 1000 + ++numbers[rank]; }

static void late(int who, int milliseconds) {
    if (rank == who) usleep(milliseconds * 1000);
}

#define SEND(kind, from, to, count, tag, comm)                              \
    if (rank == from) {                                                     \
        int number = next();                                                \
        TIMED(MPI_##kind(out, count, MPI_INT, to, tag, comm));              \
        logged(#kind, number);                                              \
    }
#define RECV(to, from, count, tag, comm)                                                 \
    if (rank == to) {                                                                    \
        TIMED(MPI_Recv(in, count, MPI_INT, from, tag, comm, MPI_STATUS_IGNORE));         \
        logged("Recv", in[0]);                                                           \
    }

int main(int argc, char **argv) {
    char path[4096];
    MPI_Comm copy;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s.%d", argv[1], rank);
    file = fopen(path, "w");
    if (!file) return 3;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int step = 0; step < 3; step++) {
        /* A late sender, a late receiver, and messages that are too large to leave before their receiver comes. */
        late(0, 20);
        SEND(Send, 0, 1, 4, 5, MPI_COMM_WORLD)
        RECV(1, 0, 16, 5, MPI_COMM_WORLD)
        late(1, 10);
        SEND(Ssend, 0, 1, 4, 5, MPI_COMM_WORLD)
        RECV(1, 0, 4, MPI_ANY_TAG, MPI_COMM_WORLD)
        late(3, 5);
        SEND(Send, 2, 3, LARGE, 6, MPI_COMM_WORLD)
        RECV(3, 2, LARGE, 6, MPI_COMM_WORLD)
        SEND(Send, 0, MPI_PROC_NULL, 4, 5, MPI_COMM_SELF)
    }
    /* By tags, in another order. */
    SEND(Send, 2, 3, 1, 1, MPI_COMM_WORLD)
    SEND(Send, 2, 3, 1, 2, MPI_COMM_WORLD)
    SEND(Send, 2, 3, 1, 1, copy)
    late(3, 5);
    RECV(3, 2, 1, 2, MPI_COMM_WORLD)
    RECV(3, 2, 1, 1, copy)
    RECV(3, 2, 1, MPI_ANY_TAG, MPI_COMM_WORLD)
    /* Calls that return at once. */
    if (rank == 1) {
        TIMED(MPI_Irecv(in, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request));
        uint64_t times[4] = {before, below[0], below[1], after};
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        say("Irecv", in[0], times);
    }
    late(0, 5);
    SEND(Send, 0, 1, 1, 7, MPI_COMM_WORLD)
    late(2, 10);
    if (rank == 2) {
        int number = next();
        TIMED(MPI_Isend(out, 1, MPI_INT, 3, 8, MPI_COMM_WORLD, &request));
        logged("Isend", number);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    RECV(3, 2, 1, 8, MPI_COMM_WORLD)
    /* From any rank, if one alone has sent. */
    MPI_Barrier(MPI_COMM_WORLD);
    late(3, 10);
    SEND(Send, 3, 0, 1, 9, MPI_COMM_WORLD)
    RECV(0, MPI_ANY_SOURCE, 1, 9, MPI_COMM_WORLD)
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(2000);
    /* From any rank, if two have: the next one is known again. */
    known = 0;
    SEND(Send, 1, 0, 1, 9, MPI_COMM_WORLD)
    SEND(Send, 2, 0, 1, 9, MPI_COMM_WORLD)
    MPI_Barrier(MPI_COMM_WORLD);
    RECV(0, MPI_ANY_SOURCE, 1, 9, MPI_COMM_WORLD)
    RECV(0, MPI_ANY_SOURCE, 1, 9, MPI_COMM_WORLD)
    MPI_Barrier(MPI_COMM_WORLD);
    known = 1;
    usleep(2000);
    SEND(Send, 1, 0, 1, 9, MPI_COMM_WORLD)
    RECV(0, 1, 1, 9, MPI_COMM_WORLD)
    /* What MPI_Sendrecv receives is not known, so nothing after it is in this communicator. */
    if (rank < 2) MPI_Sendrecv(out, 1, MPI_INT, !rank, 3, in, 1, MPI_INT, !rank, 3, copy, MPI_STATUS_IGNORE);
    known = 0;
    SEND(Send, 0, 1, 1, 3, copy)
    RECV(1, 0, 1, 3, copy)
    known = 1;
    SEND(Send, 0, 1, 1, 3, MPI_COMM_WORLD)
    RECV(1, 0, 1, 3, MPI_COMM_WORLD)
    fclose(file);
    MPI_Comm_free(&copy);
    MPI_Finalize();
    return 0;
}
#endif
