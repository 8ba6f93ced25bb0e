/* SPDX-License-Identifier: BSD-3-Clause */
// Lines to the operator on standard error. The level names who must act.
// Only the control thread and the start-up code log; a worker never does.
#pragma once

enum log_level {
	LOG_ERROR,   // the operator must act, sgw cannot go on with this
	LOG_WARNING, // the operator should look
	LOG_NOTICE,  // what an operator wants to see in normal running
	LOG_DEBUG,   // a developer is looking
};

// Lines above this level are left out. Default: LOG_NOTICE.
extern enum log_level log_threshold;

/**
 * Write one line "sgw: error: …" to standard error.
 *
 * @param level  who must act
 * @param fmt    the text without newline, never a key byte
 */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_NOTICE, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
