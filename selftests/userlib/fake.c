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
	case SPINDLE_MAP:
		CHECK_EQ(len, sizeof(int));
		return set_map(*(const int *)val);
	case SPINDLE_EVENTS:
		CHECK_EQ(len, sizeof(int));
		if (fake.events_errno)
			return fail(fake.events_errno);
		fake.wanted = *(const int *)val;
		return 0;
	case SPINDLE_SYNC:
		CHECK_EQ(len, sizeof(int));
		fake.synced = *(const int *)val;
		return fake.sync_errno ? fail(fake.sync_errno) : 0;
	case SPINDLE_GROUP_LEAVE:
		CHECK_EQ(len, sizeof(int));
		CHECK_EQ(*(const int *)val, 0);
		__atomic_fetch_add(&fake.leaves, 1, __ATOMIC_RELEASE);
		sem_post(&fake.kick);
		return fake.leave_errno ? fail(fake.leave_errno) : 0;
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
	return 0;
}

uint32_t fake_rank(unsigned int lane, uint32_t view)
{
	return 10 + lane + view % 5;
}

struct spindle_event_member fake_member_of(uint32_t view, unsigned int i)
{
	bool gone = i >= fake.views[view % FAKE_VIEWS].members;

	return (struct spindle_event_member) {
		.rank = i,
		.uid = view * 100 + i,
		.flags = i ? 0 : SPINDLE_EM_SELF,
		.reason = gone ? SPINDLE_REASON_LEFT : SPINDLE_REASON_NONE,
	};
}

/* Is there such an event among what is not released? */
static const struct spindle_delivery *find_event(uint32_t type, uint32_t number)
{
	uint64_t i = ACQUIRE(&fake.user->rx_released), end = ACQUIRE(&fake.status->published);
	const struct spindle_delivery *d;

	for (; i < end; i++) {
		d = &fake.deliveries[i & (fake.c.deliveries - 1)];
		if (d->flags == SPINDLE_DELIVERY_EVENT && d->lane == type && d->pos == number)
			return d;
	}
	return NULL;
}

