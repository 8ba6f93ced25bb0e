/* SPDX-License-Identifier: BSD-3-Clause */
// The command line of sgw-bench: what is taken, with the defaults of the lab (lab addresses,
// 500 bytes of payload being 528 of IP: the lab's tool prints so), RFC 6985's letters as its
// table has them; what is refused, and that the message names option, fault and remedy; that no
// vector of arguments crashes it or leaves an error without a text.
#include "args.h"
#include "args_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ARGC_MAX 128
#define BASE "-t 0000:02:00.0 -r 0000:03:00.0 -d 00:08:a2:09:33:da "

static struct args args; // large
static char words[4096];

// Words are parted by a space; inside of one, ~ stands for a space and _ alone for nothing.
static int
parse(const char *line, struct err *err)
{
	static char *argv[ARGC_MAX + 1];
	char *rest = words, *word;
	int argc = 0;

	snprintf(words, sizeof(words), "%s", line);
	while (argc < ARGC_MAX && (word = strsep(&rest, " ")) != NULL) {
		if (word[0] == '\0')
			continue;
		for (char *c = word; *c != '\0'; c++)
			*c = *c == '~' ? ' ' : *c;
		argv[argc++] = strcmp(word, "_") == 0 ? word + 1 : word;
	}
	argv[argc] = NULL;
	*err = (struct err){0};
	return args_parse(argc, argv, &args, err);
}

// What stands behind `sgw-bench -- `.
static void
good(const char *line)
{
	char whole[4096];
	struct err err;

	snprintf(whole, sizeof(whole), "sgw-bench -l 0-2 -- %s", line);
	if (parse(whole, &err) != 0)
		fail_msg("%s: %s", whole, err.text);
	if (args.eal_argc != 3 || strcmp(args.eal_argv[2], "0-2") != 0)
		fail_msg("%s: EAL gets %d words", whole, args.eal_argc);
}

static void
addresses_are(const struct range *r, const char *first, const char *last)
{
	char text[ADDR_STRLEN];

	assert_string_equal(addr_format(&r->first, text), first);
	assert_string_equal(addr_format(&r->last, text), last);
}

// ---------------------------------------------------------------- what is taken

static void
lab_defaults(void **state)
{
	good("equilibrium -u -4 " BASE);
	assert_int_equal(args.command, CMD_EQUILIBRIUM);
	assert_string_equal(args.tx_port, "0000:02:00.0");
	assert_string_equal(args.rx_port, "0000:03:00.0");
	assert_memory_equal(args.dut.b, "\x00\x08\xa2\x09\x33\xda", 6);
	assert_true(args.has_dut && !args.has_dut2 && args.checksum && !args.pps_mode);
	assert_true(args.link == 1000 && args.tolerance == 0.01 && args.seconds == 30);
	assert_int_equal(args.family, 4);
	assert_int_equal(args.mtu, 1500);
	assert_int_equal(args.n_mixes, 1);
	assert_int_equal(args.mixes[0].l3[0], 528);
	assert_string_equal(args.mixes[0].name, "546");
	addresses_are(&args.src, "198.18.10.1", "198.18.10.71");
	addresses_are(&args.dst, "198.19.10.1", "198.19.10.70");
	assert_int_equal(args.sport, 2001);
	assert_int_equal(args.dport, 2001);
	assert_true(args.loss_ratio == 0.005 && args.width == 0.005 && args.repeats == 1);
	assert_int_equal(args.direction, DIR_FORWARD);
	assert_true(args.warm_up == 2 && args.settle == 1 && args.link_wait == 10);
	assert_int_equal(args.esp_side, 0);
	good("equilibrium -p -6 -s 0 " BASE);
	assert_true(args.link == 1488 && args.pps_mode);
	addresses_are(&args.src, "2001:2:0:10::1", "2001:2:0:10::14");
	addresses_are(&args.dst, "2001:2:0:8010::1", "2001:2:0:8010::64");
	assert_int_equal(args.sport, 2000);
	assert_int_equal(args.dport, 2000);
	assert_int_equal(args.mixes[0].l3[0], 48);
}

