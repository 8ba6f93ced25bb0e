/* SPDX-License-Identifier: BSD-3-Clause */
// The state file: what is on disk, what is refused, and what is left when sgw
// is killed or the disk fails in the middle of a write.
#include "state.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define PRINT_A "0123456789abcdef"
#define PRINT_B "fedcba9876543210"

// libc's functions, watched and made to fail. The program's own come first.

static char trace[64];   // of the calls: F fsync of a file, D of a directory, R rename
static int fsync_file;   // errno to fail with
static int fsync_dir;    //
static int rename_error; //
static bool rename_kills;
static int random_error;
static int random_interrupts;

int
fsync(int fd)
{
	struct stat st;
	bool dir = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
	int code = dir ? fsync_dir : fsync_file;

	strncat(trace, dir ? "D" : "F", sizeof(trace) - strlen(trace) - 1);
	if (code != 0) {
		errno = code;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

int
renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	strncat(trace, "R", sizeof(trace) - strlen(trace) - 1);
	if (rename_kills)
		kill(getpid(), SIGKILL);
	if (rename_error != 0) {
		errno = rename_error;
		return -1;
	}
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

ssize_t
getrandom(void *b, size_t len, unsigned int flags)
{
	if (random_interrupts > 0) {
		random_interrupts--;
		errno = EINTR;
		return -1;
	}
	if (random_error != 0) {
		errno = random_error;
		return -1;
	}
	return syscall(SYS_getrandom, b, len, flags);
}

// A directory a test, and short ways to do what every test does.

static char base[64];       // the test's directory
static char dir[128];       // "sgw" in it, made by state_open()
static char path[256];      // of the state file
static char temp_path[300]; //
static int open_fds;        // before the test
static const struct addr v4 = {4, {192, 0, 2, 1}};
static const struct addr v6 = {6, {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};

static int
count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int
setup(void **unused)
{
	trace[0] = '\0';
	fsync_file = fsync_dir = rename_error = random_error = random_interrupts = 0;
	rename_kills = false;
	open_fds = count_fds();
	snprintf(base, sizeof(base), "/tmp/sgw-state-XXXXXX");
	if (mkdtemp(base) == NULL)
		return -1;
	snprintf(dir, sizeof(dir), "%s/sgw", base);
	snprintf(path, sizeof(path), "%s/state", dir);
	snprintf(temp_path, sizeof(temp_path), "%s.tmp", path);
	return 0;
}

static int
teardown(void **unused)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", base);
	if (system(command) != 0)
		return -1;
	if (count_fds() != open_fds) {
		print_error("%d descriptors left open\n", count_fds() - open_fds);
		return -1;
	}
	return 0;
}

static struct state *
open_ok(void)
{
	struct err err = {0};
	struct state *s = NULL;

	if (state_open(path, &s, &err) != 0)
		fail_msg("%s", err.text);
	assert_non_null(s);
	return s;
}

// Place, cause and remedy are in the text: path, cause, and what to do.
static void
open_refused(const char *at, int code, int kind, const char *cause, const char *remedy)
{
	struct state *s = (struct state *)&s;
	struct err err = {0};
	int rc = state_open(at, &s, &err);

	if (rc != code || err.kind != kind || s != NULL || strstr(err.text, at) == NULL ||
	    strstr(err.text, cause) == NULL || strstr(err.text, remedy) == NULL)
		fail_msg("%s: %d, kind %d: %s", at, rc, err.kind, err.text);
}

static struct state_sa *
get_ok(struct state *s, uint32_t spi, const struct addr *dst, const char *fingerprint)
{
	struct err err = {0};
	struct state_sa *sa = state_get(s, spi, dst, fingerprint, &err);

	if (sa == NULL)
		fail_msg("%s", err.text);
	assert_int_equal(sa->spi, spi);
	assert_int_equal(addr_cmp(&sa->dst, dst), 0);
	assert_string_equal(sa->fingerprint, fingerprint);
	return sa;
}

static void
write_ok(struct state *s)
{
	struct err err = {0};

	if (state_write(s, &err) != 0)
		fail_msg("%s", err.text);
}

static size_t
slurp(const char *from, char *b, size_t room)
{
	FILE *f = fopen(from, "r");
	size_t n;

	assert_non_null(f);
	n = fread(b, 1, room - 1, f);
	b[n] = '\0';
	fclose(f);
	return n;
}

static void
spill(const char *to, const char *b, size_t len)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, b, len), len);
	close(fd);
}

