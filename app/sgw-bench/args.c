/* SPDX-License-Identifier: BSD-3-Clause */
#include "args_value.h"

#include "text.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BIT(command) (1u << CMD_##command)

// Which commands an option means something to.
enum use {
	USE_ALL = (1u << CMD_CEILING) - 1, // all that send
	USE_EQUILIBRIUM = BIT(EQUILIBRIUM) | BIT(SWEEP),
	USE_PDR = BIT(PDR) | BIT(SWEEP),
	USE_MLR = BIT(NDR) | BIT(PDR) | BIT(LATENCY) | BIT(SWEEP) | BIT(CALIBRATE),
	USE_RATE = BIT(LOSS) | BIT(TRIAL) | BIT(SOAK) | BIT(LATENCY) | BIT(RECOVERY),
	USE_SOAK = BIT(SOAK),
	USE_SWEEP = BIT(SWEEP),
	USE_SIZES = BIT(SWEEP) | BIT(CALIBRATE),
	USE_WAY = USE_ALL & ~USE_SIZES,
	USE_TIME = USE_ALL & ~(BIT(BACK_TO_BACK) | BIT(RECOVERY)),
	USE_REPEAT = USE_ALL & ~(BIT(LOSS) | BIT(SOAK) | BIT(RECOVERY)),
	USE_LINK = USE_ALL | BIT(CEILING),
	USE_OUTPUT = BIT(CALIBRATE) | BIT(REPORT),
};

enum kind {
	FLAG,   // bool
	TEXT,   // const char *
	NUMBER, // double, least to most
	WHOLE,  // uint32_t
	SHORT,  // uint16_t
	MAC,    // struct mac
	OTHER,  // by parse_other()
	NONE,   // OTHER, and no value behind it
};

struct option {
	const char *name;
	enum kind kind;
	unsigned int use;
	size_t at; // in struct args
	double least, most;
	const char *wants;
};

#define AT(field) offsetof(struct args, field)

