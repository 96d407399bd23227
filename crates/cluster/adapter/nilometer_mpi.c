/* What Nilometer asks of MPI, as a library of its own: MPI's implementations differ in their ABI, so that each wants this file
 * compiled by its own compiler, and the program stays the same for all:
 *
 *     nilometer generate mpi | mpicc -O2 -shared -fPIC -x c - -o libnilometer_mpi.so
 *
 * Messages of bytes between two processes, never waited for here: who waits asks again, and sleeps meanwhile. All of it is
 * called by one thread at a time.
 *
 * Source: MPI: A Message-Passing Interface Standard, version 3.1.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* Raised when anything below changes: a program and an adapter of different versions do not go together. */
int nilometer_mpi_version(void) { return 1; }

static MPI_Comm all = MPI_COMM_NULL;

static void copied(char *into, int room, const char *text) {
    if (room < 1) return;
    strncpy(into, text, (size_t)room - 1);
    into[room - 1] = '\0';
}

/* Joins the other processes; what is said of this library is a text of its vendor. 0, or the number of an error. */
int nilometer_mpi_start(int *rank, int *size, char *library, int room) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0, provided = 0, is_there = 0;
    int error = MPI_Initialized(&is_there);
    if (error == MPI_SUCCESS && !is_there) error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (error != MPI_SUCCESS) return error;
    if (!is_there && provided < MPI_THREAD_SERIALIZED) return -1;
    /* A program that has its own traffic keeps it apart. */
    if ((error = MPI_Comm_dup(MPI_COMM_WORLD, &all)) != MPI_SUCCESS) return error;
    if ((error = MPI_Comm_rank(all, rank)) != MPI_SUCCESS) return error;
    if ((error = MPI_Comm_size(all, size)) != MPI_SUCCESS) return error;
    if ((error = MPI_Get_library_version(text, &length)) != MPI_SUCCESS) return error;
    copied(library, room, text);
    return 0;
}

/* Begins to send; the bytes stay where they are until `nilometer_mpi_sent` says so. */
int nilometer_mpi_send(const void *bytes, int count, int to, int tag, void **sending) {
    MPI_Request *request = malloc(sizeof *request);
    if (request == NULL) return -2;
    int error = MPI_Isend(bytes, count, MPI_BYTE, to, tag, all, request);
    if (error != MPI_SUCCESS) {
        free(request);
        return error;
    }
    *sending = request;
    return 0;
}

/* Whether what is sent has left; then `sending` is gone. */
int nilometer_mpi_sent(void *sending, int *done) {
    int error = MPI_Test(sending, done, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS && *done) free(sending);
    return error;
}

/* Whether a message of this tag is there from a process, and how many bytes it has. */
int nilometer_mpi_look(int from, int tag, int *there, int *count) {
    MPI_Status status;
    int error = MPI_Iprobe(from, tag, all, there, &status);
    if (error == MPI_SUCCESS && *there) error = MPI_Get_count(&status, MPI_BYTE, count);
    return error;
}

/* Takes a message that is there. */
int nilometer_mpi_take(void *bytes, int count, int from, int tag) {
    return MPI_Recv(bytes, count, MPI_BYTE, from, tag, all, MPI_STATUS_IGNORE);
}

/* Ends this process's part, after all others have said that they do. */
int nilometer_mpi_end(void) {
    int is_over = 0;
    MPI_Finalized(&is_over);
    return is_over ? 0 : MPI_Finalize();
}

/* Ends all processes at once. */
void nilometer_mpi_abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }
