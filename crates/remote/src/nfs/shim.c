/*
 * libnfs as functions of one form, whatever its version: each begins one request and returns; a function is called when it is
 * done, within nfs_service(), by the thread that calls that. What is asked and how it is answered stands in ffi.rs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>

#include <nfsc/libnfs.h>

/* An error number, 0 if there is none; a number and a text, which are what the request says. */
typedef void (*done_function)(void *context, int32_t error, uint64_t number, const char *text, size_t length);

enum kind { PLAIN, MOVED, LOOK, LIST, OPENED };

/* Each request has one, which is gone once it was answered. */
struct request {
    done_function done;
    void *context;
    enum kind kind;
    /* Where what is read goes. */
    void *into;
    uint64_t length;
    /* The library is being asked, and may answer before it returns. */
    int is_starting, is_answered;
};

static struct request *request_of(enum kind kind, done_function done, void *context)
{
    struct request *request = calloc(1, sizeof(*request));
    if (!request)
        abort();
    request->kind = kind;
    request->done = done;
    request->context = context;
    request->is_starting = 1;
    return request;
}

/* Of each name `d`, `f` or `?`, the name, and a zero. */
static void say_list(struct request *request, struct nfs_context *nfs, struct nfsdir *directory)
{
    size_t length = 0, room = 4096;
    char *text = malloc(room);
    struct nfsdirent *entry;
    while (text && (entry = nfs_readdir(nfs, directory))) {
        size_t name = strlen(entry->name) + 1;
        if (length + name + 1 > room) {
            room = 2 * (length + name + 1);
            char *more = realloc(text, room);
            if (!more)
                break;
            text = more;
        }
        /* ftype3 of RFC 1813: NF3REG is 1, NF3DIR is 2. */
        text[length++] = entry->type == 2 ? 'd' : entry->type == 1 ? 'f' : '?';
        memcpy(text + length, entry->name, name);
        length += name;
    }
    nfs_closedir(nfs, directory);
    request->done(request->context, 0, 0, text, length);
    free(text);
}

static void answered(struct request *request)
{
    request->is_answered = 1;
    if (!request->is_starting)
        free(request);
}

static void answer(int status, struct nfs_context *nfs, void *data, void *private)
{
    struct request *request = private;
    if (status < 0) {
        /* Of reading and writing the data are those of the reply, and no text. */
        const char *text = request->kind == MOVED ? nfs_get_error(nfs) : data;
        text = text ? text : "";
        request->done(request->context, -status, 0, text, strlen(text));
        answered(request);
        return;
    }
    switch (request->kind) {
    case PLAIN:
        request->done(request->context, 0, 0, NULL, 0);
        break;
    case MOVED:
#ifndef LIBNFS_API_V2
        if (request->into && status > 0 && (uint64_t)status <= request->length)
            memcpy(request->into, data, (size_t)status);
#endif
        request->done(request->context, 0, (uint64_t)status, NULL, 0);
        break;
    case LOOK: {
        struct nfs_stat_64 *stat = data;
        request->done(request->context, 0, stat->nfs_size, S_ISDIR(stat->nfs_mode) ? "d" : "f", 1);
        break;
    }
    case LIST:
        say_list(request, nfs, data);
        break;
    case OPENED:
        request->done(request->context, 0, (uint64_t)(uintptr_t)data, NULL, 0);
        break;
    }
    answered(request);
}

/* The library may have answered while it was asked, and say all the same that it could not begin. */
static void begun(int status, struct request *request)
{
    request->is_starting = 0;
    if (!request->is_answered && status < 0) {
        request->done(request->context, ENOMEM, 0, NULL, 0);
        request->is_answered = 1;
    }
    if (request->is_answered)
        free(request);
}

/* A context that is mounted at the path of a URL; else null, and why in `message`. */
struct nfs_context *nilometer_nfs_mount(const char *url, int milliseconds, int *error, char *message, size_t room)
{
    struct nfs_context *nfs = nfs_init_context();
    struct nfs_url *parsed;
    int status;
    if (!nfs) {
        *error = ENOMEM;
        return NULL;
    }
    parsed = nfs_parse_url_dir(nfs, url);
    if (!parsed) {
        *error = EINVAL;
    } else {
        nfs_set_timeout(nfs, milliseconds);
        /* What is listed is asked of the server each time. */
        nfs_set_dircache(nfs, 0);
        nfs_set_autoreconnect(nfs, 0);
        status = nfs_mount(nfs, parsed->server, parsed->path);
        nfs_destroy_url(parsed);
        if (status == 0) {
            /* A server that stands still is waited for. A connection that is lost is not made again, here as little as for the
             * mount: what is under way fails. */
            nfs_set_timeout(nfs, -1);
            return nfs;
        }
        *error = -status;
    }
    if (nfs_get_error(nfs))
        strncpy(message, nfs_get_error(nfs), room - 1);
    nfs_destroy_context(nfs);
    return NULL;
}

void nilometer_nfs_unmount(struct nfs_context *nfs)
{
    nfs_destroy_context(nfs);
}

