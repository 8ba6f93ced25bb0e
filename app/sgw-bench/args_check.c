/* SPDX-License-Identifier: BSD-3-Clause */
// Defaults, and what of the command line fits together.
#include "args_value.h"

#include <stdio.h>
#include <string.h>

#define ADDRESSES_MAX (UINT64_C(1) << 24)
#define FLOWS_MAX 1000000

static const char *const lab_addresses[2][2] = {
	{"198.18.10.1-198.18.10.71", "198.19.10.1-198.19.10.70"},
	{"2001:2:0:10::1-2001:2:0:10::14", "2001:2:0:8010::1-2001:2:0:8010::64"},
};

static void
fill_defaults(const struct parse *p)
{
	struct args *a = p->a;
	uint16_t port;

	a->family = a->family == 0 ? 4 : a->family;
	port = a->family == 4 ? 2001 : 2000;
	a->sport = a->sport == 0 ? port : a->sport;
	a->dport = a->dport == 0 ? port : a->dport;
	if (!args_given(p, "-l"))
		a->link = a->pps_mode ? 1488 : 1000;
	if (!a->has_src)
		range_parse(lab_addresses[a->family == 6][0], &a->src);
	if (!a->has_dst)
		range_parse(lab_addresses[a->family == 6][1], &a->dst);
	if (!a->quick)
		return;
	a->seconds = args_given(p, "--time") ? a->seconds : 2;
	a->width = args_given(p, "--width") ? a->width : 0.02;
	a->warm_up = args_given(p, "--warm-up") ? a->warm_up : 0.5;
}

// ---------------------------------------------------------------- sizes

static int
check_mix(const struct args *a, const struct size_mix *m, struct err *err)
{
	uint8_t family = a->both ? 6 : a->family;
	uint32_t headers = family == 4 ? 28 : 48, l3_more = a->both && a->by_payload ? 20 : 0;

	if (m->n > 1 && a->pps_mode)
		return USAGE(err, "-p counts packets of one size, --size %s has %u; leave -p out",
			     m->name, m->n);
	for (uint32_t k = 0; k < m->n; k++) {
		uint32_t l3 = m->l3[k] + l3_more;

		if (l3 > a->mtu)
			return USAGE(
				err,
				"size %s has IP packets of %u bytes, more than --mtu %u; take a "
				"smaller one, or raise --mtu (9582 at most)",
				m->name, l3, a->mtu);
		if (l3 < headers)
			return USAGE(
				err,
				"size %s has frames of %u bytes; the headers of IPv%u and UDP need "
				"%u",
				m->name, l3 + 18, family, headers + 18);
	}
	return 0;
}

static int
parse_sizes(struct parse *p, struct err *err)
{
	char copy[SIZES_MAX * 64], *rest = copy, *word;
	struct args *a = p->a;

	if (p->sizes == NULL) {
		a->n_mixes = 1;
		if (p->size != NULL)
			return args_size(p->size, a->mtu, &a->mixes[0]) == 0 ?
				       0 :
				       args_bad("--size", p->size, err);
		a->by_payload = true;
		return args_payload(p->payload != NULL ? p->payload : "500", a->family,
				    &a->mixes[0]) == 0 ?
			       0 :
			       args_bad("-s", p->payload, err);
	}
	if ((size_t)snprintf(copy, sizeof(copy), "%s", p->sizes) >= sizeof(copy))
		return args_bad("--sizes", p->sizes, err);
	// strsep, not strtok: an empty size is a mistake.
	while ((word = strsep(&rest, ",")) != NULL)
		if (a->n_mixes == SIZES_MAX ||
		    args_size(word, a->mtu, &a->mixes[a->n_mixes++]) != 0)
			return args_bad("--sizes", p->sizes, err);
	return 0;
}

static int
check_sizes(struct parse *p, struct err *err)
{
	if ((p->payload != NULL) + (p->size != NULL) + (p->sizes != NULL) > 1)
		return USAGE(err, "-s, --size and --sizes say the same; give one of them");
	if (parse_sizes(p, err) != 0)
		return -EINVAL;
	for (uint32_t i = 0; i < p->a->n_mixes; i++)
		if (check_mix(p->a, &p->a->mixes[i], err) != 0)
			return -EINVAL;
	return 0;
}

// ---------------------------------------------------------------- addresses and ports

