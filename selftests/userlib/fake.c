// SPDX-License-Identifier: GPL-2.0
/* See fake.h. */
#include "fake.h"

#include <sys/ioctl.h>

#define ACQUIRE(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define RELEASE(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define RELAXED(p)	__atomic_load_n(p, __ATOMIC_RELAXED)

/* offsets of the regions; any will do */
#define STATUS_OFF	0x10000ULL
#define USER_OFF	0x20000ULL
#define DELIVERY_OFF	0x30000ULL
#define OWN_OFF		0x100000000ULL
#define LANE_OFF	0x200000000ULL
#define LANE_STRIDE	0x10000000ULL

struct fake fake = { .fd = -1 };

/* System calls */

static int fail(int err)
{
	errno = err;
	return -1;
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	static char text[16];

	if (strcmp(path, "/sys/module/spindle/parameters/family"))
		return __real_fopen64(path, mode);
	if (fake.no_module || (fake.other_family && !fake.sockets)) {
		errno = ENOENT;
		return NULL;
	}
	snprintf(text, sizeof(text), "%d\n", FAKE_FAMILY);
	return fmemopen(text, strlen(text), "r");
}

int __wrap_socket(int family, int type, int protocol)
{
	fake.sockets++;
	if (fake.no_module || family != FAKE_FAMILY)
		return fail(EAFNOSUPPORT);
	CHECK_EQ(type, SOCK_SEQPACKET | SOCK_CLOEXEC);
	CHECK_EQ(protocol, 0);
	fake.fd = CHECK_OK(open("/dev/null", O_RDWR | O_CLOEXEC));
	return fake.fd;
}

int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (fd != fake.fd)
		return __real_bind(fd, addr, len);
	CHECK(len <= sizeof(fake.bound));
	memset(&fake.bound, 0, sizeof(fake.bound));
	memcpy(&fake.bound, addr, len);
	fake.bound_len = len;
	return fake.bind_errno ? fail(fake.bind_errno) : 0;
}

static int set_map(int flags)
{
	if (fake.map_errno)
		return fail(fake.map_errno);
	CHECK(flags & SPINDLE_MAP_RX);
	if (fake.c.receiver && flags & SPINDLE_MAP_TX)
		return fail(EACCES);
	if (fake.map_flags)
		return fail(EALREADY);
	fake.map_flags = flags;
	fake.rings.flags = flags;
	return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	if (fd != fake.fd)
		return __real_setsockopt(fd, level, name, val, len);
	CHECK_EQ(level, SOL_SPINDLE);
	switch (name) {
	case SPINDLE_GROUP_CREATE:
		CHECK_EQ(len, sizeof(fake.create));
		memcpy(&fake.create, val, len);
		return fake.error ? fail(fake.error) : 0;
	case SPINDLE_GROUP_JOIN:
		CHECK_EQ(len, sizeof(fake.join));
		memcpy(&fake.join, val, len);
		return fake.error ? fail(fake.error) : 0;
	case SPINDLE_KEY:
		CHECK(len < sizeof(fake.key));
		memset(fake.key, 0, sizeof(fake.key));
		memcpy(fake.key, val, len);
		return fake.error ? fail(fake.error) : 0;
	case SPINDLE_MAP:
		CHECK_EQ(len, sizeof(int));
		return set_map(*(const int *)val);
	case SPINDLE_EVENTS:
		CHECK_EQ(len, sizeof(int));
		if (fake.events_errno)
			return fail(fake.events_errno);
		fake.wanted = *(const int *)val;
		return 0;
	case SPINDLE_GROUP_LEAVE:
		CHECK_EQ(len, sizeof(int));
		CHECK_EQ(*(const int *)val, 0);
		if (fake.error)
			return fail(fake.error);
		fake.leaves++;
		return 0;
	case SPINDLE_SYNC:
		CHECK_EQ(len, sizeof(int));
		fake.synced = *(const int *)val;
		return fake.error ? fail(fake.error) : 0;
	}
	return fail(ENOPROTOOPT);
}