static void
write_two(void)
{
	struct state *s = open_ok();

	get_ok(s, 0x1001, &v4, PRINT_A)->reserved = 65536;
	get_ok(s, 0xfffffffe, &v6, PRINT_B)->reserved = UINT64_C(0x123456789);
	write_ok(s);
	state_close(s);
}

static void
test_create(void **unused)
{
	struct state *s = open_ok();
	struct state_sa *sa;
	struct stat st;
	char b[256];

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	slurp(path, b, sizeof(b));
	assert_string_equal(b, "sgw-state 1\nend 0 0xd1faba03\n");
	sa = get_ok(s, 256, &v4, PRINT_A);
	assert_true(sa->reserved == 0);
	state_close(s);
	// Nothing was written, so the record is new again.
	s = open_ok();
	assert_true(get_ok(s, 256, &v4, PRINT_A)->reserved == 0);
	state_close(s);
}

static void
test_reopen(void **unused)
{
	struct state *s = open_ok();
	struct state_sa *a = get_ok(s, 0x1001, &v4, PRINT_A);
	struct state_sa *b = get_ok(s, 0x1001, &v6, PRINT_A);
	struct state_sa *c = get_ok(s, 0x1000, &v6, PRINT_B);
	uint64_t xors[3] = {a->iv_xor, b->iv_xor, c->iv_xor};

	assert_true(xors[0] != xors[1] && xors[1] != xors[2] && xors[0] != xors[2]);
	assert_ptr_equal(get_ok(s, 0x1001, &v4, PRINT_A), a);
	a->reserved = 1000;
	b->reserved = UINT64_MAX;
	c->reserved = 1;
	write_ok(s);
	a->reserved = 2000; // not on disk
	state_close(s);
	s = open_ok();
	a = get_ok(s, 0x1001, &v4, PRINT_A);
	assert_true(a->reserved == 1000 && a->iv_xor == xors[0]);
	a->reserved = 3000;
	write_ok(s); // keeps those that nobody asked for
	state_close(s);
	s = open_ok();
	a = get_ok(s, 0x1001, &v4, PRINT_A);
	b = get_ok(s, 0x1001, &v6, PRINT_A);
	c = get_ok(s, 0x1000, &v6, PRINT_B);
	assert_true(a->reserved == 3000 && a->iv_xor == xors[0]);
	assert_true(b->reserved == UINT64_MAX && b->iv_xor == xors[1]);
	assert_true(c->reserved == 1 && c->iv_xor == xors[2]);
	state_close(s);
}

// Pointers stay where they are while other records come, in any order.
static void
test_many(void **unused)
{
	enum { N = 3000 };
	static struct state_sa *sa[N], copy[N];
	struct state *s = open_ok();

	for (uint32_t i = 0; i < N; i++) {
		struct addr dst = i % 2 ? v4 : v6;

		dst.b[3] = (uint8_t)(i * 7);
		sa[i] = get_ok(s, 256 + i * 7919 % N, &dst, i % 3 ? PRINT_A : PRINT_B);
		sa[i]->reserved = i;
		copy[i] = *sa[i];
	}
	for (uint32_t i = 0; i < N; i++) {
		assert_memory_equal(sa[i], &copy[i], sizeof(copy[i]));
		assert_ptr_equal(get_ok(s, copy[i].spi, &copy[i].dst, copy[i].fingerprint), sa[i]);
	}
	write_ok(s);
	state_close(s);
	s = open_ok();
	for (uint32_t i = 0; i < N; i++) {
		sa[i] = get_ok(s, copy[i].spi, &copy[i].dst, copy[i].fingerprint);
		assert_true(sa[i]->reserved == i && sa[i]->iv_xor == copy[i].iv_xor);
	}
	state_close(s);
}

