/* SPDX-License-Identifier: BSD-3-Clause */
// The file is text, a record a line, in the order of spi and dst:
//
//	sgw-state 1
//	sa 0x00001001 192.0.2.1 0123456789abcdef 65536 0x1122334455667788
//	end 1 0x89abcdef
//
// The last line has the number of records and the CRC-32 of every byte before
// it. There is one way to write a state and every other way is refused: a
// reader that is generous with a damaged file repeats nonces.
//
// No error here advises a backup: a backup has reservations that are older than
// the numbers used since, with the same iv_xor, which is the one way left to
// repeat a nonce.
#include "state.h"

#include "log.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER "sgw-state 1"
#define LINE_BYTES 160            // longest line with newline and NUL
#define FILE_BYTES_MAX (64 << 20) // what is larger was not written by sgw
#define FINGERPRINT_LEN 16        // hex digits
#define PATH_SHOWN 160            // of the path in an error, the remedy must fit as well
// O_NONBLOCK: a FIFO in the file's place is to be refused, not waited for.
#define OPEN_FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
#define NEW_KEYS "remove it AND give all SAs new keys, in the configuration and at the peers"

struct record {
	struct state_sa sa;
	// What this one replaced since state_open(). Not written any more, but an SA
	// that lives on for a while must not find the new SA's numbers behind its
	// pointer, and gets its record back when the change of key is undone.
	struct record *older;
};

struct state {
	char path[PATH_MAX];          // as given, for messages
	const char *name;             // last component of it
	char lock_name[NAME_MAX + 8]; // in the same directory, as is
	char temp_name[NAME_MAX + 8]; // the file that is renamed to the state file
	int dir_fd;                   // held open, so that a later chdir() changes nothing
	int lock_fd;                  // has the lock as long as it is open
	struct record **records;      // ascending by spi and dst
	uint32_t n;                   //
	uint32_t room;                // in records
};

// A file in memory, and how far it was read.
struct text {
	char *b;       // NUL-terminated, lines are cut apart while reading
	size_t len;    // bytes without the NUL
	size_t at;     // offset of the next line
	uint32_t line; // number of the line read last, from 1
	uint32_t crc;  // of all lines before the one read last
};