static int get_view(void *val, socklen_t *len)
{
	struct sockaddr_spindle members[3] = {
		{ .ss_rank = 0 }, { .ss_rank = 1 }, { .ss_rank = 2 },
	};

	if (*len < sizeof(members)) {
		*len = sizeof(members);
		return fail(ERANGE);
	}
	*len = sizeof(members);
	memcpy(val, members, sizeof(members));
	if (fake.hasty) {
		fake.hasty--;
		fake.view++;
	}
	return 0;
}

static int get_event(struct spindle_event *event, socklen_t *len)
{
	const struct fake_event *e = &fake.events[event->number % FAKE_EVENTS];

	fake.event_calls++;
	CHECK(*len >= sizeof(*event));
	if (fake.events_errno)
		return fail(fake.events_errno);
	if (!event->number ? !fake.began : !e->size || e->number != event->number ||
					   e->entry < RELAXED(&fake.user->rx_released))
		return fail(ENOENT);
	if (*len > e->size)
		*len = e->size;
	memcpy(event, &e->event, *len);
	return 0;
}

static struct fake_object *object_of(uint64_t entry)
{
	struct fake_object *object = &fake.objects[entry % FAKE_OBJECTS];

	return object->data && object->entry == entry ? object : NULL;
}

static int get_object(struct spindle_object_read *part, socklen_t len)
{
	struct fake_object *object = object_of(part->delivery);
	uint64_t off = part->off;
	int null;

	fake.object_calls++;
	CHECK_EQ(len, sizeof(*part));
	CHECK(!part->__resv[0] && !part->__resv[1] && !part->__resv[2]);
	if (fake.object_errno)
		return fail(fake.object_errno);
	if (!object || part->delivery < RELAXED(&fake.user->rx_released))
		return fail(ENOENT);
	if (off > object->len)
		off = object->len;
	if (part->len > object->len - off)
		part->len = object->len - off;
	/* what cannot be written is an error, and no signal */
	null = CHECK_OK(open("/dev/zero", O_RDONLY | O_CLOEXEC));
	if (read(null, (void *)(uintptr_t)part->addr, part->len) != (ssize_t)part->len) {
		__real_close(null);
		return fail(EFAULT);
	}
	__real_close(null);
	memcpy((void *)(uintptr_t)part->addr, object->data + off, part->len);
	return 0;
}

static int get_object_fd(struct spindle_object_fd *e, socklen_t len)
{
	struct fake_object *object = object_of(e->delivery);

	fake.object_calls++;
	CHECK_EQ(len, sizeof(*e));
	CHECK(!e->len && !e->fd && !e->__resv[0] && !e->__resv[1] && !e->__resv[2]);
	if (fake.object_errno)
		return fail(fake.object_errno);
	if (!object || e->delivery < RELAXED(&fake.user->rx_released))
		return fail(ENOENT);
	if (fake.object_in_place)
		return fail(EOPNOTSUPP);
	e->len = object->len;
	e->fd = CHECK_OK(memfd_create("object", MFD_CLOEXEC));
	CHECK_EQ(write(e->fd, object->data, object->len), object->len);
	return 0;
}

