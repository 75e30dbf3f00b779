// SPDX-License-Identifier: Apache-2.0
//
// peers: other devices that take jobs of a runner as it does itself, each from a thread of
// its own: another device of this machine (peer_local), or a runner in another process, on
// this machine or another, at the end of a link that carries texts (peer_remote,
// remote_serve).

#ifndef FW_MEASURE_PEERS_H
#define FW_MEASURE_PEERS_H

#include "measure/measure.h"

// One row a transport. A peer's functions are called by one thread only, in this order.
struct PeerKind {
    const char *name;
    // Ready to run jobs on the buffers of config; NULL with diagnostics.
    void *(*open)(const RunnerPeer *peer, const RunnerConfig *config, Diags *diags);
    const DeviceInfo *(*info)(const void *opened);
    // As runner_stream. False with diagnostics: the peer is lost, and what it has not done
    // goes to others.
    bool (*run)(void *opened, RunnerNext *next, double cutoff_ns, RunnerDone *done,
                void *user, Diags *diags);
    void (*close)(void *opened);
};

// A device of this machine: RunnerPeer.device.
extern const PeerKind peer_local;
// A process that serves at the other end of RunnerPeer.link.
extern const PeerKind peer_remote;

// Texts there and back. One thread at a time at each end, but that send and receive may be
// called by two at once where a process serves.
struct Link {
    bool (*send)(void *end, const char *text, size_t len); // false: the other end is gone
    // Waits so many seconds at most, 0: only looks; appends to text. False: nothing came.
    bool (*receive)(void *end, Buf *text, double limit_s);
    void *end;
};

// Serves jobs on a runner until the other end says that it is enough. False with
// diagnostics: the runner is broken, or the other end is gone. runner NULL: there is none;
// tells the other end what was said last, and is false too. stop: the runner's, set to what
// the other end has left.
bool remote_serve(Runner *runner, Stop *stop, const Link *link, Diags *diags);
// Tells one that serves, or will, that it is enough, where no runner was opened with it.
void remote_dismiss(const Link *link);

// Inside: peers.c ------------------------------------------------------------------------

typedef struct Peers Peers;

// Opens peers in threads of their own. One that does not open, or is another kind of
// device, is left out with a warning.
Peers *peers_open(const RunnerConfig *config, const DeviceInfo *device, Diags *diags);
void peers_close(Peers *peers); // accepts NULL
int peers_count(Peers *peers);  // those that are not lost
// Runs jobs on the peers, and on the caller's own device by `own`, in this thread.
typedef bool OwnRun(void *runner, RunnerNext *next, double cutoff_ns, RunnerDone *done,
                    void *user, Diags *diags);
bool peers_run(Peers *peers, OwnRun *own, void *runner, RunnerNext *next, double cutoff_ns,
               RunnerDone *done, void *user, Diags *diags);

#endif
