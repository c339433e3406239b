// SPDX-License-Identifier: GPL-2.0
/*
 * One failure at a time, at each place in turn; scripts/faults runs this.
 *
 *	faults calls MOST [SITE]	calls of the module, wherever they are made
 *					(kmod/fault.h): at each site the 1st to the
 *					MOST-th that the life of a group makes
 *	faults nth STEP [OP]		each STEP-th allocation in a system call, until
 *					none is left to fail (/proc/self/fail-nth)
 *	faults load STEP FILE PARAMS	likewise, while the module is loaded
 *
 * Each injection is one line: KIND PLACE NTH survived|FAILED HOW. After it no
 * object of the device is left, and a group of the same nodes must work.
 */
#include "spindle_selftest.h"

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define FAULTS		"/sys/kernel/debug/spindle/faults"
#define MEMBERS		5
#define MOST_LOG	256
#define OBJECT		100000
#define PATIENCE	(20 * scale)	/* seconds: nothing takes so long */

static unsigned int scale = 1;

/* What a child says of how it went; shared with it. */
static char *told;
#define TOLD		400

static __attribute__((format(printf, 1, 2))) void tell(const char *fmt, ...)
{
	size_t len = strlen(told);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(told + len, TOLD - len, fmt, ap);
	va_end(ap);
}

