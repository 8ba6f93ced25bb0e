/* SPDX-License-Identifier: BSD-3-Clause */
// The items of ports:.
#include "load.h"

#include "text.h"

#include <ctype.h>
#include <string.h>

static bool
pci_valid(const char *text)
{
	static const char form[] = "hhhh:hh:hh.7";

	for (size_t i = 0; i < sizeof(form) - 1; i++) {
		char c = text[i];

		if (form[i] == 'h' ? !isxdigit((unsigned char)c) :
		    form[i] == '7' ? c < '0' || c > '7' :
				     c != form[i])
			return false;
	}
	return text[sizeof(form) - 1] == '\0';
}

// A virtual device that sgw may make: driver, number, arguments.
static bool
device_valid(const char *text)
{
	static const char *const drivers[] = {"net_af_packet", "net_tap",  "net_memif",
					      "net_pcap",      "net_ring", "net_null"};

	if (text[strcspn(text, " \t\r\n\"'")] != '\0')
		return false;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		size_t n = strlen(drivers[i]);

		if (strncmp(text, drivers[i], n) != 0)
			continue;
		n += strspn(text + n, "0123456789");
		if (text[n] == '\0' || text[n] == ',')
			return true;
	}
	return false;
}

// Of a packet buffer, the part that is there whatever the MTU of the ports is.
#define NULL_SIZE_MAX 2048

// net_null writes `size` bytes into a packet buffer without asking for its room.
static void
null_check(struct load *l, const struct node *item, const char *device)
{
	const char *arg = device + strcspn(device, ",");
	char word[QUOTE_STRLEN], value[32];
	uint64_t size;

	while (*arg == ',') {
		size_t n = strcspn(++arg, ",");

		if (strncmp(arg, "copy", 4) == 0 && (n == 4 || arg[4] == '=')) {
			item_error(l, item, "device",
				   "%s has copy, with which the driver writes size bytes into "
				   "buffers without asking for their room; take it out (size is at "
				   "most %u)",
				   quote(device, word), NULL_SIZE_MAX);
		} else if (strncmp(arg, "size=", 5) == 0) {
			snprintf(value, sizeof(value), "%.*s", (int)(n - 5), arg + 5);
			if (n - 5 >= sizeof(value) || text_u64(value, &size) < 0 ||
			    size > NULL_SIZE_MAX)
				item_error(l, item, "device",
					   "%s has a size that is no number up to %u, and the "
					   "driver would write past its buffers; write size=%u or "
					   "less",
					   quote(device, word), NULL_SIZE_MAX, NULL_SIZE_MAX);
		}
		arg += n;
	}
}

// A subinterface: only its parent has a device.
static void
load_port_vlan(struct load *l, const struct node *item, struct cfg_port *p)
{
	static const char *const devices[] = {"pci", "device"};

	p->kind = CFG_PORT_VLAN;
	p->parent = UINT32_MAX;
	for (int i = 0; i < 2; i++)
		if (node_find(item, devices[i]) != NULL)
			item_error(l, item, devices[i],
				   "stands beside parent or vlan; a subinterface has the device of "
				   "its parent, take it out");
	if (node_find(item, "mac") != NULL)
		item_error(l, item, "mac",
			   "stands beside parent or vlan; a subinterface has the MAC address of "
			   "its parent, take it out");
	if (node_find(item, "parent") == NULL)
		item_error(l, item, "vlan", "has no parent; add parent: and a port's name");
	if (field_u16(l, SEC_PORTS, item, "vlan", &p->vlan) == FOUND_NONE)
		item_error(l, item, "parent", "has no vlan; add vlan: and 1 to 4094");
}

