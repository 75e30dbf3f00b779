// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer entry (make fuzz): the reader that FW_READER names.
#include "readers.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *name = getenv("FW_READER");
    for (int i = 0; i < READERS; i++)
        if (name && strcmp(reader_row[i].name, name) == 0) {
            reader_row[i].read(data, size);
            return 0;
        }
    BUG("FW_READER names no reader: %s", name ? name : "");
}