static int get_event(void *val, socklen_t *len)
{
	const struct spindle_delivery *d;
	struct spindle_event event;
	struct fake_view *view;
	unsigned int i;
	size_t need;

	if (*len < sizeof(event))
		return fail(EINVAL);
	if (!fake.map_flags)
		return fail(ENOTCONN);
	memcpy(&event, val, sizeof(event));
	d = find_event(event.type, event.number);
	if (!d)
		return fail(ENOENT);
	view = &fake.views[event.number % FAKE_VIEWS];
	need = sizeof(event) + (view->members + view->left) * sizeof(event.member[0]);
	if (*len < need) {
		*len = need;
		return fail(ERANGE);
	}
	*len = need;
	event.view = event.number;
	event.seq = d->seq;
	event.members = view->members;
	event.left = view->left;
	memcpy(val, &event, sizeof(event));
	for (i = 0; i < view->members + view->left; i++)
		((struct spindle_event *)val)->member[i] = fake_member_of(event.number, i);
	return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	struct spindle_group_info info = {
		.state = fake.state, .error = fake.error, .uid = fake.c.uid,
	};
	struct spindle_stable stable = { 0 };

	if (fd != fake.fd)
		return __real_getsockopt(fd, level, name, val, len);
	CHECK_EQ(level, SOL_SPINDLE);
	switch (name) {
	case SPINDLE_GROUP_INFO:
		CHECK_EQ(*len, sizeof(info));
		if (fake.looks++ < fake.forming)
			info.state = SPINDLE_STATE_FORMING;
		memcpy(val, &info, *len);
		return 0;
	case SPINDLE_GROUP_VIEW:
		return get_view(val, len);
	case SPINDLE_EVENT:
		return get_event(val, len);
	case SPINDLE_STABLE:
		CHECK_EQ(*len, sizeof(stable));
		if (fake.sync_errno)
			return fail(fake.sync_errno);
		stable.sent = fake.ntaken;
		stable.received = fake.ndelivered;
		memcpy(val, &stable, *len);
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

static void *region(uint64_t off, uint64_t *size, int *prot)
{
	unsigned int i;

	*prot = PROT_READ;
	*size = 2ULL * fake.c.window;
	if (off >= LANE_OFF) {
		i = (off - LANE_OFF) / LANE_STRIDE;
		CHECK_EQ(off, LANE_OFF + i * LANE_STRIDE);
		CHECK(i < fake.c.lanes);
		return fake.ring[i];
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
		return fake.ring[0];
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
		errno = fake.fail_map_errno ? fake.fail_map_errno : ENOMEM;
		return MAP_FAILED;
	}
	p = region(off, &size, &want);
	CHECK_EQ(len, size);
	CHECK_EQ(prot, want);
	CHECK_EQ(flags, MAP_SHARED | MAP_POPULATE);
	fake.maps++;
	return p;
}

int __wrap_munmap(void *addr, size_t len)
{
	unsigned int i;

	for (i = 0; i < fake.c.lanes; i++)
		if (addr == fake.ring[i])
			CHECK_EQ(len, 2 * fake.c.window);
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
	if (state == SPINDLE_STATE_FAILED) {
		/* the error is behind what was delivered */
		if (ACQUIRE(&fake.status->published) > RELAXED(&fake.user->rx_seen))
			return POLLIN | POLLOUT;
		return POLLIN | POLLOUT | POLLERR | POLLHUP;
	}
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

static size_t page_up(size_t size)
{
	return (size + 4095) & ~4095UL;
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
		.lanes = fake.c.lanes,
		.lanes_there = fake.c.there,
		.lane = fake.c.receiver ? -1 : 0,
	};
	fake.status = pages(r->status_size);
	fake.user = pages(r->user_size);
	fake.deliveries = pages(r->delivery_size);
	for (i = 0; i < fake.c.lanes; i++)
		fake.ring[i] = twice(fake.c.window);
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

unsigned int fake_take(void)
{
	uint64_t tail = ACQUIRE(&fake.user->tx_tail);
	uint64_t window = fake.c.window / SPINDLE_UNIT;
	unsigned int n = 0;

	for (; fake.ntaken < tail; n++) {
		struct spindle_submission *s =
			&fake.user->submissions[fake.ntaken & (fake.c.depth - 1)];
		uint64_t end = fake.pos + units(s->len);

		if (s->len > fake.c.max_msg || (s->flags && !(s->flags & SPINDLE_PRIVATE)) ||
		    end > fake.status->tx_head + window ||
		    fake.status->tx_base + fake.ntaken - fake.status->tx_freed >=
		    fake.c.depth - 1) {
			RELEASE(&fake.status->tx_error, EINVAL);
			return n;
		}
		fake.taken[fake.ntaken % FAKE_IN_FLIGHT] =
			(struct fake_message) { fake.pos, s->len, s->flags };
		fake.pos = end;
		fake.ntaken++;
	}
	RELEASE(&fake.status->tx_taken, fake.ntaken);
	return n;
}

static bool delivery_room(void)
{
	return fake.status->published - fake.collected < fake.c.deliveries;
}

static void publish(uint32_t lane, uint64_t pos, uint32_t len, uint32_t flags)
{
	uint64_t entry = fake.status->published;

	CHECK(delivery_room());
	fake.deliveries[entry & (fake.c.deliveries - 1)] = (struct spindle_delivery) {
		.seq = fake.seq,
		.lane = lane,
		.pos = flags & SPINDLE_DELIVERY_EVENT ? pos :
		       pos % (fake.c.window / SPINDLE_UNIT),
		.len = len,
		.flags = flags,
	};
	fake.seq += 1 + entry % 3;
	fake.end[entry % FAKE_IN_FLIGHT] = flags && !(flags & SPINDLE_PRIVATE) ?
					   ~0ULL : pos + units(len);
	RELEASE(&fake.status->published, entry + 1);
}

static void publish_message(unsigned int lane, uint64_t pos, uint32_t len, uint32_t flags)
{
	publish(lane | fake_rank(lane, fake.view) << SPINDLE_DELIVERY_RANK_SHIFT, pos, len,
		flags);
}

bool fake_deliver_own(void)
{
	struct fake_message *m = &fake.taken[fake.ndelivered % FAKE_IN_FLIGHT];

	if (fake.ndelivered == fake.ntaken || !delivery_room())
		return false;
	fake.ndelivered++;
	publish_message(0, m->pos, m->len, m->flags);
	return true;
}

bool fake_room(unsigned int lane, uint32_t len)
{
	return delivery_room() && fake.lane_pos[lane] + units(len) <=
	       fake.lane_head[lane] + fake.c.window / SPINDLE_UNIT;
}

void fake_deliver(unsigned int lane, const void *data, uint32_t len)
{
	fake_deliver_private(lane, data, len, 0);
}

void fake_deliver_private(unsigned int lane, const void *data, uint32_t len, uint32_t flags)
{
	uint64_t pos = fake.lane_pos[lane];

	CHECK(fake_room(lane, len));
	memcpy(fake.ring[lane] + pos * SPINDLE_UNIT % fake.c.window, data, len);
	fake.lane_pos[lane] += units(len);
	publish_message(lane, pos, len, flags);
}

void fake_deliver_flags(unsigned int lane, uint32_t flags)
{
	publish(lane, 0, 0, flags);
}

void fake_deliver_view(unsigned int members, unsigned int left)
{
	fake.view++;
	fake.views[fake.view % FAKE_VIEWS] = (struct fake_view) { members, left };
	publish(SPINDLE_EVENT_VIEW, fake.view, 0, SPINDLE_DELIVERY_EVENT);
}

unsigned int fake_collect(void)
{
	uint64_t released = ACQUIRE(&fake.user->rx_released);
	uint64_t head = fake.status->tx_head, freed = fake.status->tx_freed;
	unsigned int n = 0;

	CHECK(released >= fake.collected);
	CHECK(released <= fake.status->published);
	for (; fake.collected < released; fake.collected++, n++) {
		uint32_t lane = fake.deliveries[fake.collected & (fake.c.deliveries - 1)].lane &
				SPINDLE_DELIVERY_LANE;
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

void fake_set_flags(uint32_t flags)
{
	__atomic_store_n(&fake.status->flags, flags, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
