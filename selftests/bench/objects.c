// SPDX-License-Identifier: GPL-2.0
/*
 * A member of groups that large objects are sent in, and what the clock said.
 *
 *	objects ADDR GROUP... -- [FLIGHT SEND...]
 *
 * GROUP is NAME,CONTACT,MEMBERS,BLOCK,FLAGS,BYTES, the last of its largest object:
 * the node that is its own contact makes the group, the others join it. When all
 * of them are whole it prints "ready" and waits for SIGUSR1. SEND is
 * GROUP,ALGORITHM,BYTES, with the group's place among the arguments; FLIGHT of them
 * are under way at once, and one has gone when this member has read it, which is
 * when every node has it (not with SPINDLE_F_PLAIN). Ends when it has read the end
 * of all groups, which comes when
 * all members have sent all they had. Prints, in ns of CLOCK_MONOTONIC:
 *
 *	sent GROUP NR BYTES BEFORE AFTER	the call that sent it
 *	read GROUP NR BYTES THERE AFTER		poll() said so, the call that read it
 *	moved GROUP ...				what the kernel says of it
 *
 * Groups count from 0, and NR counts what the group's one sender has sent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <linux/spindle.h>

#define MAX_GROUPS	64
#define GIVE_UP_SECONDS	280
#define FORM_SECONDS	60
#define PAGE		4096

struct group {
	char name[SPINDLE_NAME_LEN];
	struct in_addr contact;
	unsigned int members, block, flags, most;
	int fd;
	unsigned int sent, received;
	unsigned int moved;	/* of the kernel's lines, printed */
	bool over;
};

struct put {
	unsigned int group, algorithm, bytes;
};

static struct group groups[MAX_GROUPS];
static unsigned int ngroups, most;
static const char *own;
static unsigned char *bytes, *source;
static volatile sig_atomic_t told;

static void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("objects: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static unsigned long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void begin(int sig)
{
	(void)sig;
	told = 1;
}

static int family(void)
{
	FILE *f = fopen("/sys/module/spindle/parameters/family", "re");
	int number;

	if (!f || fscanf(f, "%d", &number) != 1)
		fail("the module is not loaded");
	fclose(f);
	return number;
}

static void parse_group(char *word)
{
	struct group *g = &groups[ngroups++];
	char contact[64];

	if (ngroups > MAX_GROUPS ||
	    sscanf(word, "%60[^,],%60[^,],%u,%u,%u,%u", g->name, contact, &g->members,
		   &g->block, &g->flags, &g->most) != 6 ||
	    inet_pton(AF_INET, contact, &g->contact) != 1)
		fail("%s: NAME,CONTACT,MEMBERS,BLOCK,FLAGS,BYTES", word);
	if (g->most > most)
		most = g->most;
}

static bool is_own(const struct group *g)
{
	return g->contact.s_addr == inet_addr(own);
}

static void form(struct group *g)
{
	unsigned long long end = now() + FORM_SECONDS * 1000000000ULL;
	struct spindle_group_create create = {
		.members = g->members, .max_members = g->members, .senders = 1, .flags = g->flags,
		.window = 65536, .max_object = g->most, .block = g->block,
	};
	struct spindle_group_join join = { 0 };
	struct sockaddr_in sin = { .sin_family = AF_INET };

	inet_pton(AF_INET, own, &sin.sin_addr);
	g->fd = socket(family(), SOCK_SEQPACKET, 0);
	if (g->fd < 0 || bind(g->fd, (struct sockaddr *)&sin, sizeof(sin)))
		fail("%s: %s", own, strerror(errno));
	if (is_own(g)) {
		strcpy(create.name, g->name);
		if (setsockopt(g->fd, SOL_SPINDLE, SPINDLE_GROUP_CREATE, &create, sizeof(create)))
			fail("%s: create: %s", g->name, strerror(errno));
		return;
	}
	strcpy(join.name, g->name);
	join.flags = g->flags & SPINDLE_F_PLAIN ? 0 : SPINDLE_F_RECEIVER;
	sin.sin_addr = g->contact;
	memcpy(join.contact, &sin, sizeof(sin));
	/* There may be none of that name yet, or no program that is bound. */
	while (setsockopt(g->fd, SOL_SPINDLE, SPINDLE_GROUP_JOIN, &join, sizeof(join))) {
		if ((errno != ECONNREFUSED && errno != ENOENT) || now() > end)
			fail("%s: join: %s", g->name, strerror(errno));
		usleep(10000);
	}
}

static void await_form(struct group *g)
{
	unsigned long long end = now() + FORM_SECONDS * 1000000000ULL;
	struct spindle_group_info info;
	socklen_t len;

	do {
		len = sizeof(info);
		if (getsockopt(g->fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, &info, &len))
			fail("%s: %s", g->name, strerror(errno));
		if (info.state == SPINDLE_STATE_ACTIVE)
			return;
		usleep(5000);
	} while (info.state == SPINDLE_STATE_FORMING && now() < end);
	fail("%s is not whole: state %u, error %d", g->name, info.state, info.error);
}

/* A word in each page tells objects and their parts apart. */
static uint64_t word_of(const struct group *g, unsigned int nr, size_t at)
{
	uint64_t word = (at + 1) * 0x9e3779b97f4a7c15ULL ^ nr;
	const char *c;

	for (c = g->name; *c; c++)
		word = (word ^ *c) * 0x100000001b3ULL;
	return word;
}

static void put(const struct put *p, bool in_place)
{
	char control[CMSG_SPACE(sizeof(struct spindle_object))] = { 0 };
	struct spindle_object how = { p->algorithm, SPINDLE_OBJECT_ALWAYS };
	struct group *g = &groups[p->group];
	struct iovec iov = { source, p->bytes };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	unsigned long long before;
	uint64_t word;
	size_t at;

	cmsg->cmsg_level = SOL_SPINDLE;
	cmsg->cmsg_type = SPINDLE_CMSG_OBJECT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(how));
	memcpy(CMSG_DATA(cmsg), &how, sizeof(how));
	for (at = 0; at + sizeof(word) <= p->bytes; at += PAGE) {
		word = word_of(g, g->sent, at);
		memcpy(source + at, &word, sizeof(word));
	}
	/* When it was read here every node has it, and nobody needs the source any more. */
	if (in_place && !(g->flags & SPINDLE_F_PLAIN))
		how.flags |= SPINDLE_OBJECT_IN_PLACE;
	before = now();
	if (sendmsg(g->fd, &msg, MSG_NOSIGNAL) != (ssize_t)p->bytes)
		fail("%s: send: %s", g->name, strerror(errno));
	printf("sent %u %u %u %llu %llu\n", p->group, g->sent++, p->bytes, before, now());
}