static void
test_longest(void **unused)
{
	struct state *s = open_ok();
	struct addr dst = {.family = 6};
	struct state_sa *sa;
	uint64_t iv_xor;

	memset(dst.b, 0xfe, sizeof(dst.b));
	sa = get_ok(s, UINT32_MAX, &dst, PRINT_A);
	iv_xor = sa->iv_xor;
	sa->reserved = UINT64_MAX;
	write_ok(s);
	state_close(s);
	s = open_ok();
	sa = get_ok(s, UINT32_MAX, &dst, PRINT_A);
	assert_true(sa->reserved == UINT64_MAX && sa->iv_xor == iv_xor);
	state_close(s);
}

static void
test_other_key(void **unused)
{
	struct state *s = open_ok();
	struct state_sa *old = get_ok(s, 0x1001, &v4, PRINT_A), *new;
	struct state_sa copy;
	char b[512];

	old->reserved = 5000;
	write_ok(s);
	copy = *old;
	new = get_ok(s, 0x1001, &v4, PRINT_B);
	assert_true(new->reserved == 0 && new->iv_xor != copy.iv_xor);
	// The old SA may still run on its pointer.
	assert_ptr_not_equal(new, old);
	assert_memory_equal(old, &copy, sizeof(copy));
	new->reserved = 7;
	write_ok(s);
	slurp(path, b, sizeof(b));
	assert_null(strstr(b, PRINT_A));
	assert_non_null(strstr(b, PRINT_B));
	// The change is undone before the end: the old SA's record is back.
	assert_ptr_equal(get_ok(s, 0x1001, &v4, PRINT_A), old);
	assert_memory_equal(old, &copy, sizeof(copy));
	assert_ptr_equal(get_ok(s, 0x1001, &v4, PRINT_B), new);
	assert_ptr_equal(get_ok(s, 0x1001, &v4, PRINT_A), old);
	assert_ptr_equal(get_ok(s, 0x1001, &v4, PRINT_A), old);
	assert_ptr_not_equal(get_ok(s, 0x1001, &v4, "0000000000000000"), old);
	assert_ptr_equal(get_ok(s, 0x1001, &v4, PRINT_B), new);
	write_ok(s);
	state_close(s);
	// Across a restart it is not: the file knows one key for an SA.
	s = open_ok();
	new = get_ok(s, 0x1001, &v4, PRINT_A);
	assert_true(new->reserved == 0 && new->iv_xor != copy.iv_xor);
	state_close(s);
}

static void
test_bad_get(void **unused)
{
	static const char *const prints[] = {
		"",                   // 1: empty
		"0123456789abcde",    // 2: short
		"0123456789abcdef0",  // 3: long
		"0123456789ABCDEF",   // 4: upper case
		"01234567 9abcdef",   // 5: would be two words in the file
		"01234567\n9abcdef",  // 6: would be two lines
	};
	const struct addr none = {0};
	struct state *s = open_ok();
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(prints); i++) {
		err = (struct err){0};
		if (state_get(s, 256, &v4, prints[i], &err) != NULL || err.kind != EXIT_BUG)
			fail_msg("case %zu", i + 1);
	}
	assert_null(state_get(s, 256, &none, PRINT_A, &err));
	random_error = ENOSYS;
	err = (struct err){0};
	assert_null(state_get(s, 256, &v4, PRINT_A, &err));
	assert_int_equal(err.kind, EXIT_RESOURCE);
	assert_non_null(strstr(err.text, "getrandom"));
	random_error = 0;
	random_interrupts = 3;
	assert_true(get_ok(s, 256, &v4, PRINT_A)->iv_xor != 0);
	assert_int_equal(random_interrupts, 0);
	// Both failures left nothing behind.
	write_ok(s);
	state_close(s);
	state_close(open_ok());
}

