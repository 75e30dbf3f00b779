// SPDX-License-Identifier: Apache-2.0
//
// describe: devices present as models for features, and models as devices to derive for.

#ifndef FW_CALIBRATE_DESCRIBE_H
#define FW_CALIBRATE_DESCRIBE_H

#include "cost/device_model.h"
#include "device/device.h"

#include <jansson.h>

void describe_device(const DeviceInfo *info, DeviceModel *model);
void describe_model(const DeviceModel *model, DeviceInfo *info);
// The same device, for which text is printed in another language.
void describe_target(const char *target, DeviceInfo *info);
// All that the space of a program and features ask of a device, and back; numbers that are
// absent or out of range become the least ones, so that any object gives a device.
json_t *device_json(const DeviceInfo *info);
void device_of_json(const json_t *json, DeviceInfo *info);

#endif