/* Errors that say that there was a failure, not that a call was wrong. */
static bool clean(int err)
{
	static const int good[] = {
		ENOMEM, ENOBUFS, EIO, EAGAIN, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH,
		ECONNREFUSED, ECONNABORTED, ECONNRESET, ENOTCONN, ETIMEDOUT, ESHUTDOWN,
		EPIPE, ENETRESET, ENODEV, ENFILE,
		ENETDOWN,	/* a minority is left */
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		if (err == good[i])
			return true;
	return false;
}

/* Objects of the RDMA device, by rdma-core's numbers */

struct held {
	uint64_t pd, qp, cm_id, mr;
};

static struct nlattr *nla_next(struct nlattr *a)
{
	return (void *)((char *)a + NLA_ALIGN(a->nla_len));
}

static void held_entry(struct nlattr *entry, struct held *held)
{
	struct nlattr *end = nla_next(entry), *a;
	const char *name = "";
	uint64_t n = 0;

	for (a = entry + 1; a < end; a = nla_next(a)) {
		switch (a->nla_type & NLA_TYPE_MASK) {
		case RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME:
			name = (char *)(a + 1);
			break;
		case RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR:
			memcpy(&n, a + 1, sizeof(n));
			break;
		}
	}
	if (!strcmp(name, "pd"))
		held->pd = n;
	if (!strcmp(name, "qp"))
		held->qp = n;
	if (!strcmp(name, "cm_id"))
		held->cm_id = n;
	if (!strcmp(name, "mr"))
		held->mr = n;
}

/* What is held of the one device; queues of completions are the core's to keep. */
static struct held held_now(void)
{
	struct {
		struct nlmsghdr nlh;
		struct nlattr attr;
		uint32_t index;
	} ask = {
		.nlh = {
			.nlmsg_len = sizeof(ask),
			.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET),
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.attr = { sizeof(ask.attr) + 4, RDMA_NLDEV_ATTR_DEV_INDEX },
	};
	int fd = CHECK_OK(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
	struct held held = { 0 };
	struct nlattr *a, *e, *end;
	static char buf[16384];
	struct nlmsghdr *nlh;

	/* The first device may have come and gone: its number grows. */
	for (ask.index = 0; ; ask.index++) {
		if (ask.index == 64)
			FAIL("no RDMA device");
		CHECK_OK(send(fd, &ask, sizeof(ask), 0));
		CHECK_OK(recv(fd, buf, sizeof(buf), 0));
		nlh = (void *)buf;
		if (nlh->nlmsg_type != NLMSG_ERROR)
			break;
	}
	end = (void *)(buf + nlh->nlmsg_len);
	for (a = (void *)(nlh + 1); a < end; a = nla_next(a)) {
		if ((a->nla_type & NLA_TYPE_MASK) != RDMA_NLDEV_ATTR_RES_SUMMARY)
			continue;
		for (e = a + 1; e < nla_next(a); e = nla_next(e))
			held_entry(e, &held);
	}
	close(fd);
	return held;
}

static struct held before;

/* All that was made is gone again. */
static bool let_go(void)
{
	double end = st_now() + PATIENCE;
	struct held held;
	char refs[32] = "";

	for (;;) {
		held = held_now();
		if (st_read_file("/sys/module/spindle/refcnt", refs, sizeof(refs)) &&
		    atoi(refs) == 0 && !memcmp(&held, &before, sizeof(held)))
			return true;
		if (st_now() > end)
			break;
		st_pause_us(1000);
	}
	tell(" LEFT: pd %llu of %llu, qp %llu of %llu, cm_id %llu of %llu, mr %llu of %llu, refs %s",
	     (long long)held.pd, (long long)before.pd, (long long)held.qp, (long long)before.qp,
	     (long long)held.cm_id, (long long)before.cm_id, (long long)held.mr,
	     (long long)before.mr, refs);
	return false;
}

/* The life of a group, in which any call may fail once */

struct label {
	uint32_t sender;
	uint32_t nr;
	uint32_t len;
};

struct one {
	int fd;			/* -1: not there, or no more */
	bool late;		/* came when there were messages */
	uint32_t sent;
	struct label got[MOST_LOG];
	unsigned int ngot;
};

static struct one ones[MEMBERS];
static char group_name[SPINDLE_NAME_LEN];
static unsigned int trouble;	/* errors seen */

static unsigned char filler(const struct label *label, size_t at)
{
	return label->sender * 91 + label->nr * 7 + at;
}

/* It could not do something, and says so. */
static void errs(unsigned int i, const char *what)
{
	int err = errno;

	trouble++;
	if (!clean(err))
		FAIL("%s of member %u: %s is no clean error", what, i, st_err(err));
	if (trouble < 6)
		tell(" %s(%u)=%s", what, i, st_err(err));
}

static void lost(unsigned int i, const char *what)
{
	errs(i, what);
	CHECK_OK(close(ones[i].fd));
	ones[i].fd = -1;
}

static bool open_one(unsigned int i)
{
	struct spindle_group_join join = { 0 };
	struct spindle_group_create create;
	struct st_config c = {
		.members = 3, .max_members = 8, .suspect_ms = 3000 * scale, .max_object = 1 << 20,
	};
	int yes = 1, want = SPINDLE_WANT_ALL;
	struct one *o = &ones[i];
	unsigned int k;
	int ret;

	o->fd = socket(st_family(), SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (o->fd < 0) {
		errs(i, "socket");
		return false;
	}
	if (st_bind(o->fd, st_addr(i % 4))) {
		lost(i, "bind");
		return false;
	}
	if (i == 1 && setsockopt(o->fd, SOL_SPINDLE, SPINDLE_DETACHED, &yes, sizeof(yes))) {
		lost(i, "detach");
		return false;
	}
	if (i == 2 && setsockopt(o->fd, SOL_SPINDLE, SPINDLE_EVENTS, &want, sizeof(want))) {
		lost(i, "events");
		return false;
	}
	if (!i) {
		create = st_create_of(&c, group_name);
		ret = st_create(o->fd, &create);
	} else {
		memcpy(join.name, group_name, sizeof(join.name));
		for (k = 0; k < i && ones[k].fd < 0; k++)
			;
		st_contact(&join, st_addr(k % 4));
		ret = st_join(o->fd, &join);
		/* there is no such group where it has just failed */
		if (ret && errno == ENOENT &&
		    (k == i || st_info(ones[k].fd).state == SPINDLE_STATE_FAILED))
			errno = EHOSTDOWN;
	}
	if (ret) {
		lost(i, i ? "join" : "create");
		return false;
	}
	return true;
}

/* Wait until a member is in: false when it is told that it never will be. */
static bool formed(unsigned int i)
{
	double end = st_now() + PATIENCE;
	struct spindle_group_info info;

	while ((info = st_info(ones[i].fd)).state == SPINDLE_STATE_FORMING) {
		if (st_now() > end)
			FAIL("member %u waits for its first view%s", i, told);
		st_pause_us(300);
	}
	if (info.state == SPINDLE_STATE_ACTIVE)
		return true;
	errno = info.error ?: ENOTCONN;
	lost(i, "forming");
	return false;
}

/* Is it this call that lacked memory, and not the end of the group here? */
static bool passing(unsigned int i)
{
	int err = errno;
	bool ends = st_info(ones[i].fd).state >= SPINDLE_STATE_FAILED;

	errno = err;
	return err == ENOMEM && !ends;
}

static bool take(unsigned int i)
{
	static unsigned char buf[OBJECT + 100];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct one *o = &ones[i];
	struct label label;
	ssize_t n, at;

	n = recvmsg(o->fd, &msg, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < 0 && passing(i)) {
		/* it is still there to be read */
		errs(i, "recv");
		return true;
	}
	if (n < 0 || !(msg.msg_flags & MSG_EOR)) {
		if (n >= 0)
			errno = EPIPE;
		lost(i, "recv");
		return false;
	}
	if (msg.msg_flags & MSG_SPINDLE_EVENT)
		return true;
	CHECK(n >= (ssize_t)sizeof(label) && !(msg.msg_flags & MSG_TRUNC));
	memcpy(&label, buf, sizeof(label));
	CHECK_EQ(label.len, n);
	for (at = sizeof(label); at < n; at++)
		if (buf[at] != filler(&label, at))
			FAIL("member %u: byte %zd of %u/%u is not what was sent", i, at,
			     label.sender, label.nr);
	CHECK(o->ngot < MOST_LOG && label.sender < MEMBERS);
	o->got[o->ngot++] = label;
	return true;
}

static void say(unsigned int i, size_t len)
{
	static unsigned char buf[OBJECT];
	struct one *o = &ones[i];
	struct label label = { i, o->sent, len };
	size_t at;
	ssize_t n;

	for (at = sizeof(label); at < len; at++)
		buf[at] = filler(&label, at);
	memcpy(buf, &label, sizeof(label));
	n = send(o->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n == (ssize_t)len) {
		o->sent++;
		return;
	}
	CHECK(n < 0);
	if (errno == EAGAIN)
		return;
	if (passing(i))
		errs(i, "send");	/* nothing was sent: once more */
	else
		lost(i, "send");
}

/* How many of @sender's messages a member has. */
static unsigned int has(const struct one *o, unsigned int sender)
{
	unsigned int i, n = 0;

	for (i = 0; i < o->ngot; i++)
		if (o->got[i].sender == sender)
			n = o->got[i].nr + 1;
	return n;
}

/* All who are there send up to so many, and have received them of each other. */
static bool settled(const uint32_t *upto)
{
	unsigned int i, k;

	for (i = 0; i < MEMBERS; i++) {
		if (ones[i].fd < 0)
			continue;
		if (ones[i].sent < upto[i])
			return false;
		for (k = 0; k < MEMBERS; k++)
			if (ones[k].fd >= 0 && has(&ones[i], k) < ones[k].sent)
				return false;
	}
	return true;
}

static void pump(unsigned int each)
{
	double end = st_now() + PATIENCE;
	uint32_t upto[MEMBERS];
	unsigned int i, us = 50;
	bool news;

	for (i = 0; i < MEMBERS; i++)
		upto[i] = ones[i].sent + each;
	while (!settled(upto)) {
		news = false;
		for (i = 0; i < MEMBERS; i++) {
			if (ones[i].fd >= 0 && ones[i].sent < upto[i])
				/* each third is an object */
				say(i, ones[i].sent % 3 == 1 ? OBJECT : 100);
			while (ones[i].fd >= 0 && take(i))
				news = true;
		}
		if (st_now() > end) {
			for (i = 0; i < MEMBERS; i++)
				if (ones[i].fd >= 0)
					tell(" [%u: state %u view %llu sent %u got %u]", i,
					     st_info(ones[i].fd).state,
					     (long long)st_info(ones[i].fd).view, ones[i].sent,
					     ones[i].ngot);
			FAIL("messages do not flow:%s", told);
		}
		if (!news) {
			st_pause_us(us);
			us = us < 5000 ? us * 2 : us;
		} else {
			us = 50;
		}
	}
}

/* No message of a sender is missing or comes twice; all is in one order. */
static void judge(void)
{
	const struct one *longest = NULL;
	unsigned int i, k, at;

	for (i = 0; i < MEMBERS; i++) {
		uint32_t next[MEMBERS];
		const struct one *o = &ones[i];

		memset(next, 0xff, sizeof(next));
		for (k = 0; k < o->ngot; k++) {
			const struct label *l = &o->got[k];

			if (next[l->sender] == ~0U && (o->late || !l->nr))
				next[l->sender] = l->nr;
			if (l->nr != next[l->sender])
				FAIL("member %u: %u/%u comes where %d is due", i, l->sender,
				     l->nr, (int)next[l->sender]);
			next[l->sender]++;
		}
		if (!o->late && (!longest || o->ngot > longest->ngot))
			longest = o;
	}
	for (i = 0; longest && i < MEMBERS; i++) {
		const struct one *o = &ones[i];

		for (at = 0; o->late && o->ngot && at < longest->ngot; at++)
			if (!memcmp(&longest->got[at], &o->got[0], sizeof(o->got[0])))
				break;
		if (!o->late)
			at = 0;
		for (k = 0; k < o->ngot && at + k < longest->ngot; k++)
			if (memcmp(&longest->got[at + k], &o->got[k], sizeof(o->got[k])))
				FAIL("members %u and %u: another order at %u: %u/%u, %u/%u", i,
				     (int)(longest - ones), at + k, o->got[k].sender,
				     o->got[k].nr, longest->got[at + k].sender,
				     longest->got[at + k].nr);
	}
}

/* Its rings are mapped, and looked at. */
static void map_one(unsigned int i)
{
	int how = SPINDLE_MAP_ALL;
	struct spindle_rings r;
	socklen_t len = sizeof(r);
	void *at;

	if (setsockopt(ones[i].fd, SOL_SPINDLE, SPINDLE_MAP, &how, sizeof(how))) {
		errs(i, "map");
		return;
	}
	CHECK_OK(getsockopt(ones[i].fd, SOL_SPINDLE, SPINDLE_RINGS, &r, &len));
	at = mmap(NULL, r.status_size, PROT_READ, MAP_SHARED, ones[i].fd, r.status_off);
	if (at == MAP_FAILED) {
		errs(i, "mmap");
		return;
	}
	CHECK_EQ(((struct spindle_status *)at)->error, 0);
	munmap(at, r.status_size);
}

static void close_all(void)
{
	unsigned int i;

	for (i = 0; i < MEMBERS; i++) {
		if (ones[i].fd >= 0)
			CHECK_OK(close(ones[i].fd));
		ones[i].fd = -1;
	}
}

/* Founded by three, one more comes, one goes, one comes and maps; all close. */
static void life(bool brief)
{
	unsigned int i;

	st_name(group_name);
	for (i = 0; i < MEMBERS; i++) {
		memset(&ones[i], 0, sizeof(ones[i]));
		ones[i].fd = -1;
	}
	for (i = 0; i < 3; i++)
		if (!open_one(i))
			goto out;
	for (i = 0; i < 3; i++)
		if (!formed(i))
			goto out;
	pump(3);
	if (brief)
		goto out;
	ones[3].late = true;
	if (open_one(3))
		formed(3);
	pump(3);
	if (ones[1].fd >= 0)
		CHECK_OK(close(ones[1].fd));
	ones[1].fd = -1;
	pump(1);
	ones[4].late = true;
	if (open_one(4) && formed(4))
		map_one(4);
out:
	close_all();
	judge();
}

static void healthy(void)
{
	life(true);
	if (trouble)
		FAIL("a group without a fault:%s", told);
}

static void faulty(void)
{
	life(false);
}

/* Where in the kernel a process is. */
static void stuck(pid_t pid)
{
	static const char *const files[] = { "syscall", "wchan", "stack" };
	char path[64], text[512];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
		if (st_read_file(path, text, sizeof(text)))
			printf("# %s: %s\n", files[i], text);
	}
	st_write_file("/proc/sysrq-trigger", "w");
}

/* Run it in a child: a word of how it went, NULL when it went well. */
static const char *in_child(void (*fn)(void))
{
	static char why[64];
	int status;
	pid_t pid;

	fflush(stdout);
	pid = CHECK_OK(fork());
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn();
		_exit(0);
	}
	if (st_wait_child(pid, 3 * PATIENCE, &status)) {
		stuck(pid);
		kill(pid, SIGKILL);
		if (st_wait_child(pid, PATIENCE, &status))
			return "cannot be killed";
		return "hangs";
	}
	if (!status)
		return NULL;
	snprintf(why, sizeof(why), WIFSIGNALED(status) ? "signal %d" : "status %d",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return why;
}

/* Calls of the module */

struct site {
	char name[96];
	unsigned int calls;
};

static struct site sites[512];
static unsigned int nsites;

/* What the file says; true when something was injected. */
static bool read_sites(void)
{
	char line[160], done[96] = "-";
	FILE *f = fopen(FAULTS, "re");

	if (!f)
		FAIL(FAULTS ": %s", st_err(errno));
	nsites = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "injected %95s", done) == 1)
			continue;
		CHECK(nsites < ARRAY_SIZE(sites));
		CHECK_EQ(sscanf(line, "%95s %u", sites[nsites].name, &sites[nsites].calls), 2);
		nsites++;
	}
	fclose(f);
	return strcmp(done, "-");
}

