/* SPDX-License-Identifier: BSD-3-Clause */
// The inside of the command line's parser: what its files share.
#pragma once

#include "args.h"

#include <errno.h>

#define USAGE(err, ...) err_set(err, EXIT_USAGE, -EINVAL, "command line: " __VA_ARGS__)

// What is kept of the command line until all of it is known.
struct parse {
	struct args *a;
	uint64_t given;      // a bit for each row of the table of options
	const char *payload; // -s
	const char *size;    // --size
	const char *sizes;   // --sizes
};

/** Was it on the command line? @param name  of a row of the table */
bool args_given(const struct parse *p, const char *name);

/** Fill err: what the option wants. @return -EINVAL */
int args_bad(const char *name, const char *value, struct err *err);

/** Defaults, and whether all that was given fits together. @return 0 or -EINVAL with err filled */
int args_check(struct parse *p, struct err *err);

// Values that are more than a number; all @return 0 or -EINVAL.

/** -s, bytes of UDP payload. */
int args_payload(const char *text, uint8_t family, struct size_mix *out);

/** "clear", or as "aes-gcm-16", "aes-cbc+hmac-sha1-96" and words: v4 or v6, natt, transport. */
int args_encap(const char *text, struct encap *out);

/** --case; its command points into text. */
int args_case(const char *text, struct bench_case *out);
