/* Makes the disk of one process fail while a flag file exists. Loaded with LD_PRELOAD by tests/disk.rs.
 *   SHIM_SYNC_FAILS=PATH   fsync and fdatasync answer EIO
 *   SHIM_DISK_FULL=PATH    writes to the database and its log answer ENOSPC
 * Only files whose name contains SHIM_FILE are touched, so that logs and sockets go on working. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int flagged(const char *variable, int fd) {
    const char *flag = getenv(variable);
    const char *file = getenv("SHIM_FILE");
    char link[64], path[4096];
    ssize_t length;
    int saved = errno, found = 0;
    if (flag && file && access(flag, F_OK) == 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        length = readlink(link, path, sizeof path - 1);
        if (length > 0) {
            path[length] = 0;
            found = strstr(path, file) != NULL;
        }
    }
    errno = saved;
    return found;
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))
#define FAIL_IF(variable, fd, code) \
    if (flagged(variable, fd)) {    \
        errno = code;               \
        return -1;                  \
    }

int fsync(int fd) {
    FAIL_IF("SHIM_SYNC_FAILS", fd, EIO)
    return REAL("fsync", int (*)(int))(fd);
}

int fdatasync(int fd) {
    FAIL_IF("SHIM_SYNC_FAILS", fd, EIO)
    return REAL("fdatasync", int (*)(int))(fd);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    FAIL_IF("SHIM_DISK_FULL", fd, ENOSPC)
    return REAL("write", ssize_t(*)(int, const void *, size_t))(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    FAIL_IF("SHIM_DISK_FULL", fd, ENOSPC)
    return REAL("writev", ssize_t(*)(int, const struct iovec *, int))(fd, parts, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    FAIL_IF("SHIM_DISK_FULL", fd, ENOSPC)
    return REAL("pwrite", ssize_t(*)(int, const void *, size_t, off_t))(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    FAIL_IF("SHIM_DISK_FULL", fd, ENOSPC)
    return REAL("pwrite64", ssize_t(*)(int, const void *, size_t, off64_t))(fd, bytes, count, at);
}