static void
refused_as_damaged(const char *b, size_t len)
{
	struct state *s;
	struct err err = {0};
	int rc;

	spill(path, b, len);
	rc = state_open(path, &s, &err);
	if (rc != -EBADMSG || err.kind != EXIT_MACHINE || s != NULL ||
	    strstr(err.text, ": line ") == NULL || strstr(err.text, "new keys") == NULL)
		fail_msg("%d, %s, for:\n%.*s", rc, err.text, (int)len, b);
}

// Bytes that mean something to a reader of lines, words and numbers.
static const char odd_bytes[] = {0, '\n', ' ', '\t', '\r', '0', '1', 'a', 'x', '-', (char)0xff};

// Every bit of the file, and every byte replaced.
static void
test_flip(void **unused)
{
	char good[512], b[512];
	size_t len;

	write_two();
	len = slurp(path, good, sizeof(good));
	assert_true(len > 100);
	for (size_t i = 0; i < len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			memcpy(b, good, len);
			b[i] = (char)(b[i] ^ 1 << bit);
			refused_as_damaged(b, len);
		}
		for (size_t k = 0; k < sizeof(odd_bytes); k++) {
			memcpy(b, good, len);
			b[i] = odd_bytes[k];
			if (b[i] != good[i])
				refused_as_damaged(b, len);
		}
	}
	spill(path, good, len);
	state_close(open_ok());
}

static void
test_truncate(void **unused)
{
	char good[512], b[512];
	size_t len;

	write_two();
	len = slurp(path, good, sizeof(good));
	for (size_t n = 0; n < len; n++)
		refused_as_damaged(good, n);
	for (size_t i = 0; i < len; i++) {
		// A byte less, a byte more.
		memcpy(b, good, i);
		memcpy(b + i, good + i + 1, len - i - 1);
		refused_as_damaged(b, len - 1);
		for (size_t k = 0; k < sizeof(odd_bytes); k++) {
			memcpy(b, good, i);
			b[i] = odd_bytes[k];
			memcpy(b + i + 1, good + i, len - i);
			refused_as_damaged(b, len + 1);
		}
	}
	for (int x = 0; x < 256; x++) {
		memcpy(b, good, len);
		b[len] = (char)x;
		refused_as_damaged(b, len + 1);
	}
	memcpy(b, good, len);
	memcpy(b + len, good, len);
	refused_as_damaged(b, 2 * len);
}

