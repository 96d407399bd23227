// Frames by all processes into one dataset by parallel HDF5: collective writes of compressed chunks, a frame of each process at a
// time. Arguments: the file, how many frames, rows, columns, a file of some frames that are written again and again, and the
// plug-in of bitshuffle. Says how many seconds it took until the file is closed.
#include <dlfcn.h>
#include <fcntl.h>
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// Bitshuffle with LZ4, as it is registered with The HDF Group.
#define BITSHUFFLE 32008
#define LZ4 2

static void must(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "parallel HDF5: %s failed\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

// All of a file; how many bytes it has goes into `bytes`.
static char *whole(const char *path, off_t *bytes) {
    struct stat found;
    int file = open(path, O_RDONLY);
    must(file >= 0 && fstat(file, &found) == 0, path);
    char *memory = malloc(found.st_size);
    must(memory != NULL, "memory");
    for (off_t at = 0; at < found.st_size;) {
        ssize_t came = pread(file, memory + at, found.st_size - at, at);
        must(came > 0, path);
        at += came;
    }
    close(file);
    *bytes = found.st_size;
    return memory;
}

// The filter of a plug-in without what would ask the HDF5 that it was made with how long elements are: that is said here.
static void take_filter(const char *plugin) {
    void *library = dlopen(plugin, RTLD_NOW);
    must(library != NULL, "the plug-in");
    const void *(*find)(void);
    *(void **)&find = dlsym(library, "H5PLget_plugin_info");
    must(find != NULL, "H5PLget_plugin_info");
    H5Z_class2_t filter = *(const H5Z_class2_t *)find();
    filter.can_apply = NULL;
    filter.set_local = NULL;
    must(H5Zregister(&filter) >= 0, "the filter");
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    must(count == 7, "six arguments");
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    hsize_t frames = strtoull(words[2], NULL, 10);
    hsize_t sides[3] = {frames, strtoull(words[3], NULL, 10), strtoull(words[4], NULL, 10)};
    hsize_t chunk[3] = {1, sides[1], sides[2]};
    off_t bytes;
    char *data = whole(words[5], &bytes);
    size_t frame = sides[1] * sides[2] * sizeof(unsigned);
    size_t distinct = bytes / frame;
    must(distinct > 0 && frames % size == 0, "a frame at least, and as many for each process");

    take_filter(words[6]);

    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    must(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "MPI-IO");
    must(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0, "the newest format");
    hid_t file = H5Fcreate(words[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    must(file >= 0, "H5Fcreate");
    hid_t space = H5Screate_simple(3, sides, NULL);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    // Version, bytes of an element, elements of a block as it is usual, and how these are compressed.
    unsigned how[5] = {0, 4, sizeof(unsigned), 0, LZ4};
    must(H5Pset_chunk(creation, 3, chunk) >= 0, "chunks");
    must(H5Pset_filter(creation, BITSHUFFLE, H5Z_FLAG_MANDATORY, 5, how) >= 0, "the filter");
    must(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER) >= 0, "no filling");
    hid_t dataset = H5Dcreate2(file, "data", H5T_NATIVE_UINT32, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    must(dataset >= 0, "H5Dcreate2");
    hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
    must(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE) >= 0, "collective writes");
    hid_t memory = H5Screate_simple(3, chunk, NULL);
    for (hsize_t number = rank; number < frames; number += size) {
        hsize_t first[3] = {number, 0, 0};
        must(H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, chunk, NULL) >= 0, "a frame");
        char *pixels = data + number % distinct * frame;
        must(H5Dwrite(dataset, H5T_NATIVE_UINT32, memory, space, transfer, pixels) >= 0, "H5Dwrite");
    }
    must(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0, "closing");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.6f\n", MPI_Wtime() - begun);
    MPI_Finalize();
    return 0;
}
