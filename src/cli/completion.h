// SPDX-License-Identifier: Apache-2.0
//
// Completion for shells, from the tables of commands and options.

#ifndef FW_CLI_COMPLETION_H
#define FW_CLI_COMPLETION_H

#include "cli/cli.h"

// Prints the script of a shell to standard output; false if there is none for it.
bool completion_print(const char *shell);
// cmd_help.c: the topics of help, without the commands; the names that one explains.
void help_put_topics(Buf *out);
void help_put_names(Buf *out, const char *topic);

#endif
