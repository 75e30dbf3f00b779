// SPDX-License-Identifier: Apache-2.0
//
// Large arrays in memory that other processes can map: workers read inputs and what is
// expected of outputs there, and write outputs to it, without a copy in a file.
#include "base/base.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct SharedBlock {
    SharedBlock *below, *next; // of its arena; of all
    void *at;
    size_t bytes;
    int fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static SharedBlock *all;

static void *map_fd(int fd, size_t bytes)
{
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return MAP_FAILED;
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

SharedBlock *shared_new(size_t bytes, SharedBlock *below)
{
    int fd = memfd_create("forewarp", MFD_CLOEXEC);
    void *at = map_fd(fd, bytes);
    if (at == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    SharedBlock *made = xmalloc(sizeof *made);
    pthread_mutex_lock(&lock);
    *made = (SharedBlock){.below = below, .next = all, .at = at, .bytes = bytes, .fd = fd};
    all = made;
    pthread_mutex_unlock(&lock);
    return made;
}

void *shared_at(const SharedBlock *shared)
{
    return shared->at;
}

SharedBlock *shared_free(SharedBlock *shared)
{
    SharedBlock *below = shared->below, **p = &all;
    pthread_mutex_lock(&lock);
    while (*p != shared)
        p = &(*p)->next;
    *p = shared->next;
    pthread_mutex_unlock(&lock);
    munmap(shared->at, shared->bytes);
    close(shared->fd);
    free(shared);
    return below;
}

// Only where /proc is there, and lets this user in.
char *shared_path(const void *at, Arena *arena)
{
    pthread_mutex_lock(&lock);
    const SharedBlock *found = all;
    while (found && found->at != at)
        found = found->next;
    const int shared = found ? found->fd : -1;
    pthread_mutex_unlock(&lock);
    if (shared < 0)
        return NULL;
    char *path = arena_printf(arena, "/proc/%d/fd/%d", (int)getpid(), shared);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    close(fd);
    return path;
}
