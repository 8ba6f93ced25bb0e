/* SPDX-License-Identifier: BSD-3-Clause */
// Keys, from the file itself or from a file of their own. No message in here
// shows any part of a key, only lengths.
#include "field.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_FILE_MAX 1024 // bytes
#define READABLE_BY_ALL (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH)

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool
hex_key(struct load *l, const struct node *item, const char *key, const char *hex,
	struct cfg_key *out, size_t *len)
{
	size_t digits = strlen(hex);

	for (size_t i = 0; i < digits; i++) {
		int v = hex_digit(hex[i]);

		if (v < 0) {
			item_error(l, item, key,
				   "holds something that is no hex digit; write hex: and digits "
				   "0-9 a-f only, without spaces or colons");
			return false;
		}
		if (i / 2 < sizeof(out->b))
			out->b[i / 2] = (uint8_t)(out->b[i / 2] << 4 | v);
	}
	if (digits % 2 != 0) {
		item_error(l, item, key, "has an odd number of hex digits (%zu); two make a byte",
			   digits);
		return false;
	}
	*len = digits / 2;
	return true;
}

static bool
ascii_key(struct load *l, const struct node *item, const char *key, const char *text,
	  struct cfg_key *out, size_t *len)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++) {
		if (text[i] < 0x20 || text[i] > 0x7e) {
			item_error(l, item, key,
				   "holds something that is no ASCII letter, digit or sign; write "
				   "such a key as hex:");
			return false;
		}
		if (i < sizeof(out->b))
			out->b[i] = (uint8_t)text[i];
	}
	*len = n;
	return true;
}

// Read the one line of a key file. @return its length, or -1 after a report.
static ssize_t
key_file_read(struct load *l, const struct node *item, const char *key, const char *path,
	      char line[static KEY_FILE_MAX + 1])
{
	char word[QUOTE_STRLEN];
	struct stat st;
	ssize_t n;
	// Without O_NONBLOCK, a FIFO would hold us up right here.
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	quote(path, word);
	if (fd < 0 || fstat(fd, &st) < 0) {
		item_error(l, item, key, "key file %s cannot be read: %s", word, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (!S_ISREG(st.st_mode)) {
		item_error(l, item, key, "key file %s is not a regular file; put the key into one",
			   word);
		close(fd);
		return -1;
	}
	if ((st.st_mode & READABLE_BY_ALL) != 0 && !l->c->allow_published_keys) {
		item_error(l, item, key,
			   "key file %s can be read or written by group or others (mode %04o); "
			   "chmod 600 it",
			   word, st.st_mode & 07777);
		close(fd);
		return -1;
	}
	n = read(fd, line, KEY_FILE_MAX + 1);
	close(fd);
	if (n < 0 || n > KEY_FILE_MAX) {
		item_error(l, item, key, "key file %s %s; one line hex:... or ascii:... is wanted",
			   word, n < 0 ? "cannot be read" : "is longer than 1024 bytes");
		return -1;
	}
	if (n > 0 && line[n - 1] == '\n')
		n--;
	line[n] = '\0';
	if (strlen(line) != (size_t)n || strchr(line, '\n') != NULL) {
		item_error(l, item, key,
			   "key file %s holds more than one line of text; one line hex:... or "
			   "ascii:... is wanted",
			   word);
		return -1;
	}
	return n;
}

static bool
key_parse(struct load *l, const struct node *item, const char *key, const char *text,
	  struct cfg_key *out, size_t *len, bool in_file)
{
	bool good = false;

	memset(out, 0, sizeof(*out));
	if (strncmp(text, "hex:", 4) == 0)
		good = hex_key(l, item, key, text + 4, out, len);
	else if (strncmp(text, "ascii:", 6) == 0)
		good = ascii_key(l, item, key, text + 6, out, len);
	else if (in_file)
		item_error(l, item, key,
			   "its key file does not begin with hex: or ascii:; write one line "
			   "hex:... or ascii:... into it");
	else if (strncmp(text, "fingerprint:", 12) == 0)
		item_error(l, item, key,
			   "is a fingerprint, from which there is no way back to the key; write "
			   "hex:, ascii: or file:");
	else
		item_error(l, item, key,
			   "does not begin with hex:, ascii: or file:; write for instance "
			   "\"hex:\" and the digits, in quotes");
	if (good && *len == 0) {
		item_error(l, item, key, "has no bytes; write the key behind the colon");
		good = false;
	}
	if (good)
		out->len = (uint8_t)(*len <= CFG_KEY_MAX ? *len : 0);
	else
		explicit_bzero(out, sizeof(*out));
	return good;
}

enum found
field_key(struct load *l, const struct node *item, const char *key, struct cfg_key *out,
	  size_t *len)
{
	char line[KEY_FILE_MAX + 1];
	const char *text;
	bool good;
	enum found f = field_text(l, SEC_SAD, item, key, &text);

	*len = 0;
	if (f != FOUND_GOOD)
		return f;
	if (strncmp(text, "file:", 5) != 0) {
		if ((l->file_mode & READABLE_BY_ALL) != 0 && !l->c->allow_published_keys &&
		    !l->has_inline_key)
			item_error(l, item, key,
				   "stands in a file that group or others can read or write (mode "
				   "%04o); chmod 600 %s, or use file:",
				   l->file_mode & 07777, l->c->file);
		l->has_inline_key = true;
		good = key_parse(l, item, key, text, out, len, false);
	} else if (text[5] != '/') {
		item_error(l, item, key,
			   "names a key file without its full path; write file:/etc/sgw/NAME.key");
		return FOUND_BAD;
	} else {
		good = key_file_read(l, item, key, text + 5, line) >= 0 &&
		       key_parse(l, item, key, line, out, len, true);
		explicit_bzero(line, sizeof(line));
	}
	return good ? FOUND_GOOD : FOUND_BAD;
}