static void
every_option_lands(void **state)
{
	good("ndr " BASE "-D 00:08:a2:09:33:db --direction both --vlan-t 7 --vlan-r 8 --mtu 9000 -6 "
	     "--size 9018 --src 2001:2::1-2001:2::3 --dst 2001:2:0:8000::/126 --flows 12 --sport 1 "
	     "--dport 65535 -f x.yaml --esp r -l 10000 --width 0.01 --time 0.5 --warm-up 0 "
	     "--settle 0.25 --link-wait 3 --repeat 32 --shared-cores --name a~b --reference c.json "
	     "--json j --html h --watts !meter~1 --dut-cpu 40");
	assert_memory_equal(args.dut2.b, "\x00\x08\xa2\x09\x33\xdb", 6);
	assert_int_equal(args.direction, DIR_BOTH);
	assert_int_equal(args.vlan_t, 7);
	assert_int_equal(args.vlan_r, 8);
	assert_int_equal(args.mtu, 9000);
	assert_int_equal(args.mixes[0].l3[0], 9000);
	addresses_are(&args.src, "2001:2::1", "2001:2::3");
	addresses_are(&args.dst, "2001:2:0:8000::", "2001:2:0:8000::3");
	assert_int_equal(args.flows, 12);
	assert_int_equal(args.sport, 1);
	assert_int_equal(args.dport, 65535);
	assert_string_equal(args.esp_file, "x.yaml");
	assert_int_equal(args.esp_side, 'r');
	assert_true(args.link == 10000 && args.width == 0.01 && args.seconds == 0.5);
	assert_true(args.warm_up == 0 && args.settle == 0.25 && args.link_wait == 3);
	assert_int_equal(args.repeats, 32);
	assert_true(args.shared_cores && !args.quick);
	assert_string_equal(args.name, "a b");
	assert_string_equal(args.reference, "c.json");
	assert_string_equal(args.json, "j");
	assert_string_equal(args.html, "h");
	assert_string_equal(args.watts, "!meter 1");
	assert_string_equal(args.dut_cpu, "40");
}

static void
each_command(void **state)
{
	good("trial --rate 90% " BASE);
	assert_true(args.has_rate && args.rate_percent && args.rate == 90);
	good("soak --rate 871.4 --time 3600 --interval 60 " BASE);
	assert_true(!args.rate_percent && args.rate == 871.4 && args.interval == 60);
	good("recovery -p --rate 1600 -s 18 " BASE); // kpps are not held against -l
	good("loss " BASE);
	assert_false(args.has_rate);
	good("latency " BASE);
	good("back-to-back --repeat 5 " BASE);
	good("pdr --loss-ratio 0.001 --quick " BASE);
	assert_true(args.loss_ratio == 0.001 && args.seconds == 2 && args.width == 0.02);
	assert_true(args.warm_up == 0.5 && args.repeats == 1);
	good("ndr --quick --time 10 --width 0.1 --warm-up 0 " BASE); // what is said is kept
	assert_true(args.seconds == 10 && args.width == 0.1 && args.warm_up == 0);
	good("calibrate --sizes 64,imix,genome:az -o cal.json " BASE);
	assert_int_equal(args.n_mixes, 3);
	assert_string_equal(args.output, "cal.json");
	assert_int_equal(args.mixes[0].l3[0], 46);
	assert_int_equal(args.mixes[2].l3[1], 1500);
	good("ndr --direction reverse -D 00:08:a2:09:33:db -t a -r b"); // no -d
	assert_false(args.has_dut);
	good("ndr --src 10.0.0.0/8 --flows 1000000 " BASE); // 2^24 addresses
	good("ndr --src 10.0.0.0/16 --dst 11.0.0.1-11.0.0.15 " BASE); // 983,040 flows
}

