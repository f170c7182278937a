/* Opens libraries late: one that uses MPI, or MPI itself. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (argc < 2 || !library) return printf("%s\n", dlerror()), 1;
    int (*work)(void) = (int (*)(void))dlsym(library, "work");
    if (work) return work();
    int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(library, "MPI_Init");
    int (*barrier)(void *) = (int (*)(void *))dlsym(library, "MPI_Barrier");
    int (*end)(void) = (int (*)(void))dlsym(library, "MPI_Finalize");
    printf("%d", init(0, 0));
    printf(" %d", barrier(dlsym(library, "ompi_mpi_comm_world")));
    printf(" %d\n", end());
    return 0;
}