static unsigned int failures;

static void report(const char *kind, const char *place, unsigned int nth, const char *why,
		   double start)
{
	failures += !!why;
	printf("%s %s %u %s%s%s%s (%.2f s)\n", kind, place, nth, why ? "FAILED " : "survived",
	       why ?: "", *told ? ":" : " unnoticed", told, st_now() - start);
}

/* After an injection: is everything gone, and can all begin again? */
static const char *aftermath(const char *why)
{
	if (!let_go() && !why)
		why = "left behind";
	if (!why) {
		size_t len = strlen(told);

		why = in_child(healthy);
		if (!why)
			told[len] = 0;
		if (!let_go() && !why)
			why = "left behind";
	}
	return why;
}

static void inject_call(const char *name, unsigned int nth)
{
	double start = st_now();
	const char *why;
	char text[256];
	bool hit;

	*told = 0;
	snprintf(text, sizeof(text), "<3>faults: %.95s %u\n", name, nth);
	st_write_file("/dev/kmsg", text);
	snprintf(text, sizeof(text), "%.95s %u", name, nth);
	CHECK(st_write_file(FAULTS, text));
	why = in_child(faulty);
	/* some are made when all is closed */
	if (!let_go() && !why)
		why = "left behind";
	hit = read_sites();
	CHECK(st_write_file(FAULTS, "off"));
	if (!hit && !why) {
		printf("# %s %u: not reached\n", name, nth);
		return;
	}
	report("call", name, nth, aftermath(why), start);
}

