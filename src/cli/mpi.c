// SPDX-License-Identifier: Apache-2.0
//
// Links over MPI, between rank 0 and each other rank. Messages are polled for, with sleeps
// in between, because MPI's own waiting keeps a core busy that compilers or kernels need.
// One lock serialises all calls of MPI.
//
// If forewarp was built without MPI (make MPI=), opening fails with a message.
#include "cli/cli.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct Mpi {
    Options *options;
    int rank, size, local, nlocal;
    struct End *end; // one a peer; of another rank than 0: one, to rank 0
    RunnerPeer *peer;
    int npeer;
    atomic_bool lost; // set by the threads of the peers
    pthread_mutex_t lock;
};

typedef struct End {
    Mpi *mpi;
    int rank;
    bool told; // something was sent there
    Link link;
} End;

int mpi_rank(const Mpi *mpi)
{
    return mpi ? mpi->rank : 0;
}

int mpi_local(const Mpi *mpi, int *n)
{
    *n = mpi->nlocal;
    return mpi->local;
}

const RunnerPeer *mpi_peers(const Mpi *mpi, int *n)
{
    *n = mpi->npeer;
    return mpi->peer;
}

const Link *mpi_leader(const Mpi *mpi)
{
    return &mpi->end[0].link;
}

#ifdef FW_MPI

#include <mpi.h>
#include <time.h>

enum { TAG = 1, CHUNK = 1 << 30 };
static const double NAP_S = 0.002;

// Each text is one message.
static bool mpi_send(void *user, const char *text, size_t len)
{
    End *end = user;
    if (len > CHUNK)
        return false;
    end->told = true;
    pthread_mutex_lock(&end->mpi->lock);
    MPI_Request request;
    int done = 0;
    int error =
        MPI_Isend(text, (int)len, MPI_CHAR, end->rank, TAG, MPI_COMM_WORLD, &request);
    pthread_mutex_unlock(&end->mpi->lock);
    double start = clock_s();
    while (error == MPI_SUCCESS && !done && clock_s() - start < 60) {
        pthread_mutex_lock(&end->mpi->lock);
        error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&end->mpi->lock);
        if (!done)
            nanosleep(&(struct timespec){0, (long)(NAP_S * 1e9)}, NULL);
    }
    if (!done)
        end->mpi->lost = true;
    return error == MPI_SUCCESS && done;
}

// One try; true with *came if there was a message.
static bool take(End *end, Buf *text, bool *came)
{
    MPI_Status status;
    int there = 0, n = 0;
    pthread_mutex_lock(&end->mpi->lock);
    bool ok = MPI_Iprobe(end->rank, TAG, MPI_COMM_WORLD, &there, &status) == MPI_SUCCESS;
    if (ok && there) {
        MPI_Get_count(&status, MPI_CHAR, &n);
        AUTO_FREE char *bytes = xmalloc((size_t)n + 1);
        ok = MPI_Recv(bytes, n, MPI_CHAR, end->rank, TAG, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE) == MPI_SUCCESS;
        buf_write(text, bytes, (size_t)n);
    }
    pthread_mutex_unlock(&end->mpi->lock);
    *came = there;
    return ok;
}

static bool mpi_receive(void *user, Buf *text, double limit_s)
{
    End *end = user;
    double start = clock_s();
    bool came = false, ok = take(end, text, &came);
    while (ok && !came && clock_s() - start < limit_s) {
        nanosleep(&(struct timespec){0, (long)(NAP_S * 1e9)}, NULL);
        ok = take(end, text, &came);
    }
    if (!ok || (!came && limit_s > 0))
        end->mpi->lost = true;
    return ok && came;
}

static void find_place(Mpi *mpi)
{
    MPI_Comm here;
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi->size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &mpi->local);
    MPI_Comm_size(here, &mpi->nlocal);
    MPI_Comm_free(&here);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

Mpi *mpi_open(Options *o)
{
    int provided = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS ||
        provided < MPI_THREAD_SERIALIZED) {
        diag_world(&o->diags, "C062", "MPI does not start, or allows no threads");
        return NULL;
    }
    Mpi *mpi = xcalloc(1, sizeof *mpi);
    mpi->options = o;
    pthread_mutex_init(&mpi->lock, NULL);
    find_place(mpi);
    mpi->npeer = mpi->rank == 0 ? mpi->size - 1 : 0;
    mpi->end = xcalloc((size_t)mpi->size, sizeof *mpi->end);
    mpi->peer = xcalloc((size_t)mpi->size, sizeof *mpi->peer);
    for (int i = 0; i < MAX(mpi->npeer, 1); i++) {
        End *end = &mpi->end[i];
        *end = (End){.mpi = mpi, .rank = mpi->rank == 0 ? i + 1 : 0};
        end->link = (Link){mpi_send, mpi_receive, end};
        mpi->peer[i] = (RunnerPeer){.kind = &peer_remote,
                                    .device = arena_printf(o->arena, "rank %d", end->rank),
                                    .link = &end->link};
    }
    return mpi;
}

// All is said before the end: mpirun ends every rank when the first one leaves with a
// status that is not 0.
static int say_all(Options *o, int status)
{
    int worst = diags_exit_status(&o->diags);
    AutoBuf text = buf_new();
    diags_print(&text, &o->diags);
    cli_paint(text.text);
    fflush(NULL);
    o->diags.list.len = 0;
    return worst ? worst : status;
}

int mpi_close(Mpi *mpi, int status)
{
    if (!mpi)
        return status;
    status = say_all(mpi->options, status);
    if (mpi->lost) // to finalize would wait for it for ever
        MPI_Abort(MPI_COMM_WORLD, status);
    // They wait for a search that failed before it called on them.
    for (int i = 0; i < mpi->npeer; i++)
        if (!mpi->end[i].told)
            remote_dismiss(&mpi->end[i].link);
    MPI_Finalize();
    pthread_mutex_destroy(&mpi->lock);
    free(mpi->end);
    free(mpi->peer);
    free(mpi);
    return status;
}

#else

Mpi *mpi_open(Options *o)
{
    return diag_null(
        &o->diags, span_none, "C062",
        "this forewarp was built without MPI: install libopenmpi-dev, and build again");
}

int mpi_close(Mpi *mpi, int status)
{
    return status;
}

#endif