int nilometer_nfs_descriptor(struct nfs_context *nfs)
{
    return nfs_get_fd(nfs);
}

int nilometer_nfs_events(struct nfs_context *nfs)
{
    return nfs_which_events(nfs);
}

int nilometer_nfs_service(struct nfs_context *nfs, int events)
{
    return nfs_service(nfs, events);
}

uint64_t nilometer_nfs_most(struct nfs_context *nfs, int write)
{
    return write ? nfs_get_writemax(nfs) : nfs_get_readmax(nfs);
}

/* Size, free, free for this user, inodes and free inodes, in bytes and numbers. */
int nilometer_nfs_space(struct nfs_context *nfs, const char *path, uint64_t space[5])
{
    struct nfs_statvfs_64 stat;
    int status = nfs_statvfs64(nfs, path, &stat);
    if (status < 0)
        return -status;
    space[0] = stat.f_blocks * stat.f_frsize;
    space[1] = stat.f_bfree * stat.f_frsize;
    space[2] = stat.f_bavail * stat.f_frsize;
    space[3] = stat.f_files;
    space[4] = stat.f_favail;
    return 0;
}

/* `how` is 0 to read, 1 to write, 2 for both, 3 to make a new one and write it. */
void nilometer_nfs_open(struct nfs_context *nfs, const char *path, int how, done_function done, void *context)
{
    static const int FLAGS[] = {O_RDONLY, O_WRONLY, O_RDWR};
    struct request *request = request_of(OPENED, done, context);
    if (how == 3)
        begun(nfs_create_async(nfs, path, O_WRONLY | O_CREAT | O_EXCL, 0644, answer, request), request);
    else
        begun(nfs_open_async(nfs, path, FLAGS[how] | O_NOFOLLOW, answer, request), request);
}

void nilometer_nfs_close(struct nfs_context *nfs, struct nfsfh *file, done_function done, void *context)
{
    struct request *request = request_of(PLAIN, done, context);
    begun(nfs_close_async(nfs, file, answer, request), request);
}

void nilometer_nfs_read(struct nfs_context *nfs, struct nfsfh *file, uint64_t offset, uint64_t length, void *into,
                        done_function done, void *context)
{
    struct request *request = request_of(MOVED, done, context);
    request->into = into;
    request->length = length;
#ifdef LIBNFS_API_V2
    begun(nfs_pread_async(nfs, file, into, length, offset, answer, request), request);
#else
    begun(nfs_pread_async(nfs, file, offset, length, answer, request), request);
#endif
}

void nilometer_nfs_write(struct nfs_context *nfs, struct nfsfh *file, uint64_t offset, uint64_t length, const void *from,
                         done_function done, void *context)
{
    struct request *request = request_of(MOVED, done, context);
#ifdef LIBNFS_API_V2
    begun(nfs_pwrite_async(nfs, file, from, length, offset, answer, request), request);
#else
    begun(nfs_pwrite_async(nfs, file, offset, length, from, answer, request), request);
#endif
}

void nilometer_nfs_sync(struct nfs_context *nfs, struct nfsfh *file, done_function done, void *context)
{
    struct request *request = request_of(PLAIN, done, context);
    begun(nfs_fsync_async(nfs, file, answer, request), request);
}

void nilometer_nfs_truncate(struct nfs_context *nfs, struct nfsfh *file, uint64_t size, done_function done, void *context)
{
    struct request *request = request_of(PLAIN, done, context);
    begun(nfs_ftruncate_async(nfs, file, size, answer, request), request);
}

void nilometer_nfs_stat(struct nfs_context *nfs, const char *path, done_function done, void *context)
{
    struct request *request = request_of(LOOK, done, context);
    begun(nfs_lstat64_async(nfs, path, answer, request), request);
}

void nilometer_nfs_list(struct nfs_context *nfs, const char *path, done_function done, void *context)
{
    struct request *request = request_of(LIST, done, context);
    begun(nfs_opendir_async(nfs, path, answer, request), request);
}

void nilometer_nfs_unlink(struct nfs_context *nfs, const char *path, done_function done, void *context)
{
    struct request *request = request_of(PLAIN, done, context);
    begun(nfs_unlink_async(nfs, path, answer, request), request);
}

void nilometer_nfs_remove_dir(struct nfs_context *nfs, const char *path, done_function done, void *context)
{
    struct request *request = request_of(PLAIN, done, context);
    begun(nfs_rmdir_async(nfs, path, answer, request), request);
}

void nilometer_nfs_make_dir(struct nfs_context *nfs, const char *path, done_function done, void *context)
{
    struct request *request = request_of(PLAIN, done, context);
    begun(nfs_mkdir2_async(nfs, path, 0755, answer, request), request);
}

void nilometer_nfs_rename(struct nfs_context *nfs, const char *from, const char *to, done_function done, void *context)
{
    struct request *request = request_of(PLAIN, done, context);
    begun(nfs_rename_async(nfs, from, to, answer, request), request);
}