// Addresses of a range; more than 2^63 as UINT64_MAX.
static uint64_t
count(const struct range *r)
{
	size_t n = addr_size(r->first.family), low = n == 4 ? 0 : 8;
	uint64_t first = 0, last = 0;

	if (memcmp(r->first.b, r->last.b, low) != 0)
		return UINT64_MAX;
	for (size_t i = low; i < n; i++) {
		first = first << 8 | r->first.b[i];
		last = last << 8 | r->last.b[i];
	}
	return last - first > UINT64_MAX / 2 ? UINT64_MAX : last - first + 1;
}

static int
check_range(const struct args *a, const char *name, const struct range *r, struct err *err)
{
	uint8_t family = r->first.family;

	if (family != a->family)
		return USAGE(err, "%s is IPv%u and the traffic IPv%u; give -%u, or other addresses",
			     name, family, a->family, family);
	if (count(r) > ADDRESSES_MAX)
		return USAGE(err, "%s has more than 16777216 addresses; give a narrower range",
			     name);
	if (addr_is_martian(&r->first) || addr_is_martian(&r->last))
		return USAGE(err,
			     "%s has addresses that no host has (multicast, loopback, 0/8, 240/4); "
			     "198.18.0.0/15 and 2001:2::/48 are for benchmarks",
			     name);
	return 0;
}

static int
check_flows(const struct args *a, struct err *err)
{
	uint64_t all;

	if (a->both && (a->has_src || a->has_dst))
		return USAGE(err, "--src and --dst are of one family; leave -%u out",
			     a->has_src ? (unsigned int)(10 - a->src.first.family) :
					  (unsigned int)(10 - a->dst.first.family));
	if (check_range(a, "--src", &a->src, err) != 0 ||
	    check_range(a, "--dst", &a->dst, err) != 0)
		return -EINVAL;
	all = count(&a->src) * count(&a->dst); // 2^48 at most
	if (a->flows == 0 && all > FLOWS_MAX)
		return USAGE(
			err,
			"--src and --dst make %llu flows; say with --flows how many of them, at "
			"most %d",
			(unsigned long long)all, FLOWS_MAX);
	if (a->flows > all)
		return USAGE(err, "--flows %u is more than --src and --dst make, %llu; widen them",
			     a->flows, (unsigned long long)all);
	return 0;
}

static int
check_ports(const struct args *a, struct err *err)
{
	bool both_ways = a->direction == DIR_BOTH;
	bool reverse = a->direction == DIR_REVERSE || both_ways;

	// These two go the other way as soon as it is known who is there.
	if (a->command == CMD_SWEEP || a->command == CMD_CALIBRATE)
		reverse = a->has_dut2;
	if (a->tx_port == NULL)
		return USAGE(err, "no port to send from; add -t PORT");
	if (a->rx_port == NULL)
		return USAGE(err, "no port to receive on; add -r PORT");
	if (!a->has_dut && a->direction != DIR_REVERSE)
		return USAGE(
			err,
			"no MAC address to send to; add -d MAC, the device's on the side of -t");
	if (!a->has_dut2 && reverse)
		return USAGE(
			err,
			"no MAC address to send to in reverse; add -D MAC, the device's on the "
			"side of -r");
	if (reverse && strcmp(a->tx_port, a->rx_port) == 0)
		return USAGE(err, "-t and -r are one port, which has one direction; leave %s out",
			     a->direction == DIR_FORWARD ? "-D" : "--direction");
	return 0;
}

// ---------------------------------------------------------------- ESP, cases, rates

static int
check_case(const struct args *a, uint32_t i, struct err *err)
{
	const struct bench_case *c = &a->cases[i];

	if (c->file != NULL && a->esp_side == 0)
		return USAGE(err, "--case %s: esp= wants -f and --esp too, for the side", c->name);
	if (c->has_encap && a->esp_side != 0)
		return USAGE(err, "--case %s: encap= is known from the ESP file; leave it out",
			     c->name);
	for (uint32_t k = 0; k < i; k++)
		if (strcmp(c->name, a->cases[k].name) == 0)
			return USAGE(err, "--case %s is there twice; give each a name of its own",
				     c->name);
	return 0;
}

