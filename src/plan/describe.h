// SPDX-License-Identifier: Apache-2.0
//
// describe: devices present as models for features, and models as devices to derive for.

#ifndef FW_PLAN_DESCRIBE_H
#define FW_PLAN_DESCRIBE_H

#include "cost/device_model.h"
#include "device/device.h"

void describe_device(const DeviceInfo *info, DeviceModel *model);
void describe_model(const DeviceModel *model, DeviceInfo *info);
// The same device, for which text is printed in another language.
void describe_target(const char *target, DeviceInfo *info);

#endif
