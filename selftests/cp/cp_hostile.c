// SPDX-License-Identifier: GPL-2.0
/*
 * A sender for spindle-cp that means harm:
 *
 *	cp_hostile NODE GROUP WHAT
 *
 * makes a group of two, says START, and then what it is told:
 *
 *	name TEXT	a file of that name, with some bytes
 *	dir TEXT	a directory
 *	link TEXT TO	a link, and then a file behind it, TEXT/evil
 *	swap TEXT TO	a link, and then a file of the same name
 *	twice		the same index again
 *	size		a file that has more bytes than was said
 *	less		one that has less
 *	huge		one of 2^63 bytes
 *	nul		a name with a NUL in it
 *	short		a message that is cut off
 *	hash		a file whose bytes are not those that were sent
 *	mode		a file with the setuid bit
 *	other		messages that are none of spindle-cp, then a good file
 *
 * Then FINISH. Prints what the receiver says: "done", "left: WHY", "gone".
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../userlib/tools/cp.h"

static struct spindle *sp;
static uint32_t next;
static bool gone;

static void must(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "cp_hostile: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static void say_raw(const void *data, size_t len)
{
	int ret;

	while ((ret = spindle_send(sp, data, len)) == -EAGAIN)
		usleep(1000);
	/* it may be alone by now, which is what is to be seen */
	must(ret, "send");
}

static void say(enum cp_type type, uint32_t index, uint32_t kind, uint64_t size, uint32_t mode,
		const void *text, size_t len)
{
	static struct {
		struct cp_wire w;
		char text[CP_TEXT];
	} m;

	memset(&m.w, 0, sizeof(m.w));
	m.w.magic = htole32(CP_MAGIC);
	m.w.version = htole16(CP_VERSION);
	m.w.type = htole16(type);
	m.w.index = htole32(index);
	m.w.kind = htole32(kind);
	m.w.size = htole64(size);
	m.w.mode = htole32(mode);
	m.w.len = htole32(len);
	memcpy(m.text, text, len);
	say_raw(&m, sizeof(m.w) + len);
}

static void entry(enum cp_kind kind, const char *name, const char *target, uint64_t size)
{
	char text[CP_TEXT];
	size_t len = strlen(name) + 1;

	memcpy(text, name, len);
	strcpy(text + len, target);
	say(CP_ENTRY, next++, kind, size, 0644, text, len + strlen(target));
}

/* What the receiver says, also while something is sent. */
static int hear(struct spindle_transfer *t, const struct spindle_msg *msg)
{
	union {
		struct spindle_event event;
		unsigned char room[SPINDLE_EVENT_SIZE];
	} u;
	size_t n, size = sizeof(u);
	char text[1024];
	struct cp_wire w;

	(void)t;
	if (msg->event == SPINDLE_EVENT_VIEW) {
		must(spindle_event(sp, msg->number, &u.event, &size), "event");
		gone = u.event.members == 1;
	}
	if (!msg->data || msg->len < sizeof(w))
		return 0;
	memcpy(&w, msg->data, sizeof(w));
	n = msg->len - sizeof(w);
	if (n >= sizeof(text))
		n = sizeof(text) - 1;
	memcpy(text, (const char *)msg->data + sizeof(w), n);
	text[n] = 0;
	if (w.type == htole16(CP_LEAVING))
		printf("left: %s\n", text);
	if (w.type == htole16(CP_FAILED))
		printf("failed: %s\n", text);
	if (w.type == htole16(CP_DONE))
		printf("done\n");
	return 0;
}

static void bytes(const char *data, size_t len)
{
	struct spindle_transfer t = {
		.id = next, .fd = -1, .data = (void *)data, .len = len, .other = hear,
	};

	must(spindle_object_put(sp, &t), "put");
}

static void file(const char *name)
{
	entry(CP_FILE, name, "", 5);
	bytes("evil\n", 5);
}