static int sweep_calls(unsigned int most, const char *only)
{
	static struct site found[ARRAY_SIZE(sites)];
	unsigned int n, i, k;

	/* queues of completions are shared and kept from here on */
	CHECK(!in_child(faulty) && let_go());
	CHECK(st_write_file(FAULTS, "count"));
	CHECK(!in_child(faulty) && let_go());
	CHECK(!read_sites());
	memcpy(found, sites, sizeof(found));
	n = nsites;
	for (i = 0; i < n; i++)
		printf("# site %s: %u calls\n", found[i].name, found[i].calls);
	for (i = 0; i < n; i++) {
		if (only && strcmp(only, found[i].name))
			continue;
		/* the first ones, then further and further on */
		for (k = 1; k <= found[i].calls; k += k < most ? 1 : k)
			if (k <= most || most > 2)
				inject_call(found[i].name, k);
	}
	return failures;
}

/* Allocations of a system call */

static unsigned int nth;	/* which of them fails; 0: none */
static bool fired;

/*
 * The result of a call in which the nth allocation fails, or none does. Nothing
 * is allocated between the two.
 */
#define NTH(call)							\
({									\
	static int __fd = -1;						\
	char __text[16] = "";						\
	long long __ret;						\
	int __err, __len;						\
									\
	if (__fd < 0)							\
		__fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);	\
	__len = snprintf(__text, sizeof(__text), "%u", nth);		\
	CHECK_EQ(pwrite(__fd, __text, __len, 0), __len);		\
	errno = 0;							\
	__ret = (long long)(call);					\
	__err = errno;							\
	CHECK(pread(__fd, __text, sizeof(__text) - 1, 0) > 0);		\
	CHECK_EQ(pwrite(__fd, "0", 1, 0), 1);				\
	fired = nth && !atoi(__text);					\
	if (__ret < 0 && (!fired || !clean(__err)))			\
		FAIL("%s: %s%s", #call, st_err(__err),			\
		     fired ? " is no clean error" : ", though nothing failed"); \
	if (fired && __ret < 0)						\
		tell(" %s", st_err(__err));				\
	errno = __err;							\
	__ret;								\
})