static uint32_t
crc32_add(uint32_t crc, const char *b, size_t len)
{
	crc = ~crc;
	for (size_t i = 0; i < len; i++) {
		crc ^= (uint8_t)b[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (UINT32_C(0xedb88320) & -(crc & 1));
	}
	return ~crc;
}

static int
fail_io(const struct state *s, int code, const char *what, struct err *err)
{
	return err_set(err, EXIT_RESOURCE, -code,
		       "state file %.*s: %s: %s; %s", PATH_SHOWN, s->path, what, strerror(code),
		       code == ENOMEM ? "make memory free"
				      : "put it where sgw can write, with space left");
}

static int
fail_damaged(const struct state *s, uint32_t line, const char *what, struct err *err)
{
	return err_set(err, EXIT_MACHINE, -EBADMSG,
		       "state file %.*s: line %" PRIu32 ": %s; it is damaged or was edited, and an "
		       "older copy of it would repeat nonces: " NEW_KEYS,
		       PATH_SHOWN, s->path, line, what);
}

// Records

static int
record_cmp(const struct state_sa *a, uint32_t spi, const struct addr *dst)
{
	if (a->spi != spi)
		return a->spi < spi ? -1 : 1;
	return addr_cmp(&a->dst, dst);
}

// Index of the first record that is not before (spi, dst).
static uint32_t
record_place(const struct state *s, uint32_t spi, const struct addr *dst)
{
	uint32_t low = 0, high = s->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (record_cmp(&s->records[middle]->sa, spi, dst) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct record *
record_insert(struct state *s, uint32_t at, const struct state_sa *sa)
{
	struct record *r;

	if (s->n == s->room) {
		uint32_t room = s->room == 0 ? 64 : s->room * 2;
		struct record **records = realloc(s->records, room * sizeof(*records));

		if (records == NULL)
			return NULL;
		s->records = records;
		s->room = room;
	}
	r = malloc(sizeof(*r));
	if (r == NULL)
		return NULL;
	*r = (struct record){.sa = *sa};
	memmove(s->records + at + 1, s->records + at, (s->n - at) * sizeof(*s->records));
	s->records[at] = r;
	s->n++;
	return r;
}

static struct record *
record_replace(struct state *s, uint32_t at, const struct state_sa *sa)
{
	struct record *r = malloc(sizeof(*r));

	if (r == NULL)
		return NULL;
	*r = (struct record){.sa = *sa, .older = s->records[at]};
	s->records[at] = r;
	return r;
}

// Bring the record of a key to the front of those of its spi and dst.
static struct record *
record_recall(struct state *s, uint32_t at, const char *fingerprint)
{
	for (struct record **p = &s->records[at]; *p != NULL; p = &(*p)->older) {
		struct record *r = *p;

		if (strcmp(r->sa.fingerprint, fingerprint) != 0)
			continue;
		*p = r->older;
		r->older = s->records[at];
		s->records[at] = r;
		return r;
	}
	return NULL;
}

static bool
fingerprint_ok(const char *text)
{
	return strlen(text) == FINGERPRINT_LEN &&
	       strspn(text, "0123456789abcdef") == FINGERPRINT_LEN;
}

// Lines

static int
sa_format(const struct state_sa *sa, char line[static LINE_BYTES])
{
	char dst[ADDR_STRLEN];

	return snprintf(line, LINE_BYTES, "sa 0x%08" PRIx32 " %s %s %" PRIu64 " 0x%016" PRIx64,
			sa->spi, addr_format(&sa->dst, dst), sa->fingerprint, sa->reserved,
			sa->iv_xor);
}

// Takes any spelling; the caller holds it against the only one that is written.
static int
sa_parse(const char *line, struct state_sa *sa)
{
	char word[6][ADDR_STRLEN];
	uint64_t spi;

	if (sscanf(line, "%47s %47s %47s %47s %47s %47s", word[0], word[1], word[2], word[3],
		   word[4], word[5]) != 6)
		return -EINVAL;
	if (text_u64(word[1], &spi) < 0 || spi > UINT32_MAX || addr_parse(word[2], &sa->dst) < 0 ||
	    !fingerprint_ok(word[3]) || text_u64(word[4], &sa->reserved) < 0 ||
	    text_u64(word[5], &sa->iv_xor) < 0)
		return -EINVAL;
	sa->spi = (uint32_t)spi;
	memcpy(sa->fingerprint, word[3], FINGERPRINT_LEN + 1);
	return 0;
}

static int
end_format(uint32_t n, uint32_t crc, char line[static LINE_BYTES])
{
	return snprintf(line, LINE_BYTES, "end %" PRIu32 " 0x%08" PRIx32, n, crc);
}

// The next line without its newline; NULL when there is none that is whole.
static char *
text_line(struct text *t)
{
	char *line = t->b + t->at;
	char *end = memchr(line, '\n', t->len - t->at);

	t->line++;
	if (end == NULL)
		return NULL;
	*end = '\0';
	t->at = (size_t)(end - t->b) + 1;
	// A NUL inside would hide what stands behind it. That line counts as cut off.
	return strlen(line) == (size_t)(end - line) ? line : NULL;
}

static int
text_parse_sa(struct state *s, const struct text *t, const char *line, struct err *err)
{
	char canonical[LINE_BYTES];
	struct state_sa sa = {0};

	if (sa_parse(line, &sa) < 0)
		return fail_damaged(s, t->line, "not a record", err);
	sa_format(&sa, canonical);
	if (strcmp(line, canonical) != 0)
		return fail_damaged(s, t->line, "not a record as sgw writes it", err);
	if (s->n > 0 && record_cmp(&s->records[s->n - 1]->sa, sa.spi, &sa.dst) >= 0)
		return fail_damaged(s, t->line, "record twice or out of order", err);
	if (record_insert(s, s->n, &sa) == NULL)
		return fail_io(s, ENOMEM, "reading", err);
	return 0;
}

static int
text_parse(struct state *s, struct text *t, struct err *err)
{
	char canonical[LINE_BYTES];
	size_t start = 0;
	char *line = text_line(t);
	int rc;

	if (line == NULL || strcmp(line, HEADER) != 0)
		return fail_damaged(s, t->line, "not \"" HEADER "\"", err);
	for (;;) {
		// The newline has been overwritten, so it is added by hand.
		t->crc = crc32_add(t->crc, t->b + start, t->at - 1 - start);
		t->crc = crc32_add(t->crc, "\n", 1);
		start = t->at;
		line = text_line(t);
		if (line == NULL)
			return fail_damaged(s, t->line, "the file is cut off here", err);
		if (strncmp(line, "end ", 4) == 0)
			break;
		rc = text_parse_sa(s, t, line, err);
		if (rc < 0)
			return rc;
	}
	end_format(s->n, t->crc, canonical);
	if (strcmp(line, canonical) != 0)
		return fail_damaged(s, t->line, "number of records or checksum is wrong", err);
	if (t->at != t->len)
		return fail_damaged(s, t->line + 1, "text behind the end", err);
	return 0;
}

// Files

static int
read_all(int fd, char *b, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = read(fd, b + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO; // shorter than fstat() said
		done += (size_t)n;
	}
	return 0;
}

static int
write_all(int fd, const char *b, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, b + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

// Who can write to the file or swap it for an older one can make nonces repeat.
static int
check_access(const struct state *s, const struct stat *st, const char *what, struct err *err)
{
	bool sticky_dir = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);

	if ((st->st_mode & (S_IWGRP | S_IWOTH)) && !sticky_dir)
		return err_set(err, EXIT_MACHINE, -EPERM,
			       "state file %.*s: %s can be written by others (mode %04o); chmod "
			       "go-w, and if that may have been used, " NEW_KEYS,
			       PATH_SHOWN, s->path, what, (unsigned int)st->st_mode & 07777);
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return err_set(err, EXIT_MACHINE, -EPERM,
			       "state file %.*s: %s belongs to user %u; chown it to the user that "
			       "sgw runs as, and if the other may have changed it, " NEW_KEYS,
			       PATH_SHOWN, s->path, what, (unsigned int)st->st_uid);
	return 0;
}

// Read and parse the open file.
static int
read_fd(struct state *s, int fd, struct err *err)
{
	struct text t = {0};
	struct stat st;
	int rc;

	if (fstat(fd, &st) < 0)
		return fail_io(s, errno, "reading", err);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EXIT_MACHINE, -EINVAL,
			       "state file %.*s: not a regular file; name another path",
			       PATH_SHOWN, s->path);
	rc = check_access(s, &st, "it", err);
	if (rc < 0)
		return rc;
	if (st.st_size > FILE_BYTES_MAX)
		return fail_damaged(s, 1, "far too large for a state file", err);
	t.len = (size_t)st.st_size;
	t.b = calloc(1, t.len + 1);
	if (t.b == NULL)
		return fail_io(s, ENOMEM, "reading", err);
	rc = read_all(fd, t.b, t.len);
	if (rc < 0)
		fail_io(s, -rc, "reading", err);
	else
		rc = text_parse(s, &t, err);
	free(t.b);
	return rc;
}

static int
read_file(struct state *s, struct err *err)
{
	int fd = openat(s->dir_fd, s->name, O_RDONLY | OPEN_FLAGS);
	int rc;

	if (fd >= 0) {
		rc = read_fd(s, fd, err);
		close(fd);
		return rc;
	}
	if (errno == ENOENT) {
		log_notice("state file %s: new; outbound sequence numbers begin at 1", s->path);
		return state_write(s, err);
	}
	if (errno == ELOOP)
		return err_set(err, EXIT_MACHINE, -ELOOP,
			       "state file %.*s: is a symbolic link, which the next write would "
			       "replace; name the file itself",
			       PATH_SHOWN, s->path);
	return fail_io(s, errno, "opening", err);
}

// Make sure that a new directory is on disk: else the file is lost with it.
static int
sync_parent(int dir_fd)
{
	int fd = openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = fsync(fd) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static int
open_dir(struct state *s, const char *dir, struct err *err)
{
	bool made = mkdir(dir, 0700) == 0;
	struct stat st;
	int rc;

	// Other failures than EEXIST show in the open(), with a better reason.
	s->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return fail_io(s, errno, "opening its directory", err);
	if (fstat(s->dir_fd, &st) < 0)
		return fail_io(s, errno, "opening its directory", err);
	rc = check_access(s, &st, "its directory", err);
	if (rc == 0 && made) {
		rc = sync_parent(s->dir_fd);
		if (rc < 0)
			fail_io(s, -rc, "making its directory", err);
	}
	return rc;
}

// The lock has a file of its own, because each write replaces the state file.
static int
take_lock(struct state *s, struct err *err)
{
	s->lock_fd = openat(s->dir_fd, s->lock_name, O_RDWR | O_CREAT | OPEN_FLAGS, 0600);
	if (s->lock_fd < 0)
		return fail_io(s, errno, "opening its lock file", err);
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return fail_io(s, errno, "locking", err);
	return err_set(err, EXIT_MACHINE, -EBUSY,
		       "state file %.*s: another sgw has it locked; stop that one (lslocks shows "
		       "it), or give each its own state file and keys",
		       PATH_SHOWN, s->path);
}

static int
open_named(struct state *s, struct err *err)
{
	char dir[PATH_MAX] = ".";
	const char *slash = strrchr(s->path, '/');
	int rc;

	s->name = slash == NULL ? s->path : slash + 1;
	if (slash != NULL) // up to the slash, but the root directory is one itself
		snprintf(dir, sizeof(dir), "%.*s", slash == s->path ? 1 : (int)(slash - s->path),
			 s->path);
	if (s->name[0] == '\0')
		return err_set(err, EXIT_MACHINE, -EISDIR,
			       "state file \"%.*s\": no file name; name a file in a directory",
			       PATH_SHOWN, s->path);
	if (strlen(s->name) > NAME_MAX - strlen(".lock"))
		return fail_io(s, ENAMETOOLONG, "opening", err);
	snprintf(s->lock_name, sizeof(s->lock_name), "%s.lock", s->name);
	snprintf(s->temp_name, sizeof(s->temp_name), "%s.tmp", s->name);
	rc = open_dir(s, dir, err);
	if (rc == 0)
		rc = take_lock(s, err);
	if (rc == 0)
		rc = read_file(s, err);
	return rc;
}

int
state_open(const char *path, struct state **out, struct err *err)
{
	struct state *s = calloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	if (s == NULL)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "state file: out of memory");
	s->dir_fd = -1;
	s->lock_fd = -1;
	if ((size_t)snprintf(s->path, sizeof(s->path), "%s", path) < sizeof(s->path))
		rc = open_named(s, err);
	else
		rc = fail_io(s, ENAMETOOLONG, "opening", err);
	if (rc < 0) {
		state_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

static bool
random_u64(uint64_t *out)
{
	ssize_t n;

	do
		n = getrandom(out, sizeof(*out), 0);
	while (n < 0 && errno == EINTR);
	return n == sizeof(*out);
}

struct state_sa *
state_get(struct state *s, uint32_t spi, const struct addr *dst, const char *fingerprint,
	  struct err *err)
{
	struct state_sa sa = {.spi = spi, .dst = *dst};
	uint32_t at = record_place(s, spi, dst);
	struct record *r = NULL;
	bool found;

	// What is let in here must be readable again after a restart.
	if (!fingerprint_ok(fingerprint) || (dst->family != 4 && dst->family != 6)) {
		err_set(err, EXIT_BUG, -EINVAL, "state file: sa 0x%" PRIx32 ": bad record", spi);
		return NULL;
	}
	memcpy(sa.fingerprint, fingerprint, FINGERPRINT_LEN + 1);
	found = at < s->n && record_cmp(&s->records[at]->sa, spi, dst) == 0;
	if (found)
		r = record_recall(s, at, fingerprint);
	if (r != NULL)
		return &r->sa;
	if (!random_u64(&sa.iv_xor)) {
		err_set(err, EXIT_RESOURCE, -EIO,
			"state file: sa 0x%" PRIx32 ": getrandom: %s; a kernel that can not draw "
			"random numbers can not run sgw",
			spi, strerror(errno));
		return NULL;
	}
	r = found ? record_replace(s, at, &sa) : record_insert(s, at, &sa);
	if (r == NULL) {
		fail_io(s, ENOMEM, "adding a record", err);
		return NULL;
	}
	return &r->sa;
}

// All records as text. @return NULL when there is no memory.
static char *
render(const struct state *s, size_t *len)
{
	char *b = malloc(((size_t)s->n + 2) * LINE_BYTES);
	char *p = b;

	if (b == NULL)
		return NULL;
	p += sprintf(p, HEADER "\n");
	for (uint32_t i = 0; i < s->n; i++) {
		p += sa_format(&s->records[i]->sa, p);
		*p++ = '\n';
	}
	p += end_format(s->n, crc32_add(0, b, (size_t)(p - b)), p);
	*p++ = '\n';
	*len = (size_t)(p - b);
	return b;
}

static int
write_temp(struct state *s, const char *b, size_t len)
{
	int fd, rc;

	// One that a killed sgw left behind; the lock says that it is nobody's.
	unlinkat(s->dir_fd, s->temp_name, 0);
	fd = openat(s->dir_fd, s->temp_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, b, len);
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	return rc;
}

// Removed or replaced, the lock no longer keeps a second sgw away.
static bool
lock_is_there(const struct state *s)
{
	struct stat ours, there;

	return fstat(s->lock_fd, &ours) == 0 && fstatat(s->dir_fd, s->lock_name, &there, 0) == 0 &&
	       ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

int
state_write(struct state *s, struct err *err)
{
	size_t len;
	char *b;
	int rc;

	if (!lock_is_there(s))
		return err_set(err, EXIT_MACHINE, -ESTALE,
			       "state file %s: its lock file was removed, and another sgw may use it; stop "
			       "all that name it and start them again", s->path);
	b = render(s, &len);
	if (b == NULL)
		return fail_io(s, ENOMEM, "writing", err);
	// What would be refused when it is read must not get there.
	rc = len > FILE_BYTES_MAX ? -EFBIG : write_temp(s, b, len);
	free(b);
	if (rc == 0 && renameat(s->dir_fd, s->temp_name, s->dir_fd, s->name) < 0)
		rc = -errno;
	if (rc < 0) {
		unlinkat(s->dir_fd, s->temp_name, 0);
		return fail_io(s, -rc, "writing", err);
	}
	// Without this the rename itself may not survive a power failure.
	if (fsync(s->dir_fd) < 0)
		return fail_io(s, errno, "writing its directory", err);
	return 0;
}

void
state_close(struct state *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		for (struct record *r = s->records[i], *older; r != NULL; r = older) {
			older = r->older;
			free(r);
		}
	}
	free(s->records);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s);
}