static void
sweep_cases(void **state)
{
	good("sweep " BASE "-f a.yaml --esp t --case gcm,esp=g.yaml,do=ssh~dut~x,y --case cbc "
	     "--sweep-command equilibrium -o 0.02");
	assert_int_equal(args.n_cases, 2);
	assert_string_equal(args.cases[0].name, "gcm");
	assert_string_equal(args.cases[0].file, "g.yaml");
	assert_string_equal(args.cases[0].command, "ssh dut x,y");
	assert_false(args.cases[0].has_encap);
	assert_string_equal(args.cases[1].name, "cbc");
	assert_null(args.cases[1].file);
	assert_null(args.cases[1].command);
	assert_int_equal(args.sweep, CMD_EQUILIBRIUM);
	assert_true(args.tolerance == 0.02);
	// the record of a run has the words as they were given
	assert_string_equal(args.eal_argv[16], "gcm,esp=g.yaml,do=ssh dut x,y");
	good("sweep " BASE "--case a,encap=aes-gcm-16~v6~natt");
	assert_true(args.cases[0].has_encap && args.cases[0].encap.natt);
	assert_int_equal(args.sweep, CMD_NDR);
}

static void
without_eal(void **state)
{
	struct err err;

	assert_int_equal(parse("sgw-bench ceiling -l 10000", &err), 0);
	assert_true(args.command == CMD_CEILING && args.link == 10000 && args.eal_argc == 1);
	assert_int_equal(parse("sgw-bench ceiling", &err), 0);
	assert_true(args.link == 1000);
	assert_int_equal(parse("sgw-bench report a.json -o a.html", &err), 0);
	assert_string_equal(args.files[0], "a.json");
	assert_null(args.files[1]);
	assert_string_equal(args.output, "a.html");
	assert_int_equal(parse("sgw-bench -l 0 -- report a --output h b", &err), 0);
	assert_string_equal(args.files[1], "b");
	assert_int_equal(parse("sgw-bench --help", &err), 0);
	assert_true(args.help);
	assert_int_equal(parse("sgw-bench -- -V", &err), 0);
	assert_true(args.version);
	assert_int_equal(parse("sgw-bench -- ndr -h", &err), 0);
	assert_true(args.help);
	assert_int_equal(parse("sgw-bench report --help", &err), 0);
	assert_true(args.help);
}

// RFC 6985 section 4; IMIX 7:4:1 averages 353.8 bytes (lab.md).
static void
sizes(void **state)
{
	static const char letters[] = "abcdefghij";
	static const uint32_t frames[] = {64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000, 16000};
	struct size_mix m;
	double sum = 0, all = 0;

	for (size_t i = 0; i < COUNT(frames); i++) {
		char text[] = {'g', 'e', 'n', 'o', 'm', 'e', ':', letters[i], '\0'};

		assert_int_equal(args_size(text, 1500, &m), 0);
		assert_int_equal(m.n, 1);
		assert_int_equal(m.l3[0] + 18, frames[i]);
	}
	assert_int_equal(args_size("genome:aaafgz", 1400, &m), 0);
	assert_int_equal(m.n, 4);
	assert_int_equal(m.weight[0], 3);
	assert_int_equal(m.weight[1], 1);
	assert_int_equal(m.l3[3] + 18, 1418);
	assert_int_equal(args_size("imix", 1500, &m), 0);
	for (uint32_t i = 0; i < m.n; i++) {
		sum += m.weight[i] * (m.l3[i] + 18.0);
		all += m.weight[i];
	}
	assert_true(all == 12);
	assert_int_equal((int)(sum / all * 10 + 0.5), 3538);
	assert_int_equal(args_size("1518", 1500, &m), 0);
	assert_int_equal(m.l3[0], 1500);
	for (const char *const *bad = (const char *const[]){"63", "16001", "genome:", "genome:k",
	     "genome:A", "IMIX", "", "64 ", "064", "-64", NULL}; *bad != NULL; bad++)
		assert_int_equal(args_size(*bad, 1500, &m), -EINVAL);
}