static int get_explain(struct spindle_explain *e, socklen_t len)
{
	CHECK_EQ(len, sizeof(*e));
	fake.explain = *e;
	if (fake.error)
		return fail(fake.error);
	e->object = e->len > fake.c.max_msg;
	e->algorithm = SPINDLE_ALG_PIPELINE;
	snprintf(e->why, sizeof(e->why), "so it is");
	return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	struct spindle_group_info info = { .state = fake.state, .error = fake.error };
	struct spindle_stability stability = {
		.view = 3, .sent = 9, .received = 8, .delivered = 7,
	};

	if (fd != fake.fd)
		return __real_getsockopt(fd, level, name, val, len);
	CHECK_EQ(level, SOL_SPINDLE);
	switch (name) {
	case SPINDLE_GROUP_INFO:
		CHECK_EQ(*len, sizeof(info));
		if (fake.looks++ < fake.forming)
			info.state = SPINDLE_STATE_FORMING;
		info.view = fake.view;
		info.max_msg = fake.c.max_msg;
		info.max_object = FAKE_MAX_OBJECT;
		if (fake.rankless)
			info.rank = ~0U;
		memcpy(val, &info, *len);
		return 0;
	case SPINDLE_GROUP_VIEW:
		return get_view(val, len);
	case SPINDLE_EVENT:
		return get_event(val, len);
	case SPINDLE_OBJECT:
		return get_object(val, *len);
	case SPINDLE_OBJECT_FD:
		return get_object_fd(val, *len);
	case SPINDLE_EXPLAIN:
		return get_explain(val, *len);
	case SPINDLE_STABILITY:
		CHECK_EQ(*len, sizeof(stability));
		if (fake.error)
			return fail(fake.error);
		/* one less at each look */
		stability.pinned = fake.pinned;
		if (fake.pinned && fake.pinned != ~0U)
			fake.pinned--;
		memcpy(val, &stability, *len);
		return 0;
	case SPINDLE_RINGS:
		CHECK_EQ(*len, sizeof(fake.rings));
		CHECK(fake.map_flags);
		if (fake.rings_errno)
			return fail(fake.rings_errno);
		memcpy(val, &fake.rings, *len);
		return 0;
	}
	return fail(ENOPROTOOPT);
}

/* The ring that is in a slot, or was mapped there. */
static struct fake_ring *ring_in(unsigned int slot)
{
	unsigned int i;

	for (i = 0; i < FAKE_RINGS; i++)
		if (fake.rings_of[i].mem && !fake.rings_of[i].gone &&
		    fake.rings_of[i].slot == slot)
			return &fake.rings_of[i];
	FAIL("no lane in slot %u", slot);
}

static struct fake_ring *ring_at(const void *mem)
{
	unsigned int i;

	for (i = 0; i < FAKE_RINGS; i++)
		if (fake.rings_of[i].mem == mem)
			return &fake.rings_of[i];
	return NULL;
}

static void *map_ring(unsigned int slot)
{
	struct fake_ring *ring;

	pthread_mutex_lock(&fake.rings_lock);
	ring = ring_in(slot);
	/* once by its slot, and the own one as such */
	CHECK(ring->maps <= !slot);
	ring->maps++;
	pthread_mutex_unlock(&fake.rings_lock);
	return ring->mem;
}

/* Does the program read anything there that it has not released? */
static bool is_held(const struct fake_ring *ring)
{
	uint64_t entry = RELAXED(&fake.user->rx_released);

	if (!fake.holds || ring->gone)
		return false;
	for (; entry < RELAXED(&fake.user->rx_seen); entry++) {
		const struct spindle_delivery *d =
			&fake.deliveries[entry & (fake.c.deliveries - 1)];

		if (!d->flags && (d->lane & SPINDLE_DELIVERY_SLOT) == ring->slot)
			return true;
	}
	return false;
}

static void forget_ring(struct fake_ring *ring)
{
	__real_munmap(ring->mem, 2 * fake.c.window);
	memset(ring, 0, sizeof(*ring));
}

/* False: there is none. */
static bool unmap_ring(const void *mem, size_t len)
{
	struct fake_ring *ring;

	pthread_mutex_lock(&fake.rings_lock);
	ring = ring_at(mem);
	if (ring) {
		CHECK_EQ(len, 2 * fake.c.window);
		CHECK(ring->maps);
		CHECK(!is_held(ring));
		ring->maps--;
		/* who reads there now reads nothing */
		if (ring->gone && !ring->maps)
			forget_ring(ring);
	}
	pthread_mutex_unlock(&fake.rings_lock);
	return ring;
}

