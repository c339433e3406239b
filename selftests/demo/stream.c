// SPDX-License-Identifier: MIT
/*
 * One member of a group: sends the lines of a file, and writes what all members
 * send, in the order in which all receive it: the sender's address, then the line.
 * Where a view begins it writes "view", its number, and its members' addresses.
 *
 *	stream ADDRESS CONTACT|- GROUP MEMBERS FILE OUT		(-: make the group)
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/spindle.h>

static FILE *file(const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);

	if (!f)
		err(1, "%s", path);
	return f;
}

static int number_in(const char *path)
{
	int n = -1;

	if (fscanf(file(path, "r"), "%d", &n) != 1)
		errx(1, "%s", path);
	return n;
}

static const char *text_of(const struct in6_addr *addr)
{
	static char text[INET_ADDRSTRLEN];

	/* an IPv4-mapped address */
	return inet_ntop(AF_INET, &addr->s6_addr[12], text, sizeof(text));
}

static void write_view(FILE *out, const struct spindle_event *event)
{
	const struct spindle_event_member *member = event->member;
	unsigned int i;

	fprintf(out, "view %llu", event->view);
	for (i = 0; i < event->members; i++) {
		fprintf(out, " %s", text_of(&member->addr));
		member = (void *)((char *)member + event->member_size);
	}
	fputc('\n', out);
}

static void send_lines(int s, FILE *in)
{
	char line[16384];

	while (fgets(line, sizeof(line), in))
		if (send(s, line, strcspn(line, "\n"), 0) < 0)
			err(1, "send");
	_exit(shutdown(s, SHUT_WR) ? 1 : 0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct spindle_group_create create = { 0 };
	struct spindle_group_join join = { 0 };
	struct sockaddr_spindle from;
	char buf[16384] __attribute__((aligned(8)));
	const struct spindle_event *event = (void *)buf;
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_name = &from, .msg_iov = &iov, .msg_iovlen = 1 };
	FILE *in = file(argc == 7 ? argv[5] : "six arguments wanted", "r");
	FILE *out = file(argv[6], "w");
	int s, n, want = SPINDLE_WANT_VIEW, received = 0;

	s = socket(number_in("/sys/module/spindle/parameters/family"), SOCK_SEQPACKET, 0);
	inet_pton(AF_INET, argv[1], &addr.sin_addr);
	if (s < 0 || bind(s, (struct sockaddr *)&addr, sizeof(addr)))
		err(1, "%s", argv[1]);
	if (setsockopt(s, SOL_SPINDLE, SPINDLE_EVENTS, &want, sizeof(want)))
		err(1, "events");
	if (strcmp(argv[2], "-")) {
		snprintf(join.name, sizeof(join.name), "%s", argv[3]);
		inet_pton(AF_INET, argv[2], &addr.sin_addr);
		memcpy(join.contact, &addr, sizeof(addr));
		/* the creator may not be there yet */
		while (setsockopt(s, SOL_SPINDLE, SPINDLE_GROUP_JOIN, &join, sizeof(join)) &&
		       (errno == ENOENT || errno == ECONNREFUSED))
			usleep(20000);
	} else {
		snprintf(create.name, sizeof(create.name), "%s", argv[3]);
		create.members = atoi(argv[4]);
		if (setsockopt(s, SOL_SPINDLE, SPINDLE_GROUP_CREATE, &create, sizeof(create)))
			err(1, "create");
	}
	if (!fork())
		send_lines(s, in);
	for (;;) {
		msg.msg_namelen = sizeof(from);
		n = recvmsg(s, &msg, 0);
		if (n < 0)
			err(1, "recv");
		if (!(msg.msg_flags & MSG_EOR))
			break;		/* the end of the stream, not an empty line */
		if (msg.msg_flags & MSG_SPINDLE_EVENT) {
			write_view(out, event);
			printf("view %llu at %d\n", event->view, received);
			fflush(stdout);
			continue;
		}
		fprintf(out, "%s %.*s\n", text_of(&from.ss_addr), n, buf);
		if (++received % 1000 == 0 && printf("at %d\n", received))
			fflush(stdout);
	}
	snprintf(buf, sizeof(buf), "/sys/kernel/spindle/%s/%s/counters/posts", argv[1],
		 argv[3]);
	printf("end received %d posts %d\n", received, number_in(buf));
	return fclose(out) ? 1 : 0;
}
