/* A stand-in for an MPI library: one rank, handles in the form of Open MPI's. It ends the program if it is asked what
   roctop may not ask: about a handle that is none, or outside of its start and end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int valid, size, inter; } object;
typedef object *handle;
object ompi_mpi_comm_world = {1, 1, 0}, ompi_mpi_comm_self = {1, 1, 0}, ompi_mpi_op_sum = {1, 0, 0};
object ompi_mpi_int = {1, 4, 0}, ompi_mpi_double = {1, 8, 0};
static object made;
static int state;

static void forbidden(const char *what) {
    printf("FORBIDDEN %s\n", what);
    fflush(stdout);
    _Exit(9);
}
static int is_known(handle h) {
    return h == &ompi_mpi_comm_world || h == &ompi_mpi_comm_self || h == &ompi_mpi_op_sum || h == &ompi_mpi_int ||
        h == &ompi_mpi_double || (h == &made && made.valid);
}
static void asked(handle h, const char *what) {
    if (state != 1) forbidden(what);
    if (!is_known(h)) forbidden(what);
}

int PMPI_Initialized(int *flag) { return *flag = state > 0, 0; }
int PMPI_Finalized(int *flag) { return *flag = state > 1, 0; }
int PMPI_Type_size(handle h, int *size) { return asked(h, "type"), *size = h->size, 0; }
int PMPI_Comm_size(handle h, int *size) { return asked(h, "size"), *size = 1, 0; }
int PMPI_Comm_rank(handle h, int *rank) { return asked(h, "rank"), *rank = 0, 0; }
int PMPI_Comm_test_inter(handle h, int *flag) { return asked(h, "inter"), *flag = h->inter, 0; }

#define BOTH(name, parameters, ...) \
    int PMPI_##name parameters { __VA_ARGS__ } \
    int MPI_##name parameters __attribute__((weak, alias("PMPI_" #name)));

BOTH(Init, (int *argc, char ***argv), (void)argc; (void)argv; state = 1; return 0;)
BOTH(Finalize, (void), state = 2; return 0;)
BOTH(Barrier, (handle comm), return is_known(comm) ? 0 : 5;)
BOTH(Send, (const void *buffer, int count, handle type, int peer, int tag, handle comm),
     (void)buffer; (void)peer; (void)tag;
     return !is_known(comm) || (count > 0 && peer != -2 && !is_known(type)) || count < 0 ? 3 : 0;)
BOTH(Comm_dup, (handle comm, handle *result), if (!is_known(comm)) return 5; made.valid = 1; *result = &made; return 0;)
BOTH(Comm_free, (handle *comm), if (!is_known(*comm)) return 5; (*comm)->valid = 0; *comm = 0; return 0;)
BOTH(Test, (void **request, int *flag, void *status), (void)status; *flag = *request == 0; return 0;)
BOTH(Gather, (const void *from, int count, handle type, void *to, int others, handle other, int root, handle comm),
     (void)from; (void)count; (void)type; (void)to; (void)others; (void)other; (void)root; (void)comm; return 0;)
/* Its own calls of itself are not the program's. */
BOTH(Allreduce, (const void *from, void *to, int count, handle type, handle op, handle comm),
     (void)to; (void)op; return MPI_Send(from, count, type, 0, 0, comm);)
/* Calls the program back inside of a call. */
BOTH(Bcast, (void *buffer, int count, handle type, int root, handle comm),
     (void)count; (void)type; (void)root; if (buffer) ((void (*)(handle))buffer)(comm); return 0;)
