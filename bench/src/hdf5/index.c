/* A bare loop of H5Dwrite_chunk in a dataset of one chunk a frame, over a virtual file driver that drops the chunks and keeps
 * all else in memory: the least that libhdf5 takes for the index of a file whose frames are written by somebody else.
 *
 * index COUNT TURN HEIGHT WIDTH  COUNT frames of so many pixels of 16 bits; the dataset gets longer and the file is flushed
 *                                each TURN frames. Prints the seconds and the processor seconds of the loop.
 */
#include <hdf5.h>
#include <H5FDdevelop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Chunks get addresses from here on, all else those before. */
static const haddr_t CHUNKS = (haddr_t)1 << 40;

typedef struct {
    H5FD_t base;
    unsigned char *bytes;
    size_t room;
    haddr_t end;
    haddr_t chunks;
} memory_file;

static void check(int well, const char *what)
{
    if (!well) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

static void make_room(memory_file *file, haddr_t end)
{
    if (end <= file->room)
        return;
    size_t room = 2 * (size_t)end + (1 << 20);
    file->bytes = realloc(file->bytes, room);
    check(file->bytes != NULL, "realloc");
    memset(file->bytes + file->room, 0, room - file->room);
    file->room = room;
}

static H5FD_t *file_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
    (void)name, (void)flags, (void)fapl, (void)maxaddr;
    memory_file *file = calloc(1, sizeof *file);
    file->chunks = CHUNKS;
    return &file->base;
}

static herr_t file_close(H5FD_t *base)
{
    free(((memory_file *)base)->bytes);
    free(base);
    return 0;
}

static herr_t file_query(const H5FD_t *base, unsigned long *flags)
{
    (void)base;
    if (flags)
        *flags = 0;
    return 0;
}

static haddr_t file_alloc(H5FD_t *base, H5FD_mem_t kind, hid_t dxpl, hsize_t size)
{
    (void)dxpl;
    memory_file *file = (memory_file *)base;
    haddr_t *end = kind == H5FD_MEM_DRAW ? &file->chunks : &file->end;
    haddr_t at = *end;
    *end += size;
    return at;
}

static herr_t file_free(H5FD_t *base, H5FD_mem_t kind, hid_t dxpl, haddr_t at, hsize_t size)
{
    (void)base, (void)kind, (void)dxpl, (void)at, (void)size;
    return 0;
}

static haddr_t file_eoa(const H5FD_t *base, H5FD_mem_t kind)
{
    const memory_file *file = (const memory_file *)base;
    return kind == H5FD_MEM_DRAW ? file->chunks : file->end;
}

static herr_t file_set_eoa(H5FD_t *base, H5FD_mem_t kind, haddr_t end)
{
    memory_file *file = (memory_file *)base;
    if (kind != H5FD_MEM_DRAW && end > file->end)
        file->end = end;
    return 0;
}

static herr_t file_read(H5FD_t *base, H5FD_mem_t kind, hid_t dxpl, haddr_t at, size_t size, void *into)
{
    (void)kind, (void)dxpl;
    memory_file *file = (memory_file *)base;
    make_room(file, at + size);
    memcpy(into, file->bytes + at, size);
    return 0;
}

static herr_t file_write(H5FD_t *base, H5FD_mem_t kind, hid_t dxpl, haddr_t at, size_t size, const void *from)
{
    (void)dxpl;
    if (kind == H5FD_MEM_DRAW)
        return 0;
    memory_file *file = (memory_file *)base;
    make_room(file, at + size);
    memcpy(file->bytes + at, from, size);
    return 0;
}

static const H5FD_class_t DRIVER = {
    .version = H5FD_CLASS_VERSION,
    .value = 301,
    .name = "drop",
    .maxaddr = ((haddr_t)1 << 62) - 1,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = file_open,
    .close = file_close,
    .query = file_query,
    .alloc = file_alloc,
    .free = file_free,
    .get_eoa = file_eoa,
    .set_eoa = file_set_eoa,
    .get_eof = file_eoa,
    .read = file_read,
    .write = file_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

static double seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static hid_t dataset(hid_t file, const hsize_t *chunk)
{
    hsize_t none[3] = {0, chunk[1], chunk[2]}, most[3] = {H5S_UNLIMITED, chunk[1], chunk[2]};
    hid_t space = H5Screate_simple(3, none, most);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), access = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk(creation, 3, chunk);
    H5Pset_chunk_cache(access, 1, 0, 0.0);
    return H5Dcreate2(file, "data", H5T_STD_U16LE, space, H5P_DEFAULT, creation, access);
}

int main(int count, char **words)
{
    check(count == 5, "index COUNT TURN HEIGHT WIDTH");
    hsize_t frames = strtoull(words[1], NULL, 10), turn = strtoull(words[2], NULL, 10);
    hsize_t chunk[3] = {1, strtoull(words[3], NULL, 10), strtoull(words[4], NULL, 10)};
    size_t size = (size_t)(chunk[1] * chunk[2] * 2);
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_NONE, 0, 1);
    H5Pset_driver(access, H5FDregister(&DRIVER), NULL);
    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    hid_t file = H5Fcreate("drop", H5F_ACC_TRUNC, creation, access);
    check(file >= 0, "H5Fcreate");
    hid_t data = dataset(file, chunk);
    check(data >= 0, "H5Dcreate2");
    char dropped[8] = {0};
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (hsize_t frame = 0; frame < frames; frame++) {
        if (frame % turn == 0) {
            hsize_t length[3] = {frame + turn, chunk[1], chunk[2]};
            check(H5Dset_extent(data, length) >= 0, "H5Dset_extent");
        }
        hsize_t at[3] = {frame, 0, 0};
        check(H5Dwrite_chunk(data, H5P_DEFAULT, 0, at, size, dropped) >= 0, "H5Dwrite_chunk");
        if (frame % turn == turn - 1)
            check(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0, "H5Fflush");
    }
    printf("%.9f %.9f\n", seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    return 0;
}