static struct st_group pair;

static struct spindle_group_join pair_join(unsigned int contact)
{
	struct spindle_group_join join = { 0 };

	memcpy(join.name, pair.name, sizeof(join.name));
	st_contact(&join, st_addr(contact));
	return join;
}

/* Two members on two nodes, or one alone. */
static void pair_open(unsigned int members, bool detached)
{
	struct st_config c = { .members = members, .nodes = members, .max_object = 1 << 20 };
	int yes = 1;

	memset(&pair, 0, sizeof(pair));
	st_open(&pair, &c);
	if (detached)
		CHECK_OK(setsockopt(pair.fd[members - 1], SOL_SPINDLE, SPINDLE_DETACHED, &yes,
				    sizeof(yes)));
}

static void pair_close(void)
{
	unsigned int i;

	for (i = 0; i < pair.n; i++)
		CHECK_OK(close(pair.fd[i]));
}

static void op_socket(void)
{
	int family = st_family();
	int fd = NTH(socket(family, SOCK_SEQPACKET, 0));

	if (fd >= 0)
		close(fd);
	close(st_socket(0));
}

/* What fails can be done again at once, on the same socket. */
static void op_bind(void)
{
	int fd = st_socket(0);
	struct sockaddr_in sin = st_in(st_addr(0));

	if (NTH(bind(fd, (struct sockaddr *)&sin, sizeof(sin))))
		CHECK_OK(st_bind(fd, st_addr(0)));
	close(fd);
}

/*
 * The first view begins in the call that completes it. When it cannot, the
 * group fails, and says so as ever; that is no error of the call.
 */
static bool begun(int fd)
{
	double end = st_now() + PATIENCE;
	struct spindle_group_info info;

	while ((info = st_info(fd)).state == SPINDLE_STATE_FORMING) {
		if (st_now() > end)
			FAIL("still forming after %u s", PATIENCE);
		st_pause_us(300);
	}
	if (info.state == SPINDLE_STATE_ACTIVE)
		return true;
	if (!fired || !clean(info.error))
		FAIL("state %u, error %s", info.state, st_err(info.error));
	CHECK_EQ(st_so_error(fd), info.error);
	tell(" the group: %s", st_err(info.error));
	return false;
}

