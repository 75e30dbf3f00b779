// SPDX-License-Identifier: Apache-2.0
//
// host: what the files that print host programs share.

#ifndef FW_API_HOST_TEXT_H
#define FW_API_HOST_TEXT_H

#include "api/recipe.h"

// What stands for $ and a letter in the texts.
typedef struct {
    const HostPart *part; // $p
    int n;
    const Recipe *recipe; // of the part at work; they differ in nothing that callers see
    const char *stem;     // $s
    char name[256];       // $n
    Buf upper;            // $N
    Buf handles;          // $h: "cl_mem a, cl_mem out"
    Buf bytes;            // $b: the sizes as macros
    Buf tables;           // $t
    Buf values;           // $v: "a, out"
    Buf places;           // $a: "&a, &out"
    Buf sizes;            // $z: "long long N, "; of generic sizes
    Buf named;            // $y: ", N"
    Buf params;           // $q: ", long long N"
    Buf resize;           // $r: what sets all that depends on them
} Host;

// host_text.c: a text of host/*.txt, each $ and its letter replaced.
void host_lines(Buf *out, const Host *host, const char *const *line);

// host_tables.c: the tables of all parts into host->tables, and the table of devices that
// refers to them behind host->resize.
void host_put_tables(Host *host);
void host_put_devices(Host *host);
bool host_is_buffer(const Argument *argument); // no value and no image
// The first argument of a launch among all.
int host_first_arg(const Job *job, int launch);

#endif