// How the device is found: pci, device, or mac alone.
static void
load_port_device(struct load *l, const struct node *item, struct cfg_port *p)
{
	bool has_pci = node_find(item, "pci") != NULL,
	     has_device = node_find(item, "device") != NULL;
	const char *key = has_pci ? "pci" : "device", *text;
	char word[QUOTE_STRLEN];

	p->has_mac = field_mac(l, SEC_PORTS, item, "mac", &p->mac) == FOUND_GOOD;
	if (has_pci && has_device)
		item_error(l, item, "device",
			   "stands beside pci; a port is one device, keep one of them");
	if (!has_pci && !has_device) {
		if (node_find(item, "mac") == NULL)
			item_error(l, item, NULL,
				   "says nothing about its device; add mac:, pci: or device:, or "
				   "parent: and vlan:");
		p->kind = CFG_PORT_MAC;
		return;
	}
	p->kind = has_pci ? CFG_PORT_PCI : CFG_PORT_DEVICE;
	if (field_text(l, SEC_PORTS, item, key, &text) != FOUND_GOOD)
		return;
	if (has_pci && !pci_valid(text)) {
		item_error(l, item, key,
			   "%s is not a PCI address; write it in full like \"0000:02:00.0\"",
			   quote(text, word));
	} else if (!has_pci && strlen(text) >= sizeof(p->device)) {
		item_error(l, item, key, "is %zu letters long; at most %zu are taken",
			   strlen(text), sizeof(p->device) - 1);
	} else if (!has_pci && has_control(text)) {
		item_error(l, item, key,
			   "%s has a control character in it; write the device as plain text",
			   quote(text, word));
	} else if (!has_pci && !device_valid(text)) {
		item_error(
			l, item, key,
			"%s is not a virtual device that sgw makes; write net_af_packet, net_tap, "
			"net_memif, net_pcap, net_ring or net_null, a number and its arguments",
			quote(text, word));
	} else {
		if (!has_pci && strncmp(text, "net_null", 8) == 0)
			null_check(l, item, text);
		strcpy(p->device, text);
		for (char *q = p->device; has_pci && *q != '\0'; q++)
			*q = (char)tolower((unsigned char)*q);
	}
}

void
load_port(struct load *l, const struct node *item)
{
	struct config *c = l->c;
	struct cfg_port *p = &c->ports[c->n_ports];

	l->items[SEC_PORTS][c->n_ports++] = item;
	p->at = item->key_at;
	strcpy(p->name, item->key);
	if (node_find(item, "parent") != NULL || node_find(item, "vlan") != NULL)
		load_port_vlan(l, item, p);
	else
		load_port_device(l, item, p);
	if (field_addresses(l, SEC_PORTS, item, &p->addresses, &p->n_addresses) == FOUND_BAD)
		l->unsure[SEC_PORTS] = true;
	field_u16(l, SEC_PORTS, item, "mtu", &p->mtu);
}

static void
load_parent(struct load *l, uint32_t i)
{
	struct cfg_port *p = &l->c->ports[i];
	const struct node *item = l->items[SEC_PORTS][i];
	const struct cfg_port *parent;

	if (field_ref(l, SEC_PORTS, item, "parent", SEC_PORTS, &p->parent) != FOUND_GOOD)
		return;
	parent = &l->c->ports[p->parent];
	if (parent->kind == CFG_PORT_VLAN) {
		item_error(l, item, "parent", "%s%s; write a port that has a device", parent->name,
			   p->parent == i ? " is the port itself" : " is a subinterface itself");
		p->parent = UINT32_MAX;
		return;
	}
	if (node_find(item, "mtu") == NULL)
		p->mtu = parent->mtu;
	else if (parent->mtu != 0 && p->mtu > parent->mtu)
		item_error(l, item, "mtu",
			   "%u is larger than the %u of its parent %s; write at most %u, or leave "
			   "the key out",
			   p->mtu, parent->mtu, parent->name, parent->mtu);
}

void
load_parents(struct load *l)
{
	for (uint32_t i = 0; i < l->c->n_ports; i++)
		if (l->c->ports[i].kind == CFG_PORT_VLAN)
			load_parent(l, i);
}