static int
check_esp(const struct args *a, struct err *err)
{
	if (a->esp_file != NULL && a->esp_side == 0)
		return USAGE(err,
			     "-f without --esp; add --esp t or --esp r, the port that carries ESP");
	if (a->esp_file == NULL && a->esp_side != 0)
		return USAGE(
			err,
			"--esp without -f; add -f FILE, sgw.yaml(5) of the gateway that is played");
	if (a->esp_side != 0 && a->has_encap)
		return USAGE(err, "--encap is known from -f; leave it out");
	for (uint32_t i = 0; i < a->n_cases; i++)
		if (check_case(a, i, err) != 0)
			return -EINVAL;
	return 0;
}

static int
check_rate(const struct args *a, struct err *err)
{
	bool wanted =
		a->command == CMD_TRIAL || a->command == CMD_SOAK || a->command == CMD_RECOVERY;

	if (wanted && !a->has_rate)
		return USAGE(err, "%s wants a rate; add --rate MBPS, or --rate 90%%",
			     command_names[a->command]);
	// With -p the link's kpps are those of the smallest frames, which says nothing of others.
	if (a->has_rate && !a->rate_percent && !a->pps_mode && a->rate > a->link)
		return USAGE(err,
			     "--rate %g is more than the link's -l %g Mb/s; lower it, or raise -l",
			     a->rate, a->link);
	if (a->command == CMD_SOAK && a->interval > a->seconds)
		return USAGE(err,
			     "--interval %g is longer than --time %g; no line would be printed",
			     a->interval, a->seconds);
	return 0;
}

// What a sweep or latency uses depends on what else is given.
static int
check_search(const struct parse *p, struct err *err)
{
	const struct args *a = p->a;
	enum command search = a->command == CMD_SWEEP ? a->sweep : a->command;

	if (a->command == CMD_SWEEP && search != CMD_EQUILIBRIUM && args_given(p, "-o"))
		return USAGE(err, "-o means nothing to a sweep of %s; leave it out",
			     command_names[search]);
	if (a->command == CMD_SWEEP && search != CMD_PDR && args_given(p, "--loss-ratio"))
		return USAGE(err,
			     "--loss-ratio wants --sweep-command pdr; add it, or leave this out");
	if (a->command == CMD_SWEEP && search == CMD_EQUILIBRIUM && args_given(p, "--width"))
		return USAGE(err, "--width means nothing to a sweep of equilibrium; leave it out");
	if (a->command == CMD_LATENCY && a->has_rate &&
	    (args_given(p, "--width") || args_given(p, "--repeat")))
		return USAGE(err, "latency does not search when it has a --rate; leave --%s out",
			     args_given(p, "--width") ? "width" : "repeat");
	if (search == CMD_EQUILIBRIUM && a->link != (uint32_t)a->link)
		return USAGE(err, "-l %g: equilibrium counts in whole %s; round it", a->link,
			     a->pps_mode ? "kpps" : "Mb/s");
	return 0;
}

static int
check_files(const struct args *a, struct err *err)
{
	if (a->command == CMD_CALIBRATE && a->output == NULL)
		return USAGE(err, "calibrate writes a file; add --output FILE");
	if (a->html != NULL && a->json == NULL)
		return USAGE(err, "--html is made from --json; add --json FILE");
	if (a->command != CMD_REPORT)
		return 0;
	if (a->files[0] == NULL)
		return USAGE(
			err,
			"no result; write `sgw-bench report RESULT.json [BEFORE.json] -o FILE.html`");
	return a->output != NULL ? 0 : USAGE(err, "report writes a page; add -o FILE.html");
}

void
args_other(const struct args *a, struct args *six)
{
	*six = *a;
	six->family = 6;
	range_parse(lab_addresses[1][0], &six->src);
	range_parse(lab_addresses[1][1], &six->dst);
	six->sport = a->sport == 2001 ? 2000 : a->sport;
	six->dport = a->dport == 2001 ? 2000 : a->dport;
	if (a->flows > 2000) // all that these addresses make
		six->flows = 0;
	if (a->by_payload) {
		six->mixes[0].l3[0] += 20;
		snprintf(six->mixes[0].name, sizeof(six->mixes[0].name), "%u",
			 six->mixes[0].l3[0] + 18);
	}
}

int
args_check(struct parse *p, struct err *err)
{
	fill_defaults(p);
	if (p->a->command == CMD_CEILING || p->a->command == CMD_REPORT)
		return check_files(p->a, err);
	return check_ports(p->a, err) || check_esp(p->a, err) || check_flows(p->a, err) ||
			       check_sizes(p, err) || check_rate(p->a, err) ||
			       check_search(p, err) || check_files(p->a, err) ?
		       -EINVAL :
		       0;
}