/* What the kernel says of transfers that are over; each once. */
static void tell_moved(struct group *g)
{
	char path[256], line[512];
	unsigned int nr;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/spindle/%s/%s/objects", own, g->name);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "moved %u ", &nr) != 1 || nr < g->moved)
			continue;
		g->moved = nr + 1;
		printf("moved %td %s", g - groups, line + sizeof("moved"));
	}
	fclose(f);
}

static bool take(struct group *g)
{
	unsigned long long there = now(), after;
	ssize_t len = recv(g->fd, bytes, most, 0);
	uint64_t word;
	size_t at;

	after = now();
	if (len < 0)
		fail("%s: recv: %s", g->name, strerror(errno));
	if (!len) {
		g->over = true;
		tell_moved(g);
		return false;
	}
	for (at = 0; at + sizeof(word) <= (size_t)len; at += PAGE) {
		memcpy(&word, bytes + at, sizeof(word));
		if (word != word_of(g, g->received, at))
			fail("%s: object %u is wrong at %zu", g->name, g->received, at);
	}
	printf("read %td %u %zd %llu %llu\n", g - groups, g->received++, len, there, after);
	tell_moved(g);
	return true;
}

int main(int argc, char **argv)
{
	struct pollfd pfds[MAX_GROUPS];
	unsigned int flight = 1, out = 0, over = 0, nputs, next = 0, i;
	struct put *puts_;
	int at = 2;

	if (argc < 4)
		fail("see the top of its source");
	setlinebuf(stdout);
	signal(SIGUSR1, begin);
	alarm(GIVE_UP_SECONDS);
	own = argv[1];
	while (at < argc && strcmp(argv[at], "--"))
		parse_group(argv[at++]);
	if (++at < argc)
		flight = atoi(argv[at++]);
	nputs = at < argc ? argc - at : 0;
	puts_ = calloc(nputs + 1, sizeof(*puts_));
	bytes = aligned_alloc(PAGE, (most + PAGE - 1) / PAGE * PAGE);
	source = aligned_alloc(PAGE, (most + PAGE - 1) / PAGE * PAGE);
	if (!puts_ || !bytes || !source)
		fail("no memory");
	for (i = 0; i < nputs; i++)
		if (sscanf(argv[at + i], "%u,%u,%u", &puts_[i].group, &puts_[i].algorithm,
			   &puts_[i].bytes) != 3 || puts_[i].group >= ngroups ||
		    puts_[i].bytes > most)
			fail("%s: GROUP,ALGORITHM,BYTES", argv[at + i]);
	/* What is touched for the first time takes time. */
	memset(bytes, 1, most);
	memset(source, 1, most);
	/* The own ones first, so that nobody waits for one who waits for him. */
	for (i = 0; i < ngroups; i++)
		if (is_own(&groups[i]))
			form(&groups[i]);
	for (i = 0; i < ngroups; i++)
		if (!is_own(&groups[i]))
			form(&groups[i]);
	for (i = 0; i < ngroups; i++)
		await_form(&groups[i]);
	puts("ready");
	while (!told)
		usleep(1000);
	while (over < ngroups) {
		while (next < nputs && out < flight) {
			put(&puts_[next++], flight == 1);
			out++;
		}
		/* Who has nothing more to send says so, and the others read the end. */
		for (i = 0; next == nputs && !out && i < ngroups; i++)
			shutdown(groups[i].fd, SHUT_WR);
		for (i = 0; i < ngroups; i++)
			pfds[i] = (struct pollfd){
				.fd = groups[i].over ? -1 : groups[i].fd, .events = POLLIN,
			};
		if (poll(pfds, ngroups, -1) < 0)
			fail("poll: %s", strerror(errno));
		for (i = 0; i < ngroups; i++) {
			struct group *g = &groups[i];

			if (!pfds[i].revents)
				continue;
			if (take(g))
				out -= g->received <= g->sent;
			else
				over++;
		}
	}
	usleep(100000);
	for (i = 0; i < ngroups; i++)
		tell_moved(&groups[i]);
	return 0;
}