static const struct option options[] = {
	{"-t", TEXT, USE_ALL, AT(tx_port), 0, 0, "a port"},
	{"-r", TEXT, USE_ALL, AT(rx_port), 0, 0, "a port"},
	{"-d", MAC, USE_ALL, AT(dut), 0, 0, "a MAC address of one station"},
	{"-D", MAC, USE_ALL, AT(dut2), 0, 0, "a MAC address of one station"},
	{"--direction", OTHER, USE_WAY, 0, 0, 0, "forward, reverse or both"},
	{"--vlan-t", SHORT, USE_ALL, AT(vlan_t), 1, 4094, "a tag from 1 to 4094"},
	{"--vlan-r", SHORT, USE_ALL, AT(vlan_r), 1, 4094, "a tag from 1 to 4094"},
	{"--mtu", SHORT, USE_ALL, AT(mtu), 576, 9582, "bytes from 576 to 9582"},
	{"-4", NONE, USE_ALL, 0, 0, 0, ""},
	{"-6", NONE, USE_ALL, 0, 0, 0, ""},
	{"-s", OTHER, USE_ALL, 0, 0, 0, "bytes of UDP payload from 0 to 9534"},
	{"--size", OTHER, USE_ALL, 0, 0, 0,
	 "bytes of a frame with FCS from 64 to 16000, imix, or genome:LETTERS (RFC 6985)"},
	{"--sizes", OTHER, USE_SIZES, 0, 0, 0, "1 to 16 sizes as of --size, with commas between"},
	{"--src", OTHER, USE_ALL, 0, 0, 0, "an address, a prefix, or FIRST-LAST"},
	{"--dst", OTHER, USE_ALL, 0, 0, 0, "an address, a prefix, or FIRST-LAST"},
	{"--flows", WHOLE, USE_ALL, AT(flows), 1, 1000000, "a number from 1 to 1000000"},
	{"--sport", SHORT, USE_ALL, AT(sport), 1, 65535, "a UDP port from 1 to 65535"},
	{"--dport", SHORT, USE_ALL, AT(dport), 1, 65535, "a UDP port from 1 to 65535"},
	{"-u", FLAG, USE_ALL, AT(checksum), 0, 0, ""},
	{"-f", TEXT, USE_ALL, AT(esp_file), 0, 0, "a file"},
	{"--esp", OTHER, USE_ALL, 0, 0, 0, "t or r"},
	{"-l", NUMBER, USE_LINK, AT(link), 4, 1e6, "a rate from 4 to 1000000"},
	{"-p", FLAG, USE_ALL, AT(pps_mode), 0, 0, ""},
	{"--rate", OTHER, USE_RATE, 0, 0, 0,
	 "Mb/s (with -p kpps) above 0, or per cent of the ceiling up to 100%"},
	{"--loss-ratio", NUMBER, USE_PDR, AT(loss_ratio), 1e-9, 0.5,
	 "a fraction above 0, up to 0.5"},
	{"--width", NUMBER, USE_MLR, AT(width), 0.0001, 0.5, "a fraction from 0.0001 to 0.5"},
	{"--time", NUMBER, USE_TIME, AT(seconds), 0.05, 864000, "seconds from 0.05 to 864000"},
	{"--warm-up", NUMBER, USE_ALL, AT(warm_up), 0, 3600, "seconds from 0 to 3600"},
	{"--settle", NUMBER, USE_ALL, AT(settle), 0, 60, "seconds from 0 to 60"},
	{"--link-wait", NUMBER, USE_ALL, AT(link_wait), 0, 600, "seconds from 0 to 600"},
	{"--interval", NUMBER, USE_SOAK, AT(interval), 0.1, 86400, "seconds from 0.1 to 86400"},
	{"--repeat", WHOLE, USE_REPEAT, AT(repeats), 1, 32, "a number from 1 to 32"},
	{"--quick", FLAG, USE_ALL, AT(quick), 0, 0, ""},
	{"--shared-cores", FLAG, USE_ALL, AT(shared_cores), 0, 0, ""},
	{"--name", TEXT, USE_ALL, AT(name), 1, 63, "a text of 1 to 63 bytes"},
	{"--encap", OTHER, USE_ALL, 0, 0, 0,
	 "clear or an algorithm of sgw.yaml(5) and words: \"aes-gcm-16 v6 natt\""},
	{"--reference", TEXT, USE_ALL, AT(reference), 0, 0, "a file"},
	{"--json", TEXT, USE_ALL, AT(json), 0, 0, "a file"},
	{"--html", TEXT, USE_ALL, AT(html), 0, 0, "a file"},
	{"--output", TEXT, USE_OUTPUT, AT(output), 0, 0, "a file"},
	{"--watts", TEXT, USE_ALL, AT(watts), 0, 0, "a number, a file, or !COMMAND"},
	{"--dut-cpu", TEXT, USE_ALL, AT(dut_cpu), 0, 0, "a number, a file, or !COMMAND"},
	{"--case", OTHER, USE_SWEEP, 0, 0, 0,
	 "NAME[,esp=FILE][,encap=ENCAP][,do=COMMAND], 255 bytes at most before the command"},
	{"--sweep-command", OTHER, USE_SWEEP, 0, 0, 0, "equilibrium, ndr or pdr"},
	{"-o", NUMBER, USE_EQUILIBRIUM, AT(tolerance), 0.0001, 0.5,
	 "a fraction from 0.0001 to 0.5"},
};
#define N_OPTIONS (sizeof(options) / sizeof(options[0]))
_Static_assert(N_OPTIONS <= 64, "struct parse has a bit for each");

static const struct option *
option_find(const char *name)
{
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}

bool
args_given(const struct parse *p, const char *name)
{
	return p->given >> (option_find(name) - options) & 1;
}

int
args_bad(const char *name, const char *value, struct err *err)
{
	return USAGE(err, "%s wants %s, not \"%.80s\"", name, option_find(name)->wants, value);
}

// ---------------------------------------------------------------- values

// Digits and a point: no sign, exponent, hex, nan, or leading zero that could mean octal.
static bool
number(const char *text, double least, double most, double *out)
{
	size_t n = strspn(text, "0123456789.");
	char *end;

	if (text[n] != '\0' || !isdigit((unsigned char)text[0]) ||
	    (text[0] == '0' && isdigit((unsigned char)text[1])))
		return false;
	*out = strtod(text, &end);
	return *end == '\0' && *out >= least && *out <= most;
}