static void
encaps(void **state)
{
	static const struct {
		int number;
		const char *text;
		bool good;
		struct encap e;
	} cases[] = {
		{1, "clear", true, {.family = 4}},
		{2, "aes-gcm-16", true, {.cipher = ALG_AES_GCM_16, .family = 4}},
		{3, "aes-gcm-16 v6 natt", true, {.cipher = ALG_AES_GCM_16, .family = 6, .natt = true}},
		{4, "aes-cbc+hmac-sha1-96 transport", true,
		 {.cipher = ALG_AES_CBC, .auth = ALG_HMAC_SHA1_96, .family = 4, .transport = true}},
		{5, "chacha20-poly1305 v4", true, {.cipher = ALG_CHACHA20_POLY1305, .family = 4}},
		{6, "aes-cbc", false, {0}},
		{7, "aes-gcm-16+hmac-sha1-96", false, {0}},
		{8, "hmac-sha1-96", false, {0}},
		{9, "aes-cbc+aes-cbc", false, {0}},
		{10, "aes-gcm-16 v4 v6", false, {0}},
		{11, "clear natt", false, {0}},
		{12, "aes-gcm-16  v6", false, {0}},
		{13, "", false, {0}},
		{14, "aes-gcm-16 esn", false, {0}},
		{15, "clear+hmac-sha1-96", false, {0}},
		{16, "aes-cbc+", false, {0}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct encap *w = &cases[i].e;
		struct encap e;

		if ((args_encap(cases[i].text, &e) == 0) != cases[i].good)
			fail_msg("case %d: %s", cases[i].number, cases[i].text);
		if (cases[i].good && (e.cipher != w->cipher || e.auth != w->auth || e.natt != w->natt ||
				      e.family != w->family || e.transport != w->transport))
			fail_msg("case %d: %s is something else", cases[i].number, cases[i].text);
	}
}

// ---------------------------------------------------------------- what is refused

static const struct {
	int number;
	const char *line; // behind "sgw-bench "
	const char *says; // part of the message
} refused[] = {
	{1, "", "no `--`; write"},
	{2, "ndr " BASE, "no `--`; write"},
	{3, "--", "no command behind --"},
	{4, "-- throughput", "\"throughput\" is not a command"},
	{5, "-- ndr", "no port to send from; add -t PORT"},
	{6, "-- ndr -t a", "no port to receive on; add -r PORT"},
	{7, "-- ndr -t a -r b", "add -d MAC"},
	{8, "-- ndr -t", "-t wants a port behind it"},
	{9, "-- ndr -t -r b", "-t wants a port behind it"},
	{10, "-- ndr -t _", "-t wants a port, not \"\""},
	{11, "-- ndr -t a -t b", "-t is given twice"},
	{12, "-- ndr --bogus", "\"--bogus\" is not an option"},
	{13, "-- ndr --time=3", "\"--time=3\" is not an option"},
	{14, "-- ndr x.json", "\"x.json\" is not an option"},
	{15, "-- ndr -d 00:08:a2:09:33", "-d wants a MAC address"},
	{16, "-- ndr -d ff:ff:ff:ff:ff:ff", "-d wants a MAC address"},
	{17, "-- ndr -d 00:00:00:00:00:00", "-d wants a MAC address"},
	{18, "-- ndr -D 01:00:5e:00:00:01", "-D wants a MAC address"},
	{19, "-- ndr " BASE "--direction back", "--direction wants forward, reverse or both, not \"back\""},
	{20, "-- ndr " BASE "--direction both", "add -D MAC"},
	{21, "-- ndr " BASE "--direction reverse", "add -D MAC"},
	{22, "-- ndr -t a -r a -d 2:0:0:0:0:1", "-d wants a MAC"},
	{23, "-- ndr -t a -r a -d 02:00:00:00:00:01 -D 02:00:00:00:00:02 --direction both", "are one port"},
	{24, "-- sweep -t a -r a -d 02:00:00:00:00:01 -D 02:00:00:00:00:02", "leave -D out"},
	{25, "-- sweep --direction both", "--direction means nothing to sweep"},
	{26, "-- ndr --vlan-t 0", "--vlan-t wants a tag from 1 to 4094, not \"0\""},
	{27, "-- ndr --vlan-r 4095", "--vlan-r wants a tag from 1 to 4094"},
	{28, "-- ndr --mtu 575", "--mtu wants bytes from 576 to 9582"},
	{29, "-- ndr --mtu 9583", "--mtu wants bytes from 576 to 9582"},
	{30, "-- ndr --mtu 01500", "not \"01500\""},
	{31, "-- ndr -4 -6", "-4 and -6 are both given"},
	{32, "-- ndr -4 -4", "-4 is given twice"},
	{33, "-- ndr " BASE "-s 500 --size 64", "give one of them"},
	{34, "-- ndr " BASE "-s x", "-s wants bytes of UDP payload"},
	{35, "-- ndr " BASE "-s 1473", "IP packets of 1501 bytes, more than --mtu 1500"},
	{36, "-- ndr " BASE "-s 9535", "-s wants bytes of UDP payload from 0 to 9534"},
	{37, "-- ndr " BASE "--size 63", "--size wants bytes of a frame with FCS from 64"},
	{38, "-- ndr " BASE "--size 1519", "more than --mtu 1500"},
	{39, "-- ndr " BASE "--size 64 -6", "headers of IPv6 and UDP need 66"},
	{40, "-- ndr " BASE "--size imix -6", "headers of IPv6 and UDP need 66"},
	{41, "-- ndr " BASE "--size genome:j --mtu 9582", "IP packets of 15982 bytes, more than --mtu"},
	{42, "-- ndr " BASE "--size genome:k", "--size wants"},
	{43, "-- ndr " BASE "--size imix -p", "-p counts packets of one size"},
	{44, "-- ndr --sizes 64", "--sizes means nothing to ndr"},
	{45, "-- sweep " BASE "--sizes 64,,128", "--sizes wants 1 to 16 sizes"},
	{46, "-- sweep " BASE "--sizes 64,65,66,67,68,69,70,71,72,73,74,75,76,77,78,79,80",
	 "--sizes wants 1 to 16 sizes"},
	{47, "-- sweep " BASE "--sizes 64,9000", "size 9000 has IP packets of 8982 bytes"},
	{48, "-- ndr --src 198.18.0.300", "--src wants an address"},
	{49, "-- ndr --src 198.18.0.9-198.18.0.1", "--src wants an address"},
	{50, "-- ndr " BASE "--src 2001:2::1", "--src is IPv6 and the traffic IPv4; give -6"},
	{51, "-- ndr -6 " BASE "--dst 198.19.0.1", "--dst is IPv4 and the traffic IPv6; give -4"},
	{52, "-- ndr " BASE "--src 8.0.0.0/7 --flows 10", "--src has more than 16777216 addresses"},
	{53, "-- ndr -6 " BASE "--dst 2001:2::/48 --flows 10", "--dst has more than 16777216 addresses"},
	{54, "-- ndr -6 " BASE "--dst 2001:2::/64 --flows 10", "--dst has more than 16777216 addresses"},
	{55, "-- ndr " BASE "--dst 224.0.0.1", "addresses that no host has"},
	{56, "-- ndr " BASE "--src 10.0.0.0/8", "say with --flows how many"},
	{57, "-- ndr " BASE "--flows 4971", "--flows 4971 is more than --src and --dst make, 4970"},
	{58, "-- ndr --flows 1000001", "--flows wants a number from 1 to 1000000"},
	{59, "-- ndr --flows 0", "--flows wants a number from 1 to 1000000"},
	{60, "-- ndr --sport 0", "--sport wants a UDP port"},
	{61, "-- ndr --dport 65536", "--dport wants a UDP port"},
	{62, "-- ndr " BASE "-f x.yaml", "add --esp t or --esp r"},
	{63, "-- ndr " BASE "--esp t", "--esp without -f"},
	{64, "-- ndr --esp x", "--esp wants t or r, not \"x\""},
	{65, "-- ndr --esp tr", "--esp wants t or r"},
	{66, "-- ndr " BASE "-f x --esp t --encap clear", "--encap is known from -f"},
	{67, "-- ndr --encap aes-cbc", "--encap wants clear or an algorithm"},
	{68, "-- ndr -l 3", "-l wants a rate from 4 to 1000000"},
	{69, "-- ndr -l 1e3", "-l wants a rate"},
	{70, "-- ndr -l nan", "-l wants a rate"},
	{71, "-- ndr -l 0x400", "-l wants a rate"},
	{72, "-- ndr -l -5", "-l wants a rate"},
	{73, "-- ndr -l 1.2.3", "-l wants a rate"},
	{74, "-- equilibrium " BASE "-l 1000.5", "whole Mb/s; round it"},
	{75, "-- ndr --rate 90%", "--rate means nothing to ndr"},
	{76, "-- trial --rate 0", "--rate wants Mb/s"},
	{77, "-- trial --rate 101%", "up to 100%"},
	{78, "-- trial --rate %", "--rate wants Mb/s"},
	{79, "-- trial " BASE, "trial wants a rate; add --rate"},
	{80, "-- soak " BASE, "soak wants a rate"},
	{81, "-- recovery " BASE, "recovery wants a rate"},
	{82, "-- trial " BASE "--rate 1001", "more than the link's -l 1000"},
	{83, "-- ndr --loss-ratio 0.1", "--loss-ratio means nothing to ndr"},
	{84, "-- pdr --loss-ratio 0.6", "--loss-ratio wants a fraction above 0, up to 0.5"},
	{85, "-- pdr --loss-ratio 0", "--loss-ratio wants a fraction above 0"},
	{86, "-- ndr --width 0", "--width wants a fraction from 0.0001 to 0.5"},
	{87, "-- equilibrium --width 0.1", "--width means nothing to equilibrium"},
	{88, "-- ndr --time 0", "--time wants seconds from 0.05"},
	{89, "-- ndr --time 030", "--time wants seconds"},
	{90, "-- recovery --time 3", "--time means nothing to recovery"},
	{91, "-- ndr --interval 1", "--interval means nothing to ndr"},
	{92, "-- soak " BASE "--rate 5 --time 5", "--interval 10 is longer than --time 5"},
	{93, "-- ndr --repeat 33", "--repeat wants a number from 1 to 32"},
	{94, "-- soak --repeat 2", "--repeat means nothing to soak"},
	{95, "-- latency " BASE "--rate 5 --width 0.1", "leave --width out"},
	{96, "-- ndr --quick --quick", "--quick is given twice"},
	{97, "-- ndr " BASE "--html a", "add --json FILE"},
	{98, "-- ndr --output x", "--output means nothing to ndr"},
	{99, "-- ndr -o 0.1", "-o means nothing to ndr"},
	{100, "-- equilibrium -o 1", "-o wants a fraction from 0.0001 to 0.5"},
	{101, "-- calibrate " BASE, "add --output FILE"},
	{102, "-- calibrate -o a --output b", "--output is given twice"},
	{103, "-- sweep --case _", "--case wants NAME"},
	{104, "-- sweep --case a,b", "--case wants NAME"},
	{105, "-- sweep --case a,do=", "--case wants NAME"},
	{106, "-- sweep --case a,encap=rot13", "--case wants NAME"},
	{107, "-- sweep " BASE "--case a --case a", "--case a is there twice"},
	{108, "-- sweep " BASE "--case a,esp=x", "esp= wants -f and --esp too"},
	{109, "-- sweep " BASE "-f x --esp r --case a,encap=clear", "known from the ESP file"},
	{110, "-- sweep --sweep-command loss", "--sweep-command wants equilibrium, ndr or pdr"},
	{111, "-- sweep " BASE "-o 0.1", "-o means nothing to a sweep of ndr"},
	{112, "-- sweep " BASE "--loss-ratio 0.1", "--loss-ratio wants --sweep-command pdr"},
	{113, "-- sweep " BASE "--sweep-command equilibrium --width 0.1", "nothing to a sweep of equi"},
	{114, "ceiling -t a", "-t means nothing to ceiling"},
	{115, "ceiling x", "\"x\" is not an option"},
	{116, "report", "no result; write"},
	{117, "report a", "add -o FILE.html"},
	{118, "report a b c", "\"c\" is one result too many"},
	{119, "report a -o", "-o wants a file behind it"},
	{120, "report a -l 5", "-l means nothing to report"},
	{121, "-- ndr --name 0123456789012345678901234567890123456789012345678901234567890123",
	 "--name wants a text of 1 to 63 bytes"},
	{122, "-- ndr -l 01", "-l wants a rate"},
	{123, "-- ndr -6 " BASE "--dst 2001:2::1-2001:2:0:1::1 --flows 9", "more than 16777216 addresses"},
};

static void
bad_lines(void **state)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		char line[2048];
		struct err err;
		int rc;

		snprintf(line, sizeof(line), "sgw-bench %s", refused[i].line);
		rc = parse(line, &err);
		if (rc != -EINVAL || err.kind != EXIT_USAGE)
			fail_msg("case %d: %s gave %d", refused[i].number, line, rc);
		if (strncmp(err.text, "command line: ", 14) != 0 || strstr(err.text, refused[i].says) == NULL)
			fail_msg("case %d: %s\n  says %s\n  not  %s", refused[i].number, line, err.text,
				 refused[i].says);
	}
}

