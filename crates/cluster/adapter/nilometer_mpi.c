/* What Nilometer asks of MPI, as a library of its own: MPI's implementations differ in their ABI, so that each wants this file
 * compiled by its own compiler, and the program stays the same for all:
 *
 *     nilometer generate mpi | mpicc -O2 -shared -fPIC -x c - -o libnilometer_mpi.so
 *
 * Messages of bytes between two processes, never waited for here: who waits asks again, and sleeps meanwhile. Files, whose calls
 * last as long as the storage takes. All of it is called by one thread at a time.
 *
 * Source: MPI: A Message-Passing Interface Standard, version 3.1.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Raised when anything below changes: a program and an adapter of different versions do not go together. */
int nilometer_mpi_version(void) { return 2; }

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
    /* What a file system does wrong is told, and ends nothing. */
    if ((error = MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN)) != MPI_SUCCESS) return error;
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

/* Some of the processes, which open files together: by their ranks, in the order that they have in it. All of these call it. */
int nilometer_mpi_group(const int *ranks, int count, void **group) {
    MPI_Group whole, part;
    MPI_Comm *together = malloc(sizeof *together);
    if (together == NULL) return ENOMEM;
    int error = MPI_Comm_group(all, &whole);
    if (error == MPI_SUCCESS) error = MPI_Group_incl(whole, count, ranks, &part);
    if (error == MPI_SUCCESS) error = MPI_Comm_create_group(all, part, 0, together);
    if (error != MPI_SUCCESS) {
        free(together);
        return EIO;
    }
    MPI_Group_free(&part);
    MPI_Group_free(&whole);
    *group = together;
    return 0;
}

/* The end of it; all of its processes call it. */
void nilometer_mpi_ungroup(void *group) {
    MPI_Comm_free(group);
    free(group);
}

/* A file that is open, and by whom: by all of a group, or by this process alone. */
struct opened {
    MPI_File file;
    MPI_Comm by;
};

/* Some libraries say only that something went wrong, or not even that: then the last thing that the kernel said to this thread,
 * if it is something that is said of files; 0 if it is not. */
static int said_by_kernel(int number) {
    static const int of_files[] = {ENOSPC, EDQUOT, EIO, EROFS, EFBIG, ESTALE, ENXIO, ENODEV, ETIMEDOUT};
    for (size_t each = 0; each < sizeof of_files / sizeof *of_files; each++)
        if (of_files[each] == number) return number;
    return 0;
}

/* What MPI says of an error, as the kernel would; 0 of none. `errno` was 0 before the call. */
static int number_of(int error) {
    int kernel = errno, class = MPI_ERR_OTHER;
    if (error == MPI_SUCCESS) return 0;
    MPI_Error_class(error, &class);
    switch (class) {
    case MPI_ERR_NO_SPACE: return ENOSPC;
    case MPI_ERR_QUOTA: return EDQUOT;
    case MPI_ERR_NO_SUCH_FILE: return ENOENT;
    case MPI_ERR_FILE_EXISTS: return EEXIST;
    case MPI_ERR_FILE_IN_USE: return EBUSY;
    case MPI_ERR_ACCESS: return EACCES;
    case MPI_ERR_READ_ONLY: return EROFS;
    case MPI_ERR_BAD_FILE: case MPI_ERR_AMODE: case MPI_ERR_ARG: case MPI_ERR_COUNT: return EINVAL;
    case MPI_ERR_NOT_SAME: case MPI_ERR_INFO: case MPI_ERR_INFO_KEY: case MPI_ERR_INFO_VALUE: return EINVAL;
    case MPI_ERR_UNSUPPORTED_OPERATION: return EOPNOTSUPP;
    case MPI_ERR_NO_MEM: return ENOMEM;
    default: return said_by_kernel(kernel) != 0 ? said_by_kernel(kernel) : EIO;
    }
}

/* How a file is opened, as the program says it. */
enum { READS = 1, WRITES = 2, CREATES = 4, MUST_BE_NEW = 8 };

static int mode_of(int how) {
    int mode = how & READS ? (how & WRITES ? MPI_MODE_RDWR : MPI_MODE_RDONLY) : MPI_MODE_WRONLY;
    if (how & CREATES) mode |= MPI_MODE_CREATE;
    if (how & MUST_BE_NEW) mode |= MPI_MODE_EXCL;
    return mode;
}

/* Opens a file with hints, `count` keys with a value behind each: by all of a group, or by this process alone if there is none.
 * If it can't be opened by one of the group it is open for none, and all are told. An errno, or 0. */
int nilometer_mpi_open(void *group, const char *path, int how, const char *const *hints, int count, void **file) {
    MPI_Comm by = group == NULL ? MPI_COMM_SELF : *(MPI_Comm *)group;
    MPI_Info info;
    struct opened *opened = malloc(sizeof *opened);
    if (opened == NULL) return ENOMEM;
    opened->by = by;
    MPI_Info_create(&info);
    for (int each = 0; each < count; each++) MPI_Info_set(info, hints[2 * each], hints[2 * each + 1]);
    errno = 0;
    int number = number_of(MPI_File_open(by, path, mode_of(how), info, &opened->file)), gravest = number;
    MPI_Info_free(&info);
    if (group != NULL && MPI_Allreduce(&number, &gravest, 1, MPI_INT, MPI_MAX, by) != MPI_SUCCESS) gravest = EIO;
    if (gravest != 0) {
        /* To close it takes all of them: where others have none it stays open. */
        if (number == 0 && group == NULL) MPI_File_close(&opened->file);
        free(opened);
        return number != 0 ? number : gravest;
    }
    MPI_File_set_errhandler(opened->file, MPI_ERRORS_RETURN);
    *file = opened;
    return 0;
}