static bool
parse_rate(struct args *a, const char *text)
{
	char copy[32];
	size_t n = strlen(text);

	if (n == 0 || n >= sizeof(copy))
		return false;
	memcpy(copy, text, n + 1);
	a->rate_percent = copy[n - 1] == '%';
	if (a->rate_percent)
		copy[n - 1] = '\0';
	a->has_rate = true;
	return number(copy, 1e-6, a->rate_percent ? 100 : 1e6, &a->rate);
}

// @return the number of the word, n when it is none of them
static unsigned int
one_of(const char *text, const char *const *words, unsigned int n)
{
	unsigned int i = 0;

	while (i < n && strcmp(text, words[i]) != 0)
		i++;
	return i;
}

static bool
parse_traffic(struct parse *p, const char *name, const char *value)
{
	static const char *const ways[] = {"forward", "reverse", "both"};
	struct args *a = p->a;

	if (strcmp(name, "--direction") == 0)
		return (a->direction = (enum direction)one_of(value, ways, 3)) <= DIR_BOTH;
	if (strcmp(name, "--src") == 0)
		return a->has_src = true, range_parse(value, &a->src) == 0;
	if (strcmp(name, "--dst") == 0)
		return a->has_dst = true, range_parse(value, &a->dst) == 0;
	// Which packets a size gives is known when family and MTU are.
	if (strcmp(name, "-s") == 0)
		p->payload = value;
	else if (strcmp(name, "--size") == 0)
		p->size = value;
	else
		p->sizes = value;
	return true;
}

static bool
parse_other(struct parse *p, const char *name, const char *value)
{
	struct args *a = p->a;

	if (strcmp(name, "--rate") == 0)
		return parse_rate(a, value);
	if (strcmp(name, "--encap") == 0)
		return a->has_encap = true, args_encap(value, &a->encap) == 0;
	if (strcmp(name, "--sweep-command") == 0)
		return (a->sweep = (enum command)one_of(value, command_names, CMD_PDR + 1)) <=
		       CMD_PDR;
	if (strcmp(name, "--case") == 0)
		return args_case(value, &a->cases[a->n_cases++]) == 0;
	if (strcmp(name, "--esp") == 0)
		return a->esp_side = value[0], strcmp(value, "t") == 0 || strcmp(value, "r") == 0;
	return parse_traffic(p, name, value);
}

// The NULL value of a flag is not looked at. @return false: not what the option wants
static bool
store(struct parse *p, const struct option *o, const char *value)
{
	char *to = (char *)p->a + o->at;
	uint64_t n = 0;

	if ((o->kind == WHOLE || o->kind == SHORT) &&
	    (text_u64(value, &n) != 0 || (double)n < o->least || (double)n > o->most))
		return false;
	switch (o->kind) {
	case FLAG:
		*(bool *)to = true;
		return true;
	case TEXT:
		*(const char **)(void *)to = value;
		return value[0] != '\0' && (o->most == 0 || (double)strlen(value) <= o->most);
	case NUMBER:
		return number(value, o->least, o->most, (double *)(void *)to);
	case WHOLE:
		*(uint32_t *)(void *)to = (uint32_t)n;
		return true;
	case SHORT:
		*(uint16_t *)(void *)to = (uint16_t)n;
		return true;
	case MAC:
		*(o->at == AT(dut) ? &p->a->has_dut : &p->a->has_dut2) = true;
		return mac_parse(value, (struct mac *)to) == 0 && (to[0] & 1) == 0 &&
		       memcmp(to, &(struct mac){{0}}, sizeof(struct mac)) != 0;
	case NONE:
		p->a->both = p->a->family != 0;
		p->a->family = p->a->both ? 4 : (uint8_t)(o->name[1] - '0');
		return true;
	case OTHER:
		break;
	}
	return parse_other(p, o->name, value);
}

// ---------------------------------------------------------------- the line

// May the option stand here? @param written  as the user wrote it
static int
check_option(const struct parse *p, const struct option *o, const char *written, struct err *err)
{
	const struct args *a = p->a;

	if (o == NULL)
		return USAGE(
			err,
			"\"%.80s\" is not an option of sgw-bench; `sgw-bench --help` lists them "
			"(EAL options stand before --)",
			written);
	if (!(o->use & 1u << a->command))
		return USAGE(err, "%s means nothing to %s; leave it out", o->name,
			     command_names[a->command]);
	if (strcmp(o->name, "--case") == 0) {
		if (a->n_cases == CASES_MAX)
			return USAGE(err, "--case is given more than %d times; make two sweeps",
				     CASES_MAX);
	} else if (args_given(p, o->name)) {
		return USAGE(err, "%s is given twice; leave one out", o->name);
	}
	if (o->kind == NONE && a->family != 0 && a->command != CMD_SWEEP &&
	    a->command != CMD_CALIBRATE)
		return USAGE(err, "-4 and -6 are both given; run one after the other");
	return 0;
}