static uint32_t
crc32(const char *b, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < 8 * len; i++) {
		uint32_t bit = ((uint8_t)b[i / 8] >> i % 8) & 1;

		crc = (crc & 1) != bit ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

#define SA1 "sa 0x00001001 192.0.2.1 " PRINT_A " 65536 0x1122334455667788\n"
#define SA2 "sa 0x00001001 2001:db8::1 " PRINT_A " 0 0x0000000000000000\n"
#define SA3 "sa 0xfffffffe 192.0.2.1 " PRINT_B " 18446744073709551615 0xffffffffffffffff\n"
#define H "sgw-state 1\n"
#define BAD(record) {H record "\n", END, 1, "line 2"}
#define END "end %u 0x%08x\n" // number of records and checksum

// Files with a right checksum that were not written by sgw all the same.
static void
test_strict(void **unused)
{
	static const struct {
		const char *body;  // without the last line
		const char *end;   // format of the last line
		uint32_t n;        //
		const char *cause; // NULL: fine
	} cases[] = {
		{H, END, 0, NULL}, // 1
		{H SA1, END, 1, NULL}, // 2
		{H SA1 SA2 SA3, END, 3, NULL}, // 3
		{H SA1 SA2, END, 1, "line 4: number"}, // 4: count
		{H SA1, END, 2, "line 3: number"}, // 5
		{H SA1 SA1, END, 2, "line 3: record twice"}, // 6
		{H SA2 SA1, END, 2, "line 3: record twice"}, // 7: order
		{SA1, END, 1, "line 1: not \"sgw-state 1\""}, // 8: no header
		{"sgw-state 2\n", END, 0, "line 1"}, // 9: version
		{"sgw-state 1 \n", END, 0, "line 1"}, // 10
		{H "\n", END, 0, "line 2: not a record"}, // 11: empty line
		{H "# note\n", END, 0, "line 2"}, // 12: comment
		{H SA1, "end %u 0X%08x\n", 1, "line 3"}, // 13: upper case
		{H SA1, "end %u %08x\n", 1, "line 3"}, // 14
		{H SA1, "end %u 0x%08x", 1, "line 3: the file is cut"}, // 15: no newline
		{H SA1, "end %u 0x%08x\n\n", 1, "line 4: text behind"}, // 16
		{H SA1, "end  %u 0x%08x\n", 1, "line 3"}, // 17
		{H SA1, "", 1, "line 3: the file is cut"}, // 18
		BAD("sa 0x00001001 192.0.2.1 " PRINT_A " 1"), // 19
		BAD("sa 0x00001001 192.0.2.1 " PRINT_A " 1 0x0000000000000001 1"), // 20
		BAD("sa 0x1001 192.0.2.1 " PRINT_A " 1 0x0000000000000001"), // 21
		BAD("sa 4097 192.0.2.1 " PRINT_A " 1 0x0000000000000001"), // 22
		BAD("sa 0x100001001 192.0.2.1 " PRINT_A " 1 0x0000000000000001"), // 23
		BAD("sa 0x00001001 192.0.2.1 " PRINT_A " -1 0x0000000000000001"), // 24
		BAD("sa 0x00001001 192.0.2.1 " PRINT_A " 01 0x0000000000000001"), // 25
		BAD("sa 0x00001001 192.0.2.1 " PRINT_A
		    " 18446744073709551616 0x0000000000000001"), // 26
		BAD("sa 0x00001001 192.0.2.1 " PRINT_A " 1 0x00000000000000001"), // 27
		BAD("sa 0x00001001 192.0.2.1 " PRINT_A "0 1 0x0000000000000001"), // 28
		BAD("sa 0x00001001 192.0.2.01 " PRINT_A " 1 0x0000000000000001"), // 29
		BAD("sa 0x00001001 2001:DB8::1 " PRINT_A " 1 0x0000000000000001"), // 30
		BAD("sa 0x00001001 none " PRINT_A " 1 0x0000000000000001"), // 31
		BAD("SA 0x00001001 192.0.2.1 " PRINT_A " 1 0x0000000000000001"), // 32
		BAD("sa  0x00001001 192.0.2.1 " PRINT_A " 1 0x0000000000000001"), // 33
		BAD("sa\t0x00001001 192.0.2.1 " PRINT_A " 1 0x0000000000000001"), // 34
		BAD("sa 0x00001001 192.0.2.1 " PRINT_A " 1 0x0000000000000001\r"), // 35
	};
	char b[1024], again[1024], end[64];

	state_close(open_ok());
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t len = strlen(cases[i].body);
		struct state *s;
		struct err err = {0};
		int rc;

		snprintf(end, sizeof(end), cases[i].end, cases[i].n, crc32(cases[i].body, len));
		snprintf(b, sizeof(b), "%s%s", cases[i].body, end);
		spill(path, b, strlen(b));
		rc = state_open(path, &s, &err);
		if (cases[i].cause == NULL && rc == 0) {
			write_ok(s);
			slurp(path, again, sizeof(again));
			assert_string_equal(again, b);
			state_close(s);
		} else if (cases[i].cause == NULL || rc != -EBADMSG ||
			   strstr(err.text, cases[i].cause) == NULL) {
			fail_msg("case %zu: %d: %s", i + 1, rc, err.text);
		}
	}
}

// The checksum is the CRC-32 that every other program calls so (zlib's here).
static void
test_known_file(void **unused)
{
	static const char text[] = H SA1 SA2 SA3 "end 3 0x0adc76e9\n";
	struct state *s;
	struct state_sa *sa;

	state_close(open_ok());
	spill(path, text, sizeof(text) - 1);
	s = open_ok();
	sa = get_ok(s, 0x1001, &v4, PRINT_A);
	assert_true(sa->reserved == 65536 && sa->iv_xor == 0x1122334455667788);
	sa = get_ok(s, 0x1001, &v6, PRINT_A);
	assert_true(sa->reserved == 0 && sa->iv_xor == 0);
	sa = get_ok(s, 0xfffffffe, &v4, PRINT_B);
	assert_true(sa->reserved == UINT64_MAX && sa->iv_xor == UINT64_MAX);
	state_close(s);
}