static void
too_many_cases(void **state)
{
	char *argv[4 + 2 * (CASES_MAX + 1)] = {(char[]){"sgw-bench"}, (char[]){"--"}, (char[]){"sweep"}};
	static char option[] = "--case", names[CASES_MAX + 1][8];
	struct err err = {0};
	int argc = 3;

	for (int i = 0; i <= CASES_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "c%d", i);
		argv[argc++] = option;
		argv[argc++] = names[i];
	}
	assert_int_equal(args_parse(argc, argv, &args, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--case is given more than 32 times"));
	assert_int_equal(args_parse(argc - 2, argv, &args, &err), -EINVAL); // only ports are missing
	assert_non_null(strstr(err.text, "-t PORT"));
}

// Words of all kinds in any order, a byte of some changed: each line is taken, or refused with
// a text. Sanitizers see the rest.
static void
random_lines(void **state)
{
	static const char *const pool[] = {
		"--", "-h", "-t", "-r", "-d", "-D", "-4", "-6", "-s", "-f", "-l", "-p", "-o", "-u", "_", "a",
		"0", "1", "64", "99999999999999999999", "imix", "genome:aaafgz", "64,128", ",", "%", "90%",
		"--size", "--sizes", "--src", "--dst", "--flows", "--mtu", "--rate", "--esp", "t", "--encap",
		"aes-gcm-16~v6", "--case", "x,esp=y,encap=clear,do=z", "--sweep-command", "pdr", "--output",
		"--direction", "both", "02:00:00:00:00:01", "10.0.0.0/8", "::/0", "2001:2::1-2001:2::9",
		"ndr", "sweep", "report", "ceiling", "calibrate", "soak", "--time", "0.5", "--quick",
	};
	uint64_t seed = 42;
	int taken = 0;

	for (int n = 0; n < 200000; n++) {
		char line[1024];
		size_t at = (size_t)snprintf(line, sizeof(line), "sgw-bench");
		struct err err;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (seed >> 62 != 0) // else without EAL, or with nothing to be sent
			at += (size_t)snprintf(line + at, sizeof(line) - at, " -- %s %s",
					       pool[48 + (seed >> 40) % 6], (seed >> 20 & 3) != 0 ? BASE : "");
		for (uint64_t k = seed >> 56 & 15; k > 0; k--) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			at += (size_t)snprintf(line + at, sizeof(line) - at, " %s",
					       pool[(seed >> 33) % COUNT(pool)]);
			if ((seed >> 20) % 16 == 0)
				line[at - 1] = (char)(1 + (seed >> 25) % 255);
		}
		if (parse(line, &err) == 0)
			taken++;
		else if (err.kind != EXIT_USAGE || err.text[0] == '\0')
			fail_msg("%s: refused without a word", line);
	}
	assert_true(taken > 1000); // so that the good ways are walked too
	assert_int_equal(args_parse(0, (char *[]){NULL}, &args, &(struct err){0}), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lab_defaults),
		cmocka_unit_test(every_option_lands),
		cmocka_unit_test(each_command),
		cmocka_unit_test(sweep_cases),
		cmocka_unit_test(without_eal),
		cmocka_unit_test(sizes),
		cmocka_unit_test(encaps),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(too_many_cases),
		cmocka_unit_test(random_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