// @param i  of the option; when it returns, of its value
static int
parse_option(struct parse *p, int argc, char **argv, int *i, struct err *err)
{
	const char *written = argv[*i], *value = NULL;
	const struct option *o;

	if (strcmp(written, "-o") == 0 && (USE_OUTPUT & 1u << p->a->command))
		o = option_find("--output"); // elsewhere it is equilibrium's tolerance
	else
		o = option_find(written);
	if (check_option(p, o, written, err) != 0)
		return -EINVAL;
	p->given |= UINT64_C(1) << (o - options);
	if (o->kind != FLAG && o->kind != NONE) {
		if (*i + 1 >= argc || option_find(argv[*i + 1]) != NULL)
			return USAGE(err, "%s wants %s behind it", written, o->wants);
		value = argv[++*i];
	}
	return store(p, o, value) ? 0 : args_bad(o->name, value, err);
}

static int
parse_file(struct args *a, const char *name, struct err *err)
{
	int n = a->files[0] == NULL ? 0 : a->files[1] == NULL ? 1 : 2;

	if (n == 2)
		return USAGE(
			err,
			"\"%.80s\" is one result too many; report takes one, or the new one and "
			"the one before",
			name);
	a->files[n] = name;
	return 0;
}

static int
parse_own(int argc, char **argv, struct args *a, struct err *err)
{
	struct parse p = {.a = a};
	int rc = 0;

	if (argc == 0)
		return USAGE(err, "no command behind --; `sgw-bench --help` lists them");
	if (strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "--help") == 0)
		return a->help = true, 0;
	if (strcmp(argv[0], "-V") == 0 || strcmp(argv[0], "--version") == 0)
		return a->version = true, 0;
	a->command = (enum command)one_of(argv[0], command_names, CMD_COUNT);
	if (a->command == CMD_COUNT)
		return USAGE(
			err,
			"\"%.80s\" is not a command of sgw-bench; `sgw-bench --help` lists them",
			argv[0]);
	for (int i = 1; i < argc && rc == 0; i++) {
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
			return a->help = true, 0;
		if (strcmp(argv[i], "-V") == 0 || strcmp(argv[i], "--version") == 0)
			return a->version = true, 0;
		if (a->command == CMD_REPORT && argv[i][0] != '-')
			rc = parse_file(a, argv[i], err);
		else
			rc = parse_option(&p, argc, argv, &i, err);
	}
	return rc != 0 ? rc : args_check(&p, err);
}

int
args_parse(int argc, char **argv, struct args *a, struct err *err)
{
	int split = 1;

	*a = (struct args){
		.eal_argv = argv,
		.mtu = 1500,
		.tolerance = 0.01,
		.loss_ratio = 0.005,
		.width = 0.005,
		.seconds = 30,
		.warm_up = 2,
		.settle = 1,
		.link_wait = 10,
		.interval = 10,
		.repeats = 1,
		.sweep = CMD_NDR,
	};
	// These two need no EAL, so no dashes either.
	if (argc > 1 && (strcmp(argv[1], command_names[CMD_CEILING]) == 0 ||
			 strcmp(argv[1], command_names[CMD_REPORT]) == 0)) {
		a->eal_argc = 1;
		return parse_own(argc - 1, argv + 1, a, err);
	}
	while (split < argc && strcmp(argv[split], "--") != 0) {
		// These two are asked for without thinking of EAL.
		if (strcmp(argv[split], "--help") == 0 || strcmp(argv[split], "-h") == 0)
			a->help = true;
		if (strcmp(argv[split], "--version") == 0 || strcmp(argv[split], "-V") == 0)
			a->version = true;
		split++;
	}
	a->eal_argc = split;
	if (a->help || a->version)
		return 0;
	if (split >= argc)
		return USAGE(err,
			     "no `--`; write `sgw-bench [EAL options] -- COMMAND [options]`, or "
			     "`sgw-bench --help`");
	return parse_own(argc - split - 1, argv + split + 1, a, err);
}
