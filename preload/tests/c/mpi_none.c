/* A program without MPI that would use it where it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

__attribute__((weak)) int MPI_Init(int *, char ***);
__attribute__((weak)) int PMPI_Init(int *, char ***);

int main(void) {
    void *self = dlopen(0, RTLD_LAZY);
    printf("%d %d %d %d %d\n", MPI_Init != 0, PMPI_Init != 0, dlsym(RTLD_DEFAULT, "MPI_Init") != 0,
           dlsym(RTLD_NEXT, "MPI_Send") != 0, dlsym(self, "MPI_Finalize") != 0);
    return 0;
}
