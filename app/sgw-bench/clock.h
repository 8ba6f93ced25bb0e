/* SPDX-License-Identifier: BSD-3-Clause */
// How fast the TSC counts, by the kernel's clock. Where the CPU does not tell, DPDK rounds what it
// has measured to 10 MHz (estimate_tsc_freq() in eal_common_timer.c): 2596 MHz became 2600, and all
// rates and latencies were 0.15 % wrong.
#pragma once

/** Begin; the longer until clock_end(), the better. */
void clock_begin(void);
/** Waits until 200 ms have passed: good to some millionths. */
void clock_end(void);
/** TSC ticks a second. */
double clock_hz(void);