static void *region(uint64_t off, uint64_t *size, int *prot)
{
	unsigned int i;

	*prot = PROT_READ;
	*size = 2ULL * fake.c.window;
	if (off >= LANE_OFF) {
		i = (off - LANE_OFF) / LANE_STRIDE;
		CHECK_EQ(off, LANE_OFF + i * LANE_STRIDE);
		CHECK(i < fake.c.slots);
		return map_ring(i);
	}
	switch (off) {
	case STATUS_OFF:
		*size = fake.rings.status_size;
		return fake.status;
	case DELIVERY_OFF:
		*size = fake.rings.delivery_size;
		return fake.deliveries;
	case USER_OFF:
		*prot |= PROT_WRITE;
		*size = fake.rings.user_size;
		return fake.user;
	case OWN_OFF:
		CHECK(fake.map_flags & SPINDLE_MAP_TX);
		*prot |= PROT_WRITE;
		return map_ring(0);
	}
	FAIL("mmap() of offset %#llx", (long long)off);
}

void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	uint64_t size;
	int want;
	void *p;

	if (fd < 0 || fd != fake.fd)
		return __real_mmap64(addr, len, prot, flags, fd, off);
	fake.map_calls++;
	if (fake.fail_map && !--fake.fail_map) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	p = region(off, &size, &want);
	CHECK_EQ(len, size);
	CHECK_EQ(prot, want);
	CHECK_EQ(flags, MAP_SHARED);
	fake.maps++;
	return p;
}

/* The bytes of a message; what is mapped and not there is an error, as in a kernel. */
static ssize_t gather(const struct msghdr *msg, unsigned char *to, size_t size)
{
	int fds[2];
	size_t i, off, len = 0;
	ssize_t n;

	CHECK_OK(pipe2(fds, O_CLOEXEC));
	for (i = 0; i < msg->msg_iovlen; i++) {
		const struct iovec *iov = &msg->msg_iov[i];

		for (off = 0; off < iov->iov_len; off += n) {
			size_t part = iov->iov_len - off < 4096 ? iov->iov_len - off : 4096;

			n = write(fds[1], (const char *)iov->iov_base + off, part);
			if (n <= 0)
				break;
			CHECK(len + n <= size);
			CHECK_EQ(read(fds[0], to + len, n), n);
			len += n;
		}
		if (off < iov->iov_len)
			break;
	}
	__real_close(fds[0]);
	__real_close(fds[1]);
	return i < msg->msg_iovlen ? -EFAULT : (ssize_t)len;
}

static void take_control(struct fake_sent *m, const struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);

	m->control = 0;
	if (!cmsg)
		return;
	CHECK_EQ(cmsg->cmsg_level, SOL_SPINDLE);
	m->control = cmsg->cmsg_type;
	if (m->control == SPINDLE_CMSG_OBJECT) {
		CHECK_EQ(cmsg->cmsg_len, CMSG_LEN(sizeof(m->how)));
		memcpy(&m->how, CMSG_DATA(cmsg), sizeof(m->how));
	} else {
		CHECK_EQ(m->control, SPINDLE_CMSG_STATE);
		CHECK_EQ(cmsg->cmsg_len, CMSG_LEN(sizeof(m->state)));
		memcpy(&m->state, CMSG_DATA(cmsg), sizeof(m->state));
	}
}

