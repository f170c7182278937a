/* A program of MPI, or with -DLATE a library that a program opens. Declares what it uses itself: there is no mpi.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct object *handle;
extern char ompi_mpi_comm_world, ompi_mpi_int, ompi_mpi_double, ompi_mpi_op_sum;
#define WORLD ((handle)&ompi_mpi_comm_world)
#define INT ((handle)&ompi_mpi_int)
#define DOUBLE ((handle)&ompi_mpi_double)
#define GARBAGE ((handle)0xbadbadbadbadUL)
int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Barrier(handle);
int MPI_Send(const void *, int, handle, int, int, handle), MPI_Comm_dup(handle, handle *), MPI_Comm_free(handle *);
int MPI_Test(void **, int *, void *), MPI_Bcast(void *, int, handle, int, handle);
int MPI_Allreduce(const void *, void *, int, handle, handle, handle);
int MPI_Gather(const void *, int, handle, void *, int, handle, int, handle);

static void back(handle comm) { MPI_Barrier(comm); }

/* Rights of the page of an address. */
static void rights(const char *what, void *address) {
    char line[512], rights[8];
    unsigned long from, to;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && from <= (unsigned long)address && (unsigned long)address < to)
            printf("%s %s\n", what, rights);
    fclose(maps);
}
/* The loader makes this read-only, with the tables of what is bound at the start beside it. */
__attribute__((visibility("hidden"))) extern char _DYNAMIC[];

int work(void) {
    int flag, codes[12], at = 0;
    void *pending = &flag, *complete = 0;
    handle copy, again;
    errno = 77;
    codes[at++] = MPI_Init(0, 0);
    codes[at++] = MPI_Barrier(WORLD);
    codes[at++] = MPI_Send(0, 3, DOUBLE, 5, 42, WORLD);
    /* Failed, or not significant. */
    codes[at++] = MPI_Send(0, -1, INT, 0, 0, WORLD);
    codes[at++] = MPI_Send(0, 1, GARBAGE, 0, 0, WORLD);
    codes[at++] = MPI_Barrier(GARBAGE);
    codes[at++] = MPI_Send(0, 0, GARBAGE, 0, 0, WORLD);
    codes[at++] = MPI_Send(0, 9, GARBAGE, -2, 0, WORLD);
    MPI_Gather(0, 2, INT, 0, 12345, GARBAGE, 1, WORLD);
    for (int i = 0; i < 4; i++) MPI_Test(&pending, &flag, 0);
    MPI_Test(&complete, &flag, 0);
    MPI_Allreduce(0, 0, 2, INT, (handle)&ompi_mpi_op_sum, WORLD);
    MPI_Bcast((void *)back, 1, INT, 0, WORLD);
    /* A handle that is freed, and the same one again. */
    codes[at++] = MPI_Comm_dup(WORLD, &copy);
    MPI_Barrier(copy);
    again = copy;
    codes[at++] = MPI_Comm_free(&copy);
    codes[at++] = MPI_Barrier(again);
    MPI_Comm_dup(WORLD, &copy);
    MPI_Barrier(copy);
    codes[at++] = MPI_Finalize();
    printf("errno %d codes", errno);
    for (int i = 0; i < at; i++) printf(" %d", codes[i]);
    printf("\n");
    Dl_info facts;
    void *function = (void *)MPI_Barrier;
    printf("reference to %s\n", dladdr(function, &facts) && strstr(facts.dli_fname, "libmpi") ? "MPI" : "another library");
    rights("table", _DYNAMIC);
    fflush(stdout);
    return 0;
}
#ifndef LATE
int main(void) { return work(); }
#endif