/* Set when ompio (Open MPI 4.1) has failed in a collective write: it says that all went well, and from then on each
 * `MPI_File_sync` of this process fails before it has met the others, who would wait for it for ever. */
static int can_not_sync = 0;

/* What became of a call, and how many bytes it moved. Where fewer are moved than were asked for, and where all move them together,
 * ompio says nothing of what the kernel refused. */
static int outcome(int error, int kernel, MPI_Status *status, int count, int together, int *moved) {
    int number = number_of(error);
    if (number == 0 && MPI_Get_count(status, MPI_BYTE, moved) != MPI_SUCCESS) number = EIO;
    if (number == 0 && (together || *moved < count)) number = said_by_kernel(kernel);
    return number;
}

/* Writes bytes at a place, by itself or together with all others that have opened the file. An errno, or 0. */
int nilometer_mpi_write(void *file, long long at, const void *bytes, int count, int together, int *moved) {
    MPI_File to = ((struct opened *)file)->file;
    MPI_Status status;
    errno = 0;
    int error = together ? MPI_File_write_at_all(to, at, bytes, count, MPI_BYTE, &status)
                         : MPI_File_write_at(to, at, bytes, count, MPI_BYTE, &status);
    int number = outcome(error, errno, &status, count, together, moved);
    if (together && number != 0 && error == MPI_SUCCESS) can_not_sync = 1;
    return number;
}

/* Reads in the same way. */
int nilometer_mpi_read(void *file, long long at, void *bytes, int count, int together, int *moved) {
    MPI_File from = ((struct opened *)file)->file;
    MPI_Status status;
    errno = 0;
    int error = together ? MPI_File_read_at_all(from, at, bytes, count, MPI_BYTE, &status)
                         : MPI_File_read_at(from, at, bytes, count, MPI_BYTE, &status);
    return outcome(error, errno, &status, count, together, moved);
}

/* What was written is on storage; all that have opened it call this, and none if one of them can't. An errno, or 0. */
int nilometer_mpi_sync(void *file) {
    struct opened *opened = file;
    int any = 0;
    if (MPI_Allreduce(&can_not_sync, &any, 1, MPI_INT, MPI_MAX, opened->by) != MPI_SUCCESS || any) return EIO;
    errno = 0;
    return number_of(MPI_File_sync(opened->file));
}

/* Which of its parts that open files Open MPI prefers, once a file was opened: those that it has are known by their priorities,
 * of which the highest counts. Nothing where a library has no such parts. An errno, or 0. */
int nilometer_mpi_preferred(char *name, int room) {
    int provided = 0, count = 0, highest = -1;
    copied(name, room, "");
    if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) return EOPNOTSUPP;
    if (MPI_T_cvar_get_num(&count) != MPI_SUCCESS) count = 0;
    for (int each = 0; each < count; each++) {
        char variable[256] = "", part[64] = "";
        int length = sizeof variable, verbosity, binding, scope, none = 0, end = 0, elements = 0, priority = -1;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_T_enum words;
        MPI_T_cvar_handle handle;
        if (MPI_T_cvar_get_info(each, variable, &length, &verbosity, &type, &words, NULL, &none, &binding, &scope) != MPI_SUCCESS)
            continue;
        if (sscanf(variable, "io_%63[a-z0-9]_priority%n", part, &end) != 1 || end == 0 || variable[end] != '\0') continue;
        if (type != MPI_INT || MPI_T_cvar_handle_alloc(each, NULL, &handle, &elements) != MPI_SUCCESS) continue;
        if (elements == 1 && MPI_T_cvar_read(handle, &priority) == MPI_SUCCESS && priority > highest) {
            highest = priority;
            copied(name, room, part);
        }
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
    return 0;
}

/* The hints that are in force, as far as the library tells, a line each: a key, `=` and its value. As many as there is room for. An errno, or 0. */
int nilometer_mpi_hints(void *file, char *text, int room) {
    MPI_Info info;
    int keys = 0, used = 0;
    errno = 0;
    int number = number_of(MPI_File_get_info(((struct opened *)file)->file, &info));
    copied(text, room, "");
    if (number != 0 || info == MPI_INFO_NULL) return number;
    MPI_Info_get_nkeys(info, &keys);
    for (int each = 0; each < keys; each++) {
        char key[MPI_MAX_INFO_KEY + 1] = "", value[MPI_MAX_INFO_VAL + 1] = "";
        int is_set = 0;
        MPI_Info_get_nthkey(info, each, key);
        MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &is_set);
        int length = (int)(strlen(key) + strlen(value) + 2);
        if (!is_set || used + length >= room) continue;
        snprintf(text + used, (size_t)(room - used), "%s=%s\n", key, value);
        used += length;
    }
    MPI_Info_free(&info);
    return 0;
}

/* Closes it; all that have opened it call this. An errno, or 0. */
int nilometer_mpi_close(void *file) {
    struct opened *opened = file;
    errno = 0;
    int number = number_of(MPI_File_close(&opened->file));
    free(opened);
    return number;
}