static void op_create(void)
{
	struct st_config c = { .members = 1 };
	struct spindle_group_create create;
	int fd = st_bound(0);

	st_name(pair.name);
	create = st_create_of(&c, pair.name);
	if (NTH(st_create(fd, &create)))
		CHECK_OK(st_create(fd, &create));
	if (begun(fd)) {
		st_say(fd, "created");
		st_expect(fd, "created");
	}
	close(fd);
}

static void join_on(unsigned int node)
{
	struct st_config c = { .members = 2, .nodes = 2 };
	struct spindle_group_join join;
	int fd;

	memset(&pair, 0, sizeof(pair));
	st_open_but(&pair, &c, 1);
	join = pair_join(0);
	fd = st_bound(node);
	if (NTH(st_join(fd, &join)))
		CHECK_OK(st_join(fd, &join));
	if (begun(fd) && begun(pair.fd[0])) {
		st_say(fd, "joined");
		st_expect(pair.fd[0], "joined");
	}
	close(fd);
	pair_close();
}

static void op_join(void)
{
	join_on(1);
}

static void op_join_beside(void)
{
	join_on(0);
}

static void op_join_later(void)
{
	struct spindle_group_join join;
	int fd;

	pair_open(2, false);
	join = pair_join(0);
	fd = st_bound(2);
	if (NTH(st_join(fd, &join)))
		CHECK_OK(st_join(fd, &join));
	st_wait_members(fd, 3);
	st_say(fd, "came");
	st_expect(pair.fd[1], "came");
	close(fd);
	pair_close();
}

static void op_map(void)
{
	int how = SPINDLE_MAP_ALL;

	pair_open(2, false);
	if (NTH(setsockopt(pair.fd[1], SOL_SPINDLE, SPINDLE_MAP, &how, sizeof(how))))
		CHECK_OK(setsockopt(pair.fd[1], SOL_SPINDLE, SPINDLE_MAP, &how, sizeof(how)));
	pair_close();
}

static void op_mmap(void)
{
	int how = SPINDLE_MAP_ALL;
	struct spindle_rings r;
	socklen_t len = sizeof(r);
	unsigned int i;
	void *at;

	pair_open(1, false);
	CHECK_OK(setsockopt(pair.fd[0], SOL_SPINDLE, SPINDLE_MAP, &how, sizeof(how)));
	CHECK_OK(getsockopt(pair.fd[0], SOL_SPINDLE, SPINDLE_RINGS, &r, &len));
	for (i = 0; i < 2; i++) {
		size_t size = i ? 2 * r.window : r.user_size;

		/* the faults of a sweep are counted over both */
		if (i && fired)
			nth = 0;
		at = (void *)(long)NTH(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
					    pair.fd[0], i ? r.own_off : r.user_off));
		if (at != MAP_FAILED) {
			memset(at, 0, 64);
			CHECK_OK(munmap(at, size));
		}
		if (fired)
			break;
	}
	pair_close();
}

static void send_of(size_t len)
{
	static char buf[OBJECT], got[OBJECT];
	unsigned int i;

	pair_open(2, false);
	memset(buf, nth, len);
	if (NTH(send(pair.fd[0], buf, len, MSG_NOSIGNAL)) < 0)
		CHECK_EQ(CHECK_OK(send(pair.fd[0], buf, len, MSG_NOSIGNAL)), len);
	st_say(pair.fd[0], "next");
	for (i = 0; i < 2; i++) {
		CHECK_EQ(CHECK_OK(recv(pair.fd[i], got, sizeof(got), 0)), len);
		CHECK(!memcmp(buf, got, len));
		st_expect(pair.fd[i], "next");
	}
	pair_close();
}

static void op_send(void)
{
	send_of(1000);
}

static void op_send_object(void)
{
	send_of(OBJECT);
}

static void recv_of(size_t len, bool detached)
{
	static char buf[OBJECT], got[OBJECT];

	pair_open(2, detached);
	memset(buf, nth, len);
	/* a fault of these pages is not to be the one */
	memset(got, ~nth, sizeof(got));
	CHECK_EQ(CHECK_OK(send(pair.fd[0], buf, len, MSG_NOSIGNAL)), len);
	st_say(pair.fd[0], "next");
	st_wait_events(pair.fd[1], POLLIN);
	if (NTH(recv(pair.fd[1], got, sizeof(got), 0)) < 0)
		CHECK_EQ(CHECK_OK(recv(pair.fd[1], got, sizeof(got), 0)), len);
	CHECK(!memcmp(buf, got, len));
	st_expect(pair.fd[1], "next");
	pair_close();
}

