/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

const char *const command_names[CMD_COUNT] = {
	[CMD_EQUILIBRIUM] = "equilibrium",
	[CMD_NDR] = "ndr",
	[CMD_PDR] = "pdr",
	[CMD_LOSS] = "loss",
	[CMD_TRIAL] = "trial",
	[CMD_SOAK] = "soak",
	[CMD_BACK_TO_BACK] = "back-to-back",
	[CMD_LATENCY] = "latency",
	[CMD_RECOVERY] = "recovery",
	[CMD_SWEEP] = "sweep",
	[CMD_CALIBRATE] = "calibrate",
	[CMD_CEILING] = "ceiling",
	[CMD_REPORT] = "report",
};

const char args_help[] =
	"usage: sgw-bench [EAL options] -- COMMAND -t PORT -r PORT -d MAC [options]\n"
	"       sgw-bench ceiling [-l MBPS]\n"
	"       sgw-bench report RESULT.json [BEFORE.json] -o FILE.html\n"
	"       sgw-bench --help | --version\n"
	"\n"
	"Sends, receives, searches and judges: generator and receiver of an IPsec lab. It answers\n"
	"ARP and neighbour solicitations for every address: use it on test cables only.\n"
	"\n"
	"Commands:\n"
	"  equilibrium   the lab's tool: loads up and down until what goes in comes out\n"
	"  ndr, pdr      largest rate without loss; pdr: that, and the one with --loss-ratio\n"
	"  loss          the loss curve: ten loads up to --rate, default the wire's ceiling\n"
	"  trial         one trial at --rate, with every counter\n"
	"  soak          --rate for --time, a line every --interval\n"
	"  back-to-back  longest burst at line rate without loss (RFC 2544 section 26.4)\n"
	"  latency       at 10, 50 and 90 % of the NDR, which is searched, or of --rate\n"
	"  recovery      after 110 % of --rate, how soon half of it passes (section 26.5)\n"
	"  sweep         a search for each --case, size and, with -D, direction\n"
	"  calibrate     the NDR of a reference device into --output, for --reference\n"
	"  ceiling       what a wire can carry, as tables\n"
	"  report        results as an HTML page; of two files, after and before\n"
	"\n"
	"Ports and traffic:\n"
	"  -t PORT, -r PORT    send here, receive there: a PCI address, a MAC address, or a virtual\n"
	"                      device (net_af_packet0,iface=eth1); one port for a cable to itself\n"
	"  -d MAC              of the device under test, on the side of -t\n"
	"  -D MAC              the same on the side of -r, for reverse and both\n"
	"  --direction WAY     forward (from -t to -r), reverse or both\n"
	"  --vlan-t ID, --vlan-r ID  tag the frames on that side\n"
	"  --mtu BYTES         of both ports, default 1500\n"
	"  -4, -6              IPv4 (the default) or IPv6; sweep and calibrate take both\n"
	"  -s BYTES            UDP payload, default 500; below 16 there is no room for sequence\n"
	"                      number and time, then only loss is counted\n"
	"  --size SIZE         instead: a frame with FCS (64, 1518), imix (7:4:1 of 64, 570, 1518),\n"
	"                      or genome:aaafg (RFC 6985)\n"
	"  --sizes A,B,C       several of them, for sweep and calibrate\n"
	"  --src A-B, --dst A-B  addresses, default 198.18.10.1-198.18.10.71 to\n"
	"                      198.19.10.1-198.19.10.70, or 2001:2:0:10::1-2001:2:0:10::14 to\n"
	"                      2001:2:0:8010::1-2001:2:0:8010::64\n"
	"  --flows N           so many pairs of them, default all (4970, or 2000 of IPv6)\n"
	"  --sport N, --dport N  UDP ports, default 2001, or 2000 with IPv6\n"
	"  -u                  UDP checksums (IPv6 always has them)\n"
	"\n"
	"ESP by sgw-bench itself, for a device that only seals, or only opens:\n"
	"  -f FILE             sgw.yaml(5) of the gateway that is played\n"
	"  --esp t|r           which port carries ESP\n"
	"\n"
	"Loads:\n"
	"  -l RATE             of the link in Mb/s, default 1000; with -p in kpps, default 1488\n"
	"  -p                  loads in kpps\n"
	"  --rate RATE         Mb/s of frames without FCS, with -p kpps; or 90%, of the ceiling\n"
	"  -o FRACTION         tolerance of equilibrium, default 0.01\n"
	"  --loss-ratio F      of pdr, default 0.005\n"
	"  --width F           how near ndr and pdr come, default 0.005\n"
	"  --time S            of a trial, default 30\n"
	"  --warm-up S         at 1 % of the load before the first trial, default 2\n"
	"  --settle S          after each trial, default 1\n"
	"  --link-wait S       for the links to come up, default 10\n"
	"  --interval S        between the lines of soak, default 10\n"
	"  --repeat N          the whole search up to 32 times: median and spread\n"
	"  --quick             short and coarse: --time 2 --width 0.02 --warm-up 0.5\n"
	"  --shared-cores      sleep between packets: for several programs on one core\n"
	"\n"
	"Judging and recording:\n"
	"  --name TEXT         of the case, for the record\n"
	"  --encap ENCAP       what the wire between two gateways carries, for the ceiling:\n"
	"                      \"aes-gcm-16\", \"aes-cbc+hmac-sha1-96 v6 natt\"\n"
	"  --reference FILE    what calibrate wrote: a result within 10 % of it is inconclusive\n"
	"  -o FILE, --output FILE  of calibrate and report\n"
	"  --json FILE, --html FILE  the record, and a page to read (which needs --json)\n"
	"  --watts W           a number, a file, or !COMMAND that prints one\n"
	"  --dut-cpu W         the same, per cent of the device's CPU\n"
	"  --case NAME[,esp=FILE][,encap=ENCAP][,do=COMMAND]  of sweep; may be given often\n"
	"  --sweep-command C   equilibrium, ndr (the default) or pdr\n"
	"  -h, --help          this text\n"
	"  -V, --version       the versions of sgw-bench and DPDK\n"
	"\n"
	"EAL options stand before `--`: -l 0-2 takes core 0 for control and two for traffic.\n"
	"\n"
	"example: sgw-bench -l 0-2 -- equilibrium -u -4 -d 00:08:a2:09:33:da -t 0000:02:00.0 \\\n"
	"         -r 0000:03:00.0\n"
	"\n"
	"exit codes: 0 done, 2 usage, 3 a file is invalid, 4 the machine differs, 5 resources\n"
	"missing, 6 a result is void or inconclusive, 70 bug\n";