/* As the library's, behind the data: magic, version, type, id, off, len, hash. */
static void record(unsigned int type, uint64_t off, uint64_t len, const char *data)
{
	static const unsigned char head[] = { 0x53, 0x4e, 0x72, 0x74, 2, 0 };
	unsigned char all[64 + 16] = { 0 }, *r = all + strlen(data);
	uint64_t id = htole64(next);

	memcpy(all, data, strlen(data));
	memcpy(r, head, sizeof(head));
	r[6] = type;

	off = htole64(off);
	memcpy(r + 8, &id, 8);
	memcpy(r + 16, &off, 8);
	len = htole64(len);
	memcpy(r + 24, &len, 8);
	say_raw(all, 64 + strlen(data));
}

static void do_harm(char **argv)
{
	static const char nul[] = "good\0../bad";
	const char *what = argv[0];

	if (!strcmp(what, "name")) {
		file(argv[1]);
	} else if (!strcmp(what, "dir")) {
		entry(CP_DIR, argv[1], "", 0);
	} else if (!strcmp(what, "link")) {
		char name[CP_TEXT / 2];

		entry(CP_LINK, argv[1], argv[2], 0);
		snprintf(name, sizeof(name), "%s/evil", argv[1]);
		file(name);
	} else if (!strcmp(what, "swap")) {
		entry(CP_LINK, argv[1], argv[2], 0);
		file(argv[1]);
	} else if (!strcmp(what, "twice")) {
		file("once");
		next--;
		file("again");
	} else if (!strcmp(what, "size")) {
		entry(CP_FILE, "size", "", 3);
		bytes("evil\n", 5);
	} else if (!strcmp(what, "less")) {
		entry(CP_FILE, "less", "", 7);
		bytes("evil\n", 5);
	} else if (!strcmp(what, "huge")) {
		entry(CP_FILE, "huge", "", 1ULL << 63);
	} else if (!strcmp(what, "nul")) {
		say(CP_ENTRY, next++, CP_FILE, 5, 0644, nul, sizeof(nul));
		bytes("evil\n", 5);
	} else if (!strcmp(what, "short")) {
		say(CP_ENTRY, next++, CP_FILE, 5, 0644, "no-nul", 6);
	} else if (!strcmp(what, "hash")) {
		entry(CP_FILE, "hash", "", 5);
		record(1, 0, 5, "");
		record(2, 0, 5, "evil\n");
		record(3, 0, 5, "");
	} else if (!strcmp(what, "mode")) {
		say(CP_ENTRY, next++, CP_FILE, 5, 07777, "mode", 5);
		bytes("evil\n", 5);
	} else if (!strcmp(what, "other")) {
		say_raw("", 0);
		say_raw("not of spindle-cp", 17);
		say(99, 7, 7, 7, 7, "what", 4);
		record(2, 0, 5, "evil\n");
		file("other");
	} else {
		must(-EINVAL, what);
	}
}

/* Up to the view without the receiver. */
static void listen_to(void)
{
	struct spindle_msg msg;
	unsigned int n;
	int ret;

	while (!gone) {
		ret = spindle_peek(sp, &msg, 1, &n);
		if (ret == -EAGAIN) {
			must(spindle_wait(sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, 40000), "wait");
			continue;
		}
		must(ret, "peek");
		hear(NULL, &msg);
		spindle_release(sp, msg.entry);
	}
	printf("gone\n");
}

int main(int argc, char **argv)
{
	struct spindle_group_create group = { .members = 2, .flags = SPINDLE_F_MINORITY };

	if (argc < 4)
		must(-EINVAL, "usage: cp_hostile NODE GROUP WHAT");
	snprintf(group.name, sizeof(group.name), "%s", argv[2]);
	must(spindle_open(&sp, argv[1]), "open");
	must(spindle_map(sp, SPINDLE_MAP_RX), "map");
	must(spindle_events(sp, SPINDLE_WANT_VIEW), "events");
	must(spindle_create(sp, &group), "create");
	must(spindle_ready(sp, 60000), "ready");
	say(CP_START, 1, 0, 5, 0, "", 0);
	do_harm(argv + 3);
	say(CP_FINISH, next, 0, 0, 0, "", 0);
	listen_to();
	return 0;
}