static void op_recv(void)
{
	recv_of(1000, false);
}

static void op_recv_object(void)
{
	recv_of(OBJECT, false);
}

/* An object as a file, and that mapped. */
static void object_file(bool mapping)
{
	static unsigned char buf[OBJECT];
	struct spindle_object_fd e = { 0 };
	socklen_t size = sizeof(e);
	void *at;

	pair_open(2, false);
	memset(buf, nth, sizeof(buf));
	CHECK_EQ(CHECK_OK(send(pair.fd[0], buf, sizeof(buf), MSG_NOSIGNAL)), sizeof(buf));
	st_wait_events(pair.fd[1], POLLIN);
	if (mapping ||
	    NTH(getsockopt(pair.fd[1], SOL_SPINDLE, SPINDLE_OBJECT_FD, &e, &size)))
		CHECK_OK(getsockopt(pair.fd[1], SOL_SPINDLE, SPINDLE_OBJECT_FD, &e, &size));
	at = MAP_FAILED;
	if (mapping)
		at = (void *)(long)NTH(mmap(NULL, sizeof(buf), PROT_READ, MAP_SHARED, e.fd, 0));
	if (at == MAP_FAILED)
		at = mmap(NULL, sizeof(buf), PROT_READ, MAP_SHARED, e.fd, 0);
	CHECK(at != MAP_FAILED);
	close(e.fd);
	CHECK_EQ(CHECK_OK(recv(pair.fd[1], NULL, 0, MSG_TRUNC)), sizeof(buf));
	pair_close();
	CHECK(!memcmp(at, buf, sizeof(buf)));
	CHECK_OK(munmap(at, sizeof(buf)));
}

static void op_object_fd(void)
{
	object_file(false);
}

static void op_object_mmap(void)
{
	object_file(true);
}

static void op_recv_detached(void)
{
	recv_of(1000, true);
}

static void op_recv_event(void)
{
	struct spindle_event_member space[64] = { 0 };
	int want = SPINDLE_WANT_ALL, fd = st_bound(0);
	struct st_config c = { .members = 1 };
	struct spindle_group_create create;

	st_name(pair.name);
	create = st_create_of(&c, pair.name);
	CHECK_OK(setsockopt(fd, SOL_SPINDLE, SPINDLE_EVENTS, &want, sizeof(want)));
	CHECK_OK(st_create(fd, &create));
	st_wait_events(fd, POLLIN);
	if (NTH(recv(fd, space, sizeof(space), 0)) < 0)
		CHECK_OK(recv(fd, space, sizeof(space), 0));
	CHECK_EQ(((struct spindle_event *)space)->type, SPINDLE_EVENT_VIEW);
	close(fd);
}

static void op_detach(void)
{
	int yes = 1;

	pair_open(2, false);
	st_say(pair.fd[0], "kept");
	st_wait_events(pair.fd[1], POLLIN);
	NTH(setsockopt(pair.fd[1], SOL_SPINDLE, SPINDLE_DETACHED, &yes, sizeof(yes)));
	st_expect(pair.fd[1], "kept");
	pair_close();
}

static void op_info(void)
{
	struct sockaddr_spindle view[16];
	struct spindle_group_info info;
	socklen_t len = sizeof(info);

	pair_open(2, false);
	NTH(getsockopt(pair.fd[0], SOL_SPINDLE, SPINDLE_GROUP_INFO, &info, &len));
	if (!fired) {
		len = sizeof(view);
		NTH(getsockopt(pair.fd[0], SOL_SPINDLE, SPINDLE_GROUP_VIEW, view, &len));
	}
	pair_close();
}

/* Whoever goes, the other one goes on. */
static void gone(int fd)
{
	st_wait_members(fd, 1);
	st_say(fd, "alone");
	st_expect(fd, "alone");
}

static void op_leave(void)
{
	int zero = 0;

	pair_open(2, false);
	if (NTH(setsockopt(pair.fd[1], SOL_SPINDLE, SPINDLE_GROUP_LEAVE, &zero, sizeof(zero))))
		CHECK_OK(setsockopt(pair.fd[1], SOL_SPINDLE, SPINDLE_GROUP_LEAVE, &zero,
				    sizeof(zero)));
	gone(pair.fd[0]);
	pair_close();
}

static void op_shutdown(void)
{
	pair_open(2, false);
	if (NTH(shutdown(pair.fd[1], SHUT_WR)))
		CHECK_OK(shutdown(pair.fd[1], SHUT_WR));
	st_say(pair.fd[0], "heard");
	st_expect(pair.fd[1], "heard");
	pair_close();
}

