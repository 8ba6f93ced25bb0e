/* SPDX-License-Identifier: BSD-3-Clause */
// A number from outside: typed in, in a file, or printed by a command.
#pragma once

#include "err.h"

/**
 * @param source  "7.4", "/sys/…/power", "!snmpget …"; read once to see whether it works
 * @param option  for messages
 * @return 0 or -EINVAL with err filled
 */
int meter_check(const char *source, const char *option, struct err *err);

/** @return the number now, NaN when there is none */
double meter_read(const char *source);
