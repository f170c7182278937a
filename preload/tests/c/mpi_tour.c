/* Two ranks that call what the test of MPI looks at; built with the header of the MPI that they run on. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, flag;
    double a[64] = {1}, b[256] = {0};
    MPI_Status status;
    MPI_Request requests[2];
    MPI_Comm half;
    MPI_Datatype vector;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int peer = rank ^ 1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Send(a, 10, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
    else MPI_Recv(b, 10, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Sendrecv(a, 3, MPI_INT, peer, 5, b, 3, MPI_INT, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int at = 0; at < 1000; at++) MPI_Allreduce(a, b, at % 64, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoall(a, 2, MPI_FLOAT, b, 2, MPI_FLOAT, MPI_COMM_WORLD);
    /* What counts only at the root is garbage elsewhere. */
    if (rank == 0) MPI_Gather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, b, 4, MPI_CHAR, 0, MPI_COMM_WORLD);
    else MPI_Gather(a, 4, MPI_CHAR, 0, -77, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    for (int at = 0; at < 3; at++) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &half);
        MPI_Bcast(a, 5, MPI_LONG, 1, half);
        MPI_Comm_free(&half);
        MPI_Type_vector(4, 2 + at, 8, MPI_INT, &vector);
        MPI_Type_commit(&vector);
        MPI_Irecv(b, 1, vector, peer, 9, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(a, 1, vector, peer, 9, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Type_free(&vector);
    }
    MPI_Irecv(b, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[0]);
    for (int at = 0; at < 3; at++) MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(a, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
    do MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    while (!flag);
    MPI_Send(a, 100, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    /* What MPI refuses has the same end as without roctop. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int codes[3], classes[3];
    codes[0] = MPI_Send(a, -1, MPI_INT, peer, 1, MPI_COMM_WORLD);
    codes[1] = MPI_Allreduce(a, b, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);
    codes[2] = MPI_Bcast(a, 1, MPI_INT, 99, MPI_COMM_WORLD);
    for (int at = 0; at < 3; at++) MPI_Error_class(codes[at], &classes[at]);
    printf("rank %d of %d: %d %d %d\n", rank, size, classes[0], classes[1], classes[2]);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