static void
test_lock(void **unused)
{
	struct state *s = open_ok(), *child;
	struct err err;
	pid_t pid;
	int status, ready[2];
	char byte;

	open_refused(path, -EBUSY, EXIT_MACHINE, "another sgw", "stop that one");
	write_ok(s); // replaces the file, not the lock
	open_refused(path, -EBUSY, EXIT_MACHINE, "another sgw", "stop that one");
	state_close(s);
	state_close(open_ok());
	// A holder in another process, then kill -9.
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (state_open(path, &child, &err) == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	open_refused(path, -EBUSY, EXIT_MACHINE, "another sgw", "stop that one");
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	state_close(open_ok());
	close(ready[0]);
	close(ready[1]);
}

// Killed with the new file complete but not yet in place.
static void
test_kill(void **unused)
{
	char before[512], after[512];
	struct state *s;
	struct err err;
	int status;
	pid_t pid;

	write_two();
	slurp(path, before, sizeof(before));
	pid = fork();
	if (pid == 0) {
		if (state_open(path, &s, &err) != 0)
			_exit(1);
		state_get(s, 0x1001, &v4, PRINT_A, &err)->reserved = 999999;
		rename_kills = true;
		state_write(s, &err);
		_exit(2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	slurp(path, after, sizeof(after));
	assert_string_equal(before, after);
	assert_int_equal(access(temp_path, F_OK), 0);
	s = open_ok();
	assert_true(get_ok(s, 0x1001, &v4, PRINT_A)->reserved == 65536);
	get_ok(s, 0x1001, &v4, PRINT_A)->reserved = 70000;
	write_ok(s);
	assert_int_equal(access(temp_path, F_OK), -1);
	state_close(s);
	s = open_ok();
	assert_true(get_ok(s, 0x1001, &v4, PRINT_A)->reserved == 70000);
	state_close(s);
}

// Killed at the very first write: there is no file yet, only the leftovers.
static void
test_kill_first(void **unused)
{
	struct state *s;
	struct err err;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		rename_kills = true;
		state_open(path, &s, &err);
		_exit(2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(temp_path, F_OK), 0);
	state_close(open_ok());
}

// What stands in the temporary file's place is neither read nor written through.
static void
test_leftover(void **unused)
{
	char victim[300], b[512];

	write_two();
	spill(temp_path, "half a fi", 9);
	write_two();
	snprintf(victim, sizeof(victim), "%s/victim", base);
	spill(victim, "mine", 4);
	assert_int_equal(symlink(victim, temp_path), 0);
	write_two();
	slurp(victim, b, sizeof(b));
	assert_string_equal(b, "mine");
	assert_int_equal(access(temp_path, F_OK), -1);
}

static void
test_order(void **unused)
{
	struct state *s = open_ok();

	assert_string_equal(trace, "DFRD"); // the new directory's parent, then the file
	trace[0] = '\0';
	write_ok(s);
	assert_string_equal(trace, "FRD");
	state_close(s);
	trace[0] = '\0';
	state_close(open_ok());
	assert_string_equal(trace, "");
}

static void
write_refused(struct state *s, int code, const char *cause)
{
	struct err err = {0};
	int rc = state_write(s, &err);

	if (rc != code || err.kind != EXIT_RESOURCE || strstr(err.text, path) == NULL ||
	    strstr(err.text, cause) == NULL)
		fail_msg("%d, kind %d: %s", rc, err.kind, err.text);
}

static void
test_disk_fails(void **unused)
{
	struct rlimit limit = {40, RLIM_INFINITY}, old;
	char before[512], after[512];
	struct state *s;

	write_two();
	slurp(path, before, sizeof(before));
	s = open_ok();
	get_ok(s, 0x1001, &v4, PRINT_A)->reserved = 80000;
	fsync_file = EIO;
	write_refused(s, -EIO, strerror(EIO));
	fsync_file = 0;
	rename_error = EROFS;
	write_refused(s, -EROFS, strerror(EROFS));
	rename_error = 0;
	// The disk is full after 40 bytes.
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	write_refused(s, -EFBIG, strerror(EFBIG));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	slurp(path, after, sizeof(after));
	assert_string_equal(before, after);
	assert_int_equal(access(temp_path, F_OK), -1);
	// The rename is done, but it may not survive a power failure.
	fsync_dir = EIO;
	write_refused(s, -EIO, "directory");
	fsync_dir = 0;
	write_ok(s);
	state_close(s);
	s = open_ok();
	assert_true(get_ok(s, 0x1001, &v4, PRINT_A)->reserved == 80000);
	state_close(s);
	fsync_file = EIO;
	unlink(path);
	open_refused(path, -EIO, EXIT_RESOURCE, "writing", "put it where");
	rmdir(dir);
}

static void
test_modes(void **unused)
{
	static const mode_t bad[] = {0620, 0602, 0660, 0606, 0666, 0777, 0622, 01666};
	static const mode_t good[] = {0600, 0640, 0644, 0700, 0755};

	write_two();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(chmod(path, bad[i]), 0);
		open_refused(path, -EPERM, EXIT_MACHINE, "written by others", "chmod go-w");
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(chmod(path, good[i]), 0);
		state_close(open_ok());
	}
	assert_int_equal(chmod(dir, 0777), 0);
	open_refused(path, -EPERM, EXIT_MACHINE, "its directory can be written", "chmod go-w");
	assert_int_equal(chmod(dir, 0770), 0);
	open_refused(path, -EPERM, EXIT_MACHINE, "its directory can be written", "chmod go-w");
	assert_int_equal(chmod(dir, 01777), 0); // as /tmp: others can not swap the file
	state_close(open_ok());
	assert_int_equal(chmod(dir, 0755), 0);
	state_close(open_ok());
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65534, 0), 0);
		open_refused(path, -EPERM, EXIT_MACHINE, "belongs to user 65534", "chown");
		assert_int_equal(chown(path, 0, 65534), 0);
		state_close(open_ok());
		assert_int_equal(chown(dir, 65534, 0), 0);
		open_refused(path, -EPERM, EXIT_MACHINE, "its directory belongs", "chown");
	}
}

