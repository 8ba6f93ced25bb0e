/* SPDX-License-Identifier: BSD-3-Clause */
// Which rx queue can wake a thread: one with an interrupt, or with a socket below it.
#include "port.h"

#include <rte_epoll.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>

#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define FD_MAX 4096 // sgw opens its devices first: theirs are the low ones

// The name behind iface= in the arguments of net_af_packet, as its index.
static unsigned int
iface_index(const char *device)
{
	const char *at = strstr(device, ",iface=");
	char name[IF_NAMESIZE];
	size_t n;

	if (at == NULL)
		return 0;
	at += strlen(",iface=");
	n = strcspn(at, ",");
	if (n >= sizeof(name))
		return 0;
	memcpy(name, at, n);
	name[n] = '\0';
	return if_nametoindex(name);
}

static bool
is_socket_of(int fd, unsigned int ifindex)
{
	struct sockaddr_ll addr;
	socklen_t len = sizeof(addr);

	return getsockname(fd, (struct sockaddr *)&addr, &len) == 0 && len >= sizeof(addr) - 2 &&
	       addr.sll_family == AF_PACKET && addr.sll_ifindex == (int)ifindex;
}

// net_af_packet has a socket a queue, opened in turn, and tells nobody. The kernel says
// which they are: nobody else here opens sockets of that kind.
static int
socket_of(unsigned int ifindex, uint16_t queue)
{
	uint16_t seen = 0;

	for (int fd = 3; ifindex != 0 && fd < FD_MAX; fd++)
		if (is_socket_of(fd, ifindex) && seen++ == queue)
			return fd;
	return -1;
}

static int
wake_by_fd(int fd, uint32_t how, int epfd, struct rte_epoll_event *event)
{
	event->epdata.event = how;
	return fd >= 0 && rte_epoll_ctl(epfd, EPOLL_CTL_ADD, fd, event) == 0 ? 0 : -ENOTSUP;
}

int
port_wakes(const struct port *p, uint16_t queue, int epfd, struct rte_epoll_event *event)
{
	int rc;

	// An edge: the error of a link that was down stays at the socket for good.
	if (p->ifindex != 0)
		return wake_by_fd(socket_of(p->ifindex, queue), EPOLLIN | EPOLLET, epfd, event);
	if (!p->rx_intr)
		return -ENOTSUP;
	rc = rte_eth_dev_rx_intr_enable(p->port_id, queue);
	// Nothing to enable, but a descriptor: net_tap's own. It reads that only after a signal
	// to some other thread was handled; a level, so that nobody waits with a packet in it.
	if (rc == -ENOTSUP && p->virtual)
		return wake_by_fd(rte_eth_dev_rx_intr_ctl_q_get_fd(p->port_id, queue), EPOLLIN, epfd,
				  event);
	if (rc != 0)
		return -ENOTSUP;
	rte_eth_dev_rx_intr_disable(p->port_id, queue);
	rc = rte_eth_dev_rx_intr_ctl_q(p->port_id, queue, epfd, RTE_INTR_EVENT_ADD, NULL);
	return rc == 0 ? 0 : -ENOTSUP;
}

void
port_wake_source(const struct cfg_port *c, struct port *p)
{
	if (strncmp(c->device, "net_af_packet", 13) == 0)
		p->ifindex = iface_index(c->device);
}