/* As the kernel: an own message, of the ring or an object. */
static void echo(const struct fake_sent *m)
{
	fake.lane_head[0] = fake.lane_pos[0];
	if (m->len > fake.c.max_msg)
		fake_deliver_object(0, 0, m->data, m->len);
	else
		fake_deliver(0, m->data, m->len);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct fake_sent *m = &fake.sent[fake.nsent % FAKE_OBJECTS];
	static unsigned char bytes[FAKE_MAX_OBJECT];
	ssize_t n;

	if (fd != fake.fd)
		return __real_sendmsg(fd, msg, flags);
	CHECK_EQ(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
	CHECK(!msg->msg_name);
	if (fake.send_errno)
		return fail(fake.send_errno);
	if (fake.echo)
		fake_collect();
	if (fake.echo && (!fake_delivery_room() || (fake.send_room &&
	    fake.status->published - fake.collected >= fake.send_room)))
		return fail(EAGAIN);
	n = gather(msg, bytes, sizeof(bytes));
	if (n < 0)
		return fail(-n);
	free(m->data);
	m->len = n;
	m->data = malloc(n + 1);
	CHECK(m->data);
	memcpy(m->data, bytes, n);
	take_control(m, msg);
	if (fake.map_flags & SPINDLE_MAP_TX) {
		/* nothing but objects, which take a turn */
		CHECK(m->len > fake.rings.max_msg ||
		      (m->control == SPINDLE_CMSG_OBJECT &&
		       m->how.flags & SPINDLE_OBJECT_ALWAYS));
		fake.status->tx_base++;
	}
	fake.nsent++;
	if (fake.on_send)
		fake.on_send(m);
	if (fake.echo)
		echo(m);
	return n;
}

int __wrap_munmap(void *addr, size_t len)
{
	/* a window of a file */
	if (!unmap_ring(addr, len) && addr != fake.status && addr != fake.user &&
	    addr != fake.deliveries)
		return __real_munmap(addr, len);
	if (addr == fake.status)
		CHECK_EQ(len, fake.rings.status_size);
	fake.unmaps++;
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	CHECK_EQ(fd, fake.fd);
	CHECK_EQ(request, SIOCSPINDLEKICK);
	__atomic_fetch_add(&fake.kicks, 1, __ATOMIC_RELAXED);
	sem_post(&fake.kick);
	return 0;
}

int __wrap_shutdown(int fd, int how)
{
	if (fd != fake.fd)
		return __real_shutdown(fd, how);
	CHECK_EQ(how, SHUT_WR);
	__atomic_fetch_add(&fake.shutdowns, 1, __ATOMIC_RELEASE);
	sem_post(&fake.kick);
	return 0;
}

int __wrap_close(int fd)
{
	if (fd >= 0 && fd == fake.fd) {
		fake.closes++;
		fake.fd = -1;
	}
	return __real_close(fd);
}

static int events_now(void)
{
	unsigned int state = ACQUIRE(&fake.status->state);
	int events = 0;

	if (fake.looks <= fake.forming && fake.forming)
		return 0;
	if (state == SPINDLE_STATE_FAILED)
		return POLLIN | POLLOUT | POLLERR | POLLHUP;
	if (state == SPINDLE_STATE_CLOSED)
		return POLLIN | POLLOUT | POLLHUP;
	if (ACQUIRE(&fake.status->published) > RELAXED(&fake.user->rx_seen))
		events |= POLLIN;
	if (ACQUIRE(&fake.status->tx_head) >= RELAXED(&fake.user->tx_want_head) &&
	    ACQUIRE(&fake.status->tx_freed) >= RELAXED(&fake.user->tx_want_freed))
		events |= POLLOUT;
	if (RELAXED(&fake.status->tx_error))
		events |= POLLOUT | POLLERR;
	return events;
}

int __wrap_ppoll(struct pollfd *pfd, nfds_t n, const struct timespec *ts, const sigset_t *mask)
{
	double end = ts ? st_now() + ts->tv_sec + ts->tv_nsec / 1e9 : 0;
	struct timespec nap = { .tv_nsec = 50000 };

	CHECK_EQ(n, 1);
	CHECK_EQ(pfd->fd, fake.fd);
	CHECK(!mask);
	__atomic_fetch_add(&fake.polls, 1, __ATOMIC_RELAXED);
	if (fake.on_wait)
		fake.on_wait();
	for (;;) {
		pfd->revents = events_now() & (pfd->events | POLLERR | POLLHUP);
		if (pfd->revents)
			return 1;
		if (ts && st_now() >= end)
			return 0;
		if (nanosleep(&nap, NULL))
			return -1;
	}
}

/* Memory */

static void *pages(size_t size)
{
	void *p = __real_mmap64(NULL, size, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void *twice(size_t size)
{
	int fd = CHECK_OK(memfd_create("ring", MFD_CLOEXEC));
	char *p = __real_mmap64(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	CHECK(p != MAP_FAILED);
	CHECK_OK(ftruncate(fd, size));
	for (i = 0; i < 2; i++)
		CHECK(__real_mmap64(p + i * size, size, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_FIXED, fd, 0) == p + i * size);
	__real_close(fd);
	return p;
}

static void new_lane(unsigned int slot)
{
	unsigned int i;

	for (i = 0; i < FAKE_RINGS && fake.rings_of[i].mem; i++)
		;
	CHECK(i < FAKE_RINGS);
	fake.ring[slot] = twice(fake.c.window);
	fake.rings_of[i] = (struct fake_ring) { .mem = fake.ring[slot], .slot = slot };
	fake.rank[slot] = FAKE_RANK + fake.lanes++;
	fake.lane_pos[slot] = 0;
	fake.lane_head[slot] = 0;
}

static size_t page_up(size_t size)
{
	return (size + 4095) & ~4095UL;
}

static void fill_event(enum spindle_event_type type)
{
	struct fake_event *e = &fake.events[fake.nevents % FAKE_EVENTS];
	unsigned int i;

	memset(e, 0, sizeof(*e));
	e->number = fake.nevents;
	e->entry = fake.status->published;
	e->size = sizeof(e->event);
	e->event.type = type;
	e->event.number = fake.nevents;
	e->event.seq = fake.seq;
	e->event.subject = 1;
	if (type == SPINDLE_EVENT_VIEW) {
		e->event.subject = ~0U;
		e->event.members = 3;
		e->event.left = 1;
		e->size += 4 * sizeof(e->event.member[0]);
		for (i = 0; i < 4; i++)
			e->event.member[i] = (struct spindle_event_member) {
				.rank = i % 3,
				.uid = FAKE_UID - 2 + i,
				.flags = i == 2 ? SPINDLE_EM_SELF : 0,
				.reason = i == 3 ? SPINDLE_REASON_LOST : 0,
			};
	}
	e->event.view = fake.view;
}

void fake_boot(const struct fake_config *c)
{
	struct spindle_rings *r = &fake.rings;
	unsigned int i;

	memset(&fake, 0, sizeof(fake));
	fake.fd = -1;
	fake.c = *c;
	if (!fake.c.window)
		fake.c.window = 4096;
	if (!fake.c.depth)
		fake.c.depth = 16;
	if (!fake.c.max_msg)
		fake.c.max_msg = fake.c.window;
	if (!fake.c.deliveries)
		fake.c.deliveries = 64;
	if (!fake.c.lanes)
		fake.c.lanes = 2;
	if (!fake.c.slots)
		fake.c.slots = fake.c.lanes;
	CHECK(fake.c.slots <= FAKE_SLOTS);
	CHECK_EQ(pthread_mutex_init(&fake.rings_lock, NULL), 0);
	CHECK_OK(sem_init(&fake.kick, 0, 0));
	*r = (struct spindle_rings) {
		.status_off = STATUS_OFF,
		.user_off = USER_OFF,
		.delivery_off = DELIVERY_OFF,
		.own_off = OWN_OFF,
		.lane_off = LANE_OFF,
		.lane_stride = LANE_STRIDE,
		.status_size = page_up(sizeof(*fake.status)),
		.user_size = page_up(sizeof(*fake.user) + fake.c.depth *
				     sizeof(struct spindle_submission)),
		.delivery_size = page_up(fake.c.deliveries * sizeof(struct spindle_delivery)),
		.window = fake.c.window,
		.depth = fake.c.depth,
		.max_msg = fake.c.max_msg,
		.deliveries = fake.c.deliveries,
		.lanes = fake.c.slots,
		.lane = fake.c.receiver ? -1 : 0,
	};
	fake.status = pages(r->status_size);
	fake.user = pages(r->user_size);
	fake.deliveries = pages(r->delivery_size);
	for (i = 0; i < fake.c.lanes; i++)
		new_lane(i);
	fake.view = 1;
	fill_event(SPINDLE_EVENT_VIEW);
	fake.nevents = 1;
	fake.state = SPINDLE_STATE_ACTIVE;
	fake.status->state = SPINDLE_STATE_ACTIVE;
	fake.status->published = c->rx_base;
	fake.status->rx_base = c->rx_base;
	fake.status->tx_base = c->tx_base;
	fake.status->tx_freed = c->tx_base;
	fake.status->tx_start = c->tx_start;
	fake.status->tx_head = c->tx_start;
	fake.pos = c->tx_start;
	fake.collected = c->rx_base;
	fake.seq = 5 + c->rx_base;
}

struct spindle *fake_member(const struct fake_config *c)
{
	struct spindle *sp;

	fake_boot(c);
	CHECK_EQ(spindle_open(&sp, "10.0.0.1"), 0);
	CHECK_EQ(spindle_ready(sp, 0), 0);
	return sp;
}

/* The engine */

const unsigned char *fake_own(uint64_t pos)
{
	return fake.ring[0] + pos * SPINDLE_UNIT % fake.c.window;
}

static uint64_t units(uint64_t len)
{
	return (len + SPINDLE_UNIT - 1) / SPINDLE_UNIT;
}

static bool flags_are_good(uint32_t flags)
{
	uint32_t low = flags & ((1U << SPINDLE_DELIVERY_UID_SHIFT) - 1);

	return !flags || (low & ~SPINDLE_DELIVERY_LAST) == SPINDLE_DELIVERY_STATE;
}

unsigned int fake_take(void)
{
	uint64_t tail = ACQUIRE(&fake.user->tx_tail);
	uint64_t window = fake.c.window / SPINDLE_UNIT;
	unsigned int n = 0;

	for (; fake.ntaken < tail; n++) {
		struct spindle_submission *s =
			&fake.user->submissions[fake.ntaken & (fake.c.depth - 1)];
		uint64_t end = fake.pos + units(s->len);

		if (s->len > fake.c.max_msg || !flags_are_good(s->flags) ||
		    end > fake.status->tx_head + window ||
		    fake.status->tx_base + fake.ntaken - fake.status->tx_freed >=
		    fake.c.depth - 1) {
			RELEASE(&fake.status->tx_error, EINVAL);
			return n;
		}
		fake.taken[fake.ntaken % FAKE_IN_FLIGHT] =
			(struct fake_message) { .pos = fake.pos, .len = s->len, .flags = s->flags };
		fake.pos = end;
		fake.ntaken++;
	}
	RELEASE(&fake.status->tx_taken, fake.ntaken);
	return n;
}

bool fake_delivery_room(void)
{
	return fake.status->published - fake.collected < fake.c.deliveries;
}

/* @end: behind it in its ring; ~0: it is none */
static void publish(const struct spindle_delivery *d, uint64_t end)
{
	uint64_t entry = fake.status->published;

	CHECK(fake_delivery_room());
	fake.deliveries[entry & (fake.c.deliveries - 1)] = *d;
	fake.end[entry % FAKE_IN_FLIGHT] = end;
	RELEASE(&fake.status->published, entry + 1);
}

static void publish_message(unsigned int slot, uint64_t pos, uint32_t len, uint32_t flags)
{
	uint64_t entry = fake.status->published;
	struct spindle_delivery d = {
		.seq = fake.seq,
		.lane = slot | fake.rank[slot] << SPINDLE_DELIVERY_RANK_SHIFT,
		.pos = pos % (fake.c.window / SPINDLE_UNIT),
		.len = len,
		.flags = flags,
	};

	fake.seq += 1 + entry % 3;
	fake.lane_end[slot] = entry + 1;
	publish(&d, pos + units(len));
}

bool fake_deliver_own(void)
{
	struct fake_message *m = &fake.taken[fake.ndelivered % FAKE_IN_FLIGHT];

	if (fake.ndelivered == fake.ntaken || !fake_delivery_room())
		return false;
	fake.ndelivered++;
	publish_message(0, m->pos, m->len, m->flags);
	return true;
}

bool fake_room(unsigned int lane, uint32_t len)
{
	return fake_delivery_room() && fake.lane_pos[lane] + units(len) <=
	       fake.lane_head[lane] + fake.c.window / SPINDLE_UNIT;
}

void fake_deliver(unsigned int lane, const void *data, uint32_t len)
{
	fake_deliver_state(lane, 0, data, len);
}

void fake_deliver_state(unsigned int lane, uint32_t flags, const void *data, uint32_t len)
{
	uint64_t pos = fake.lane_pos[lane];

	CHECK(fake_room(lane, len));
	memcpy(fake.ring[lane] + pos * SPINDLE_UNIT % fake.c.window, data, len);
	fake.lane_pos[lane] += units(len);
	publish_message(lane, pos, len, flags);
}

void fake_deliver_object(unsigned int lane, uint32_t flags, const void *data, uint32_t len)
{
	uint64_t entry = fake.status->published;
	struct fake_object *object = &fake.objects[entry % FAKE_OBJECTS];
	struct spindle_delivery d = {
		.seq = fake.seq++,
		.lane = lane | fake.rank[lane] << SPINDLE_DELIVERY_RANK_SHIFT,
		.len = len,
		/* and how it came, which is the kernel's */
		.flags = flags | SPINDLE_DELIVERY_OBJECT | (entry % 5) << 5,
	};

	free(object->data);
	object->entry = entry;
	object->len = len;
	object->data = malloc(len + 1);
	CHECK(object->data);
	memcpy(object->data, data, len);
	publish(&d, ~0ULL);
}

void fake_deliver_flags(unsigned int lane, uint32_t flags)
{
	struct spindle_delivery d = {
		.seq = fake.seq++,
		.lane = lane | fake.rank[lane] << SPINDLE_DELIVERY_RANK_SHIFT,
		.flags = flags,
	};

	fake.lane_end[lane] = fake.status->published + 1;
	publish(&d, ~0ULL);
}

uint32_t fake_event(enum spindle_event_type type)
{
	struct spindle_delivery d = {
		.seq = fake.seq,
		.lane = type,
		.pos = fake.nevents,
		.flags = SPINDLE_DELIVERY_EVENT,
	};

	if (type == SPINDLE_EVENT_VIEW)
		fake.view++;
	fill_event(type);
	publish(&d, ~0ULL);
	return fake.nevents++;
}

bool fake_renew(unsigned int slot)
{
	struct fake_ring *ring;

	if (fake.lane_end[slot] > fake.collected)
		return false;
	pthread_mutex_lock(&fake.rings_lock);
	if (fake.ring[slot]) {
		ring = ring_in(slot);
		ring->gone = true;
		if (!ring->maps)
			forget_ring(ring);
	}
	new_lane(slot);
	pthread_mutex_unlock(&fake.rings_lock);
	return true;
}

unsigned int fake_collect(void)
{
	uint64_t released = ACQUIRE(&fake.user->rx_released);
	uint64_t head = fake.status->tx_head, freed = fake.status->tx_freed;
	unsigned int n = 0;

	CHECK(released >= fake.collected);
	CHECK(released <= fake.status->published);
	for (; fake.collected < released; fake.collected++, n++) {
		unsigned int lane = fake.deliveries[fake.collected & (fake.c.deliveries - 1)].lane &
				    SPINDLE_DELIVERY_SLOT;
		uint64_t end = fake.end[fake.collected % FAKE_IN_FLIGHT];

		if (end == ~0ULL)
			continue;
		if (lane || fake.c.receiver) {
			fake.lane_head[lane] = end;
		} else {
			head = end;
			freed++;
		}
	}
	RELEASE(&fake.status->tx_head, head);
	RELEASE(&fake.status->tx_freed, freed);
	return n;
}

void fake_set_state(unsigned int state, int error)
{
	RELEASE(&fake.status->error, error);
	RELEASE(&fake.status->state, state);
}

void fake_set_wakeup(bool on)
{
	__atomic_store_n(&fake.status->flags, on ? SPINDLE_NEED_WAKEUP : 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