static void
test_not_a_file(void **unused)
{
	char other[300], elsewhere[300], b[512];
	size_t len;

	write_two();
	len = slurp(path, b, sizeof(b));
	snprintf(other, sizeof(other), "%s.real", path);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	open_refused(path, -ELOOP, EXIT_MACHINE, "symbolic link", "name the file itself");
	unlink(path);
	assert_int_equal(symlink("/nonexistent", path), 0);
	open_refused(path, -ELOOP, EXIT_MACHINE, "symbolic link", "name the file itself");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	open_refused(path, -EINVAL, EXIT_MACHINE, "not a regular file", "another path");
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	open_refused(path, -EINVAL, EXIT_MACHINE, "not a regular file", "another path");
	unlink(path);
	spill(path, b, len);
	assert_int_equal(truncate(path, INT64_C(1) << 40), 0);
	open_refused(path, -EBADMSG, EXIT_MACHINE, "too large", "new keys");
	spill(path, b, len);
	// The lock is not made through a link either.
	snprintf(other, sizeof(other), "%s.lock", path);
	unlink(other);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", base);
	assert_int_equal(symlink(elsewhere, other), 0);
	open_refused(path, -ELOOP, EXIT_RESOURCE, "lock file", "put it where");
	assert_int_equal(access(elsewhere, F_OK), -1);
	unlink(other);
	state_close(open_ok());
}

