/* SPDX-License-Identifier: BSD-3-Clause */
#include "reserve.h"

#include "log.h"
#include "sa.h"
#include "state.h"

#include <rte_common.h>

#include <time.h>

// At least this many numbers ahead, else four seconds' worth at the SA's rate. A
// crash wastes what is reserved: without ESN, 4096 crashes use a key up.
#define AHEAD_MIN (1u << 20)
#define AHEAD_TICKS (4 * 1000 / RESERVE_MS)
#define COMPLAIN_S 10 // between two lines about a file that can not be written

static struct state *file;
static struct sa **list;
static uint32_t n_list;

// Reserve more where less than half is left. @return true when the file must be written
static bool
extend(struct sa *sa, uint64_t ticks)
{
	uint64_t used = atomic_load(&sa->sequence), rate = (used - sa->seen_sequence) / ticks;
	uint64_t ahead = RTE_MAX((uint64_t)AHEAD_MIN, rate * AHEAD_TICKS);

	sa->seen_sequence = used;
	// A failed write left the record ahead of the limit: try again.
	if (sa->record->reserved != atomic_load(&sa->limit))
		return true;
	if (sa->record->reserved >= sa->end || sa->record->reserved - used >= ahead / 2)
		return false;
	sa->record->reserved = ahead > sa->end - used ? sa->end : used + ahead;
	return true;
}

static void
publish(void)
{
	for (uint32_t i = 0; i < n_list; i++)
		if (list[i]->record != NULL)
			atomic_store(&list[i]->limit, list[i]->record->reserved);
}

int
reserve_start(struct state *state, struct sa **sas, uint32_t n_sas, struct err *err)
{
	int rc;

	file = state;
	list = sas;
	n_list = n_sas;
	if (state == NULL)
		return 0;
	for (uint32_t i = 0; i < n_sas; i++) {
		if (sas[i]->record == NULL)
			continue;
		sas[i]->record->reserved = sas[i]->sequence;
		sas[i]->limit = sas[i]->sequence;
		sas[i]->seen_sequence = sas[i]->sequence;
		extend(sas[i], 1);
	}
	rc = state_write(state, err);
	if (rc == 0)
		publish();
	return rc;
}

// RFC 4301 leaves it to us to tell before it is too late to rekey.
static void
warn_near_end(struct sa *sa)
{
	static const unsigned int marks[] = {75, 90, 100};
	uint64_t used = atomic_load(&sa->sequence);
	uint64_t percent = used >= sa->end ? 100 : RTE_MIN(used / (sa->end / 100), 99u);

	while (sa->warned < RTE_DIM(marks) && percent >= marks[sa->warned]) {
		log_warning("sa %s: %u %% of its sequence numbers are used%s; give it a new key", sa->name,
			    marks[sa->warned], marks[sa->warned] == 100 ? " up, it drops everything" : "");
		sa->warned++;
	}
}

void
reserve_tick(uint64_t ticks)
{
	static time_t complained;
	struct timespec now;
	struct err err;
	bool write = false;

	for (uint32_t i = 0; i < n_list; i++) {
		if (list[i]->inbound)
			continue;
		warn_near_end(list[i]);
		if (list[i]->record != NULL)
			write |= extend(list[i], ticks);
	}
	if (!write)
		return;
	if (state_write(file, &err) == 0) {
		publish();
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (complained == 0 || now.tv_sec - complained >= COMPLAIN_S) {
		log_error("%s; outbound SAs stop when the numbers reserved so far are used", err.text);
		complained = now.tv_sec;
	}
}

void
reserve_stop(void)
{
	struct err err;

	if (file == NULL)
		return;
	for (uint32_t i = 0; i < n_list; i++)
		if (list[i]->record != NULL)
			list[i]->record->reserved = atomic_load(&list[i]->sequence);
	if (state_write(file, &err) != 0)
		log_error("%s; the next start goes on above the last reservation", err.text);
}
