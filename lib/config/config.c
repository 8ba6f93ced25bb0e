/* SPDX-License-Identifier: BSD-3-Clause */
// Reading a configuration from beginning to end, and its end.
#include "config.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES (32u << 20)

// The whole text of a file; to be wiped, it may hold keys.
struct text {
	char *b;
	size_t len, size;
};

static void
text_free(struct text *t)
{
	if (t->b != NULL)
		explicit_bzero(t->b, t->size);
	free(t->b);
	memset(t, 0, sizeof(*t));
}

// @return 0 or -errno; -EFBIG above FILE_MAX_BYTES
static int
text_grow(struct text *t)
{
	struct text new = {.size = t->size == 0 ? 65536 : t->size * 2, .len = t->len};

	if (new.size > 2 * FILE_MAX_BYTES)
		return -EFBIG;
	new.b = malloc(new.size);
	if (new.b == NULL)
		return -ENOMEM;
	if (t->len > 0)
		memcpy(new.b, t->b, t->len);
	text_free(t); // not realloc, which would leave a copy behind
	*t = new;
	return 0;
}

static int
text_read(const char *file, struct text *t, mode_t *mode)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY), rc = 0;
	struct stat st;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else
		*mode = st.st_mode;
	while (rc == 0 && n > 0) {
		if (t->len == t->size)
			rc = text_grow(t);
		if (rc == 0 && (n = read(fd, t->b + t->len, t->size - t->len)) < 0)
			rc = -errno;
		if (rc == 0)
			t->len += (size_t)n;
		if (t->len > FILE_MAX_BYTES)
			rc = -EFBIG;
	}
	close(fd);
	return rc;
}

static void
load_text(struct load *l, const struct text *t)
{
	struct tree tree;

	// After a mistake in YAML itself the rest of the tree tells only its echoes.
	if (tree_parse(&tree, t->b, t->len, l->diag)) {
		l->root = tree.root;
		if (tree.root == NULL)
			diag_error(l->diag, (struct cfg_at){1, 1}, "sgw",
				   "the file is empty; at least ports: is needed");
		else if (tree.root->kind != NODE_MAP)
			diag_error(
				l->diag, tree.root->at, "sgw",
				"the file is no map; write sections like ports: at the left edge");
		else {
			load_all(l);
			check_all(l);
		}
	}
	for (int s = 0; s < SEC_COUNT; s++)
		free(l->items[s]);
	free(l->names);
	tree_free(&tree);
}

int
config_load(const char *file, struct config **out, FILE *diag)
{
	struct diag d = {.file = file};
	struct config *c = calloc(1, sizeof(*c));
	struct load l = {.c = c, .diag = &d};
	struct text t = {0};
	int rc;

	if (c == NULL || (c->file = strdup(file)) == NULL) {
		free(c);
		fprintf(diag, "%s: out of memory\n", file);
		return -ENOMEM;
	}
	strcpy(c->name, "sgw");
	rc = text_read(file, &t, &l.file_mode);
	if (rc < 0) {
		fprintf(diag, "%s: cannot be read: %s\n", file,
			rc == -EFBIG ? "it is larger than 32 MiB" : strerror(-rc));
	} else {
		load_text(&l, &t);
		if (d.errors > 0)
			rc = -EINVAL;
		diag_flush(&d, diag);
	}
	text_free(&t);
	if (rc < 0)
		config_free(c);
	else
		*out = c;
	return rc;
}

static const struct cfg_port *
port_of(const struct config *c, const struct addr *local)
{
	for (uint32_t i = 0; i < c->n_ports; i++)
		for (uint32_t j = 0; j < c->ports[i].n_addresses; j++)
			if (addr_cmp(&c->ports[i].addresses[j].addr, local) == 0)
				return &c->ports[i];
	return NULL;
}

uint32_t
config_sa_mtu(const struct config *c, const struct cfg_sa *sa)
{
	const struct addr *local = sa->inbound ? &sa->dst : &sa->src;
	const struct addr *remote = sa->inbound ? &sa->src : &sa->dst;
	const struct cfg_port *p = port_of(c, local);
	uint32_t mtu;

	if (p == NULL)
		return 0;
	if (sa->transport)
		return alg_transport_payload(sa->cipher, sa->auth, sa->src.family, sa->natt, 0,
					     p->mtu);
	mtu = alg_inner_mtu(sa->cipher, sa->auth, sa->src.family, sa->natt, p->mtu);
	for (uint32_t i = 0; i < c->n_tunnels; i++) {
		const struct cfg_tunnel *t = &c->tunnels[i];

		if (t->reqid == sa->reqid && t->mtu != 0 && t->mtu < mtu &&
		    addr_cmp(&t->local, local) == 0 && addr_cmp(&t->remote, remote) == 0)
			mtu = t->mtu;
	}
	return mtu;
}

uint32_t
config_sa_mss(const struct config *c, const struct cfg_sa *sa, uint8_t family)
{
	uint32_t mtu = config_sa_mtu(c, sa), headers = (family == 4 ? 20 : 40) + 20;

	return mtu > headers ? mtu - headers : 0;
}

void
config_wipe_keys(struct config *c)
{
	for (uint32_t i = 0; i < c->n_sas; i++) {
		explicit_bzero(&c->sas[i].key, sizeof(c->sas[i].key));
		explicit_bzero(&c->sas[i].auth_key, sizeof(c->sas[i].auth_key));
	}
}

void
config_free(struct config *c)
{
	if (c == NULL)
		return;
	for (uint32_t i = 0; i < c->n_ports; i++)
		free(c->ports[i].addresses);
	for (uint32_t i = 0; i < c->n_tunnels; i++)
		free(c->tunnels[i].addresses);
	if (c->sas != NULL)
		explicit_bzero(c->sas, c->n_sas * sizeof(*c->sas));
	free(c->file);
	free(c->state);
	free(c->ports);
	free(c->tunnels);
	free(c->neighbours);
	free(c->routes);
	free(c->sas);
	free(c->policies);
	free(c);
}