static void
test_bad_path(void **unused)
{
	static char much[PATH_MAX + 10];
	struct state *s;
	struct err err = {0};
	char b[512];

	snprintf(b, sizeof(b), "%s/a/b/state", base);
	open_refused(b, -ENOENT, EXIT_RESOURCE, "its directory", "put it where");
	snprintf(b, sizeof(b), "%s/", base);
	open_refused(b, -EISDIR, EXIT_MACHINE, "no file name", "name a file");
	open_refused("", -EISDIR, EXIT_MACHINE, "no file name", "name a file");
	snprintf(b, sizeof(b), "%s/file", base);
	spill(b, "x", 1);
	snprintf(b, sizeof(b), "%s/file/state", base);
	open_refused(b, -ENOTDIR, EXIT_RESOURCE, "its directory", "put it where");
	memset(much, 'a', sizeof(much) - 1);
	assert_int_equal(state_open(much, &s, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "put it where")); // the remedy is not cut off
	much[NAME_MAX - 4] = '\0';
	assert_int_equal(state_open(much, &s, &err), -ENAMETOOLONG);
	assert_int_equal(state_open(much, &s, NULL), -ENAMETOOLONG);
}

// As a user to whom the directory's mode means something.
static void
test_unwritable(void **unused)
{
	struct err err = {0};
	struct state *s;
	int status;
	pid_t pid;

	write_two();
	if (geteuid() == 0) {
		assert_int_equal(chown(base, 65534, 65534), 0);
		assert_int_equal(chown(dir, 65534, 65534), 0);
		assert_int_equal(chown(path, 65534, 65534), 0);
	}
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(1);
		// No lock file can be made.
		snprintf(temp_path, sizeof(temp_path), "%s.lock", path);
		if (unlink(temp_path) != 0 || chmod(dir, 0500) != 0)
			_exit(2);
		if (state_open(path, &s, &err) != -EACCES || err.kind != EXIT_RESOURCE ||
		    strstr(err.text, "put it where sgw can write") == NULL)
			_exit(3);
		// It becomes so in the course of work.
		if (chmod(dir, 0700) != 0 || state_open(path, &s, &err) != 0)
			_exit(4);
		chmod(dir, 0500);
		if (state_write(s, &err) != -EACCES || err.kind != EXIT_RESOURCE)
			_exit(5);
		chmod(dir, 0700);
		if (state_write(s, &err) != 0)
			_exit(6);
		// A file that it may not read is not one that does not exist.
		state_close(s);
		chmod(path, 0);
		if (state_open(path, &s, &err) != -EACCES || err.kind != EXIT_RESOURCE)
			_exit(7);
		// The root directory is "/", not "".
		if (state_open("/sgw-state", &s, &err) != -EACCES)
			_exit(8);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

// A relative path means the directory at the time of state_open().
static void
test_relative(void **unused)
{
	char before[PATH_MAX], b[512];
	struct err err = {0};
	struct state *s;

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(base), 0);
	assert_int_equal(state_open("plain", &s, &err), 0);
	assert_int_equal(chdir("/"), 0);
	get_ok(s, 256, &v4, PRINT_A)->reserved = 77;
	write_ok(s);
	state_close(s);
	snprintf(path, sizeof(path), "%s/plain", base);
	slurp(path, b, sizeof(b));
	assert_non_null(strstr(b, " 77 "));
	state_close(open_ok());
	assert_int_equal(chdir(before), 0);
	state_close(NULL);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_create),
		CASE(test_reopen),
		CASE(test_many),
		CASE(test_longest),
		CASE(test_other_key),
		CASE(test_bad_get),
		CASE(test_known_file),
		CASE(test_strict),
		CASE(test_flip),
		CASE(test_truncate),
		CASE(test_lock),
		CASE(test_kill),
		CASE(test_kill_first),
		CASE(test_leftover),
		CASE(test_order),
		CASE(test_disk_fails),
		CASE(test_modes),
		CASE(test_not_a_file),
		CASE(test_bad_path),
		CASE(test_unwritable),
		CASE(test_relative),
	};

	log_threshold = LOG_WARNING;
	umask(022);
	return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