static void op_close(void)
{
	pair_open(2, false);
	pair.n = 1;
	CHECK_EQ(NTH(close(pair.fd[1])), 0);
	gone(pair.fd[0]);
	pair_close();
}

static const struct op {
	const char *name;
	void (*fn)(void);
} ops[] = {
	{ "socket", op_socket },
	{ "bind", op_bind },
	{ "create", op_create },
	{ "join", op_join },
	{ "join-beside", op_join_beside },
	{ "join-later", op_join_later },
	{ "map", op_map },
	{ "mmap", op_mmap },
	{ "send", op_send },
	{ "send-object", op_send_object },
	{ "recv", op_recv },
	{ "recv-object", op_recv_object },
	{ "object-fd", op_object_fd },
	{ "object-mmap", op_object_mmap },
	{ "recv-detached", op_recv_detached },
	{ "recv-event", op_recv_event },
	{ "detach", op_detach },
	{ "info", op_info },
	{ "leave", op_leave },
	{ "shutdown", op_shutdown },
	{ "close", op_close },
};

/* A number in debugfs. */
static void knob(const char *dir, const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", dir, name);
	if (!st_write_file(path, value))
		FAIL("%s: %s", path, st_err(errno));
}

/* Any allocation may fail, and nothing is said of it. */
static void knobs(void)
{
	knob("failslab", "ignore-gfp-wait", "N");
	knob("failslab", "verbose", "0");
	knob("fail_page_alloc", "ignore-gfp-wait", "N");
	knob("fail_page_alloc", "ignore-gfp-highmem", "N");
	knob("fail_page_alloc", "min-order", "0");
	knob("fail_page_alloc", "verbose", "0");
}

static const struct op *op;
static unsigned int *shared_nth;

static void op_child(void)
{
	unsigned int n = *shared_nth;

	nth = n;
	fired = false;
	op->fn();
	if (!fired)
		*shared_nth = 0;
}

static int sweep_nth(unsigned int stride, const char *only)
{
	unsigned int i, n;

	knobs();
	shared_nth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared_nth != MAP_FAILED);
	CHECK(!in_child(healthy) && let_go());
	before = held_now();
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		op = &ops[i];
		if (only && strcmp(only, op->name))
			continue;
		for (n = 1; ; n += stride) {
			double start = st_now();
			const char *why;

			*told = 0;
			*shared_nth = n;
			why = in_child(op_child);
			if (!why && !*shared_nth)
				break;
			report("nth", op->name, n, aftermath(why), start);
			if (why && n > 1000)
				break;
		}
		printf("# %s: %u allocations\n", op->name, n > stride ? n - stride : 0);
	}
	return failures;
}

/* The module */

static int load_with(const char *file, const char *params)
{
	int fd = CHECK_OK(open(file, O_RDONLY | O_CLOEXEC));
	int ret = NTH(syscall(SYS_finit_module, fd, params, 0));

	close(fd);
	return ret;
}

static void unload(void)
{
	WAIT_UNTIL(!AGAIN(syscall(SYS_delete_module, "spindle", O_NONBLOCK), EAGAIN), PATIENCE);
}

static int sweep_load(unsigned int stride, const char *file, const char *params)
{
	unsigned int n;

	knobs();
	unload();
	for (n = 1; ; n += stride) {
		double start = st_now();

		*told = 0;
		nth = n;
		if (!load_with(file, params)) {
			/* what could not be had was not needed */
			unload();
			if (!fired)
				break;
		}
		CHECK(access("/sys/module/spindle", F_OK));
		report("load", "module", n, NULL, start);
	}
	nth = 0;
	CHECK_OK(load_with(file, params));
	*told = 0;
	CHECK(!in_child(healthy));
	printf("# load: %u allocations\n", n > stride ? n - stride : 0);
	return failures;
}

int main(int argc, char **argv)
{
	sigset_t chld;

	setvbuf(stdout, NULL, _IOLBF, 0);
	scale = st_env("SPINDLE_TIMEOUT_SCALE", 1);
	told = mmap(NULL, TOLD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(told != MAP_FAILED);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	before = held_now();
	if (argc >= 3 && !strcmp(argv[1], "calls"))
		return !!sweep_calls(atoi(argv[2]), argv[3]);
	if (argc >= 3 && !strcmp(argv[1], "nth"))
		return !!sweep_nth(atoi(argv[2]), argv[3]);
	if (argc == 5 && !strcmp(argv[1], "load"))
		return !!sweep_load(atoi(argv[2]), argv[3], argv[4]);
	fprintf(stderr, "usage: faults calls MOST [SITE] | nth STEP [OP] | load STEP FILE PARAMS\n");
	return 2;
}
