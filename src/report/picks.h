// SPDX-License-Identifier: Apache-2.0
//
// Which model picks best, as one table.

#ifndef FW_REPORT_PICKS_H
#define FW_REPORT_PICKS_H

#include "evaluate/picks.h"

void report_picks(Buf *out, const Study *study, const Picks *picks);

#endif
