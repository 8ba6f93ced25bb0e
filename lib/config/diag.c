/* SPDX-License-Identifier: BSD-3-Clause */
#include "diag.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define QUOTED_MAX 60  // letters of a quoted word

void
diag_add(struct diag *d, bool warning, struct cfg_at at, const char *path, const char *fmt,
	 va_list ap)
{
	char *what = NULL, *text = NULL;

	if (!warning)
		d->errors++;
	if (d->n == d->room) {
		uint32_t room = d->room == 0 ? 16 : d->room * 2;
		struct diag_line *lines = realloc(d->lines, room * sizeof(*lines));

		if (lines == NULL)
			return;
		d->lines = lines;
		d->room = room;
	}
	if (vasprintf(&what, fmt, ap) < 0)
		return;
	int rc = asprintf(&text, "%s%s: %s", warning ? "warning: " : "", path, what);
	free(what);
	if (rc < 0)
		return;
	d->lines[d->n] = (struct diag_line){at, d->n, warning, text};
	d->n++;
}

void
diag_error(struct diag *d, struct cfg_at at, const char *path, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	diag_add(d, false, at, path, fmt, ap);
	va_end(ap);
}

static int
line_cmp(const void *left, const void *right)
{
	const struct diag_line *a = left, *b = right;

	if (a->at.line != b->at.line)
		return a->at.line < b->at.line ? -1 : 1;
	if (a->at.col != b->at.col)
		return a->at.col < b->at.col ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

// An item that stands for several (a policy for both families) says the same
// thing more than once.
static bool
said_before(const struct diag *d, uint32_t i)
{
	for (uint32_t j = i; j-- > 0 && d->lines[j].at.line == d->lines[i].at.line &&
			     d->lines[j].at.col == d->lines[i].at.col;)
		if (strcmp(d->lines[j].text, d->lines[i].text) == 0)
			return true;
	return false;
}

void
diag_flush(struct diag *d, FILE *out)
{
	uint32_t shown = 0;

	if (d->n > 0)
		qsort(d->lines, d->n, sizeof(*d->lines), line_cmp);
	for (uint32_t i = 0; i < d->n && shown < DIAG_LINES_MAX; i++) {
		const struct diag_line *l = &d->lines[i];

		if (said_before(d, i))
			continue;
		fprintf(out, "%s:%u:%u: %s\n", d->file, l->at.line, l->at.col, l->text);
		shown++;
	}
	if (shown == DIAG_LINES_MAX && d->n > DIAG_LINES_MAX)
		fprintf(out, "%s: more than %u messages, the rest is left out\n", d->file,
			DIAG_LINES_MAX);
	if (d->n == 0 && d->errors > 0)
		fprintf(out, "%s: out of memory\n", d->file);
	for (uint32_t i = 0; i < d->n; i++)
		free(d->lines[i].text);
	free(d->lines);
	d->lines = NULL;
	d->n = d->room = 0;
}

static bool
may_be_key(const char *text)
{
	size_t run = 0;

	if (strcasestr(text, "hex:") != NULL || strcasestr(text, "ascii:") != NULL)
		return true;
	for (; *text != '\0'; text++) {
		run = isxdigit((unsigned char)*text) ? run + 1 : 0;
		if (run >= 32)
			return true;
	}
	return false;
}

const char *
quote(const char *text, char buf[static QUOTE_STRLEN])
{
	char *p = buf;
	int n = 0;

	if (may_be_key(text))
		return strcpy(buf, "(a key, not shown)");
	*p++ = '"';
	for (; *text != '\0' && n < QUOTED_MAX; text++, n++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c >= 0x7f)
			p += sprintf(p, "\\x%02x", c);
		else
			*p++ = (char)c;
	}
	strcpy(p, *text == '\0' ? "\"" : "...\"");
	return buf;
}
