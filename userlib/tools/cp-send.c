// SPDX-License-Identifier: MIT
/*
 * spindle-cp: who sends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cp.h"

#define BEAT_MS		100

/* What is to be sent: where it is, and what it is called there. */
struct entry {
	char *path;
	const char *name;		/* in it */
	enum cp_kind kind;
	uint64_t size;
};

struct list {
	struct entry *entries;
	unsigned int n, room;
};

static bool add(struct list *list, const char *path, size_t skip, enum cp_kind kind,
		const struct stat *st)
{
	struct entry *e;

	if (list->n == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		list->entries = reallocarray(list->entries, list->room, sizeof(*e));
		if (!list->entries)
			return false;
	}
	e = &list->entries[list->n];
	*e = (struct entry) { .path = strdup(path), .kind = kind };
	if (!e->path)
		return false;
	e->name = e->path + skip;
	e->size = kind == CP_FILE ? st->st_size : 0;
	list->n++;
	return true;
}

static int walk(struct cp *cp, struct list *list, const char *path, size_t skip);

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What is in a directory, in a certain order. */
static int walk_dir(struct cp *cp, struct list *list, const char *path, size_t skip)
{
	char **names = NULL, *sub;
	size_t n = 0, i;
	struct dirent *e;
	int fd, ret = 0;
	DIR *d;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		cp_note(cp, errno, "%s", cp_shown(path));
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (!ret && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!(n % 64))
			names = reallocarray(names, n + 64, sizeof(*names));
		if (!names)
			return -ENOMEM;
		names[n] = strdup(e->d_name);
		ret = names[n++] ? 0 : -ENOMEM;
	}
	closedir(d);
	if (!ret && n)
		qsort(names, n, sizeof(*names), compare);
	for (i = 0; i < n; i++) {
		if (!ret && asprintf(&sub, "%s/%s", path, names[i]) < 0)
			ret = -ENOMEM;
		if (!ret) {
			ret = walk(cp, list, sub, skip);
			free(sub);
		}
		free(names[i]);
	}
	free(names);
	return ret;
}

static int walk(struct cp *cp, struct list *list, const char *path, size_t skip)
{
	enum cp_kind kind = CP_FILE;
	struct stat st;

	if (lstat(path, &st)) {
		cp_note(cp, errno, "%s", cp_shown(path));
		return 0;
	}
	if (S_ISDIR(st.st_mode)) {
		kind = CP_DIR;
	} else if (S_ISLNK(st.st_mode)) {
		kind = CP_LINK;
	} else if (!S_ISREG(st.st_mode)) {
		cp_note(cp, EINVAL, "%s: neither file, directory nor link", cp_shown(path));
		return 0;
	}
	if (!cp_name_is_good(path + skip, strlen(path + skip))) {
		cp_note(cp, ENAMETOOLONG, "%s", cp_shown(path));
		return 0;
	}
	if (!add(list, path, skip, kind, &st))
		return -ENOMEM;
	cp->total += kind == CP_FILE ? (uint64_t)st.st_size : 0;
	return kind == CP_DIR ? walk_dir(cp, list, path, skip) : 0;
}

/* All that was named on the command line. */
static int collect(struct cp *cp, struct list *list)
{
	char *path, *slash;
	int i, j, ret = 0;

	for (i = 0; !ret && i < cp->opt.nfiles; i++) {
		path = strdup(cp->opt.files[i]);
		if (!path)
			return -ENOMEM;
		while (strlen(path) > 1 && path[strlen(path) - 1] == '/')
			path[strlen(path) - 1] = 0;
		slash = strrchr(path, '/');
		slash = slash ? slash + 1 : path;
		/* that has a name elsewhere */
		if (!strcmp(slash, ".") || !strcmp(slash, "..")) {
			char *real = realpath(path, NULL);

			if (real) {
				free(path);
				path = real;
				slash = strrchr(path, '/') + 1;
			}
		}
		for (j = 0; j < (int)list->n; j++)
			if (!strcmp(list->entries[j].name, slash))
				break;
		if (j < (int)list->n) {
			cp_warn("%s: there are two of this name", cp_shown(slash));
			ret = -EINVAL;
		} else {
			ret = walk(cp, list, path, slash - path);
		}
		free(path);
	}
	return ret;
}

/* What the receivers say. */
static void hear(struct cp *cp, const struct spindle_msg *msg, uint32_t current)
{
	static struct cp_msg m;
	struct cp_peer *peer;

	if (msg->flags & SPINDLE_MSG_EVENT) {
		cp_hear_event(cp, msg);
		return;
	}
	if (!cp_read(cp, msg, &m))
		return;
	peer = cp_peer_of(cp, m.uid);
	if (!peer || m.uid == cp->own || peer->state != CP_THERE)
		return;
	switch (m.w.type) {
	case CP_ANSWER:
		if (m.w.index != current)
			break;
		peer->answered = true;
		peer->have = m.w.kind;
		peer->have_len = m.w.size;
		memcpy(peer->have_hash, m.w.hash, sizeof(peer->have_hash));
		break;
	case CP_FAILED:
		peer->failed++;
		if (peer->error)
			break;
		peer->error = m.w.error;
		snprintf(peer->why, sizeof(peer->why), "%s", cp_shown(m.text));
		break;
	case CP_LEAVING:
		peer->state = CP_HAS_LEFT;
		peer->error = m.w.error;
		snprintf(peer->why, sizeof(peer->why), "%s", cp_shown(m.text));
		if (!cp->opt.quiet)
			cp_warn("receiver %s gives up: %s", peer->addr, peer->why);
		break;
	case CP_DONE:
		peer->state = CP_IS_DONE;
		peer->failed = m.w.kind;
		peer->skipped = m.w.mode;
		peer->bytes = m.w.size;
		break;
	}
}

/* How many receivers can still be told anything. */
static unsigned int left(struct cp *cp)
{
	unsigned int i, n = 0;

	for (i = 0; i < cp->npeers; i++)
		n += cp->peers[i].uid != cp->own && cp->peers[i].state == CP_THERE;
	return n;
}

/* -EINTR, -EPIPE when nobody is left, or 0. */
static int go_on(struct cp *cp)
{
	if (cp_signal)
		return -EINTR;
	return cp->npeers && !left(cp) ? -EPIPE : 0;
}

/* Take what has come, and wait for a moment if that was nothing. */
static int pump(struct cp *cp, uint32_t current, bool wait)
{
	struct spindle_msg msg;
	unsigned int n;
	int ret;

	for (;;) {
		ret = spindle_peek(cp->sp, &msg, 1, &n);
		if (ret)
			break;
		hear(cp, &msg, current);
		spindle_release(cp->sp, msg.entry);
		wait = false;
	}
	if (ret != -EAGAIN)
		return ret;
	if (wait) {
		ret = spindle_wait(cp->sp, SPINDLE_READABLE, SPINDLE_WAIT_ADAPTIVE, BEAT_MS);
		if (ret && ret != -ETIMEDOUT && ret != -EINTR)
			return ret;
	}
	return 0;
}

static uint32_t current_of(const struct spindle_transfer *t)
{
	return t->id - 1;
}

static int on_other(struct spindle_transfer *t, const struct spindle_msg *msg)
{
	struct cp *cp = t->user;

	hear(cp, msg, current_of(t));
	return 0;
}

static int on_progress(struct spindle_transfer *t)
{
	struct cp *cp = t->user;

	cp->done = cp->base + t->offset + t->done;
	cp_show(cp, false);
	return go_on(cp);
}

/* What the others have of it must be what is here. */
static int settle(struct cp *cp, int fd, uint64_t size, struct cp_wire *go)
{
	uint64_t least = size, len = ~0ULL;
	unsigned char hash[SPINDLE_HASH_LEN];
	bool all = true;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < cp->npeers; i++) {
		struct cp_peer *peer = &cp->peers[i];
		uint64_t good = 0;

		if (peer->uid == cp->own || peer->state != CP_THERE || !peer->answered ||
		    peer->have == CP_NOT_WANTED)
			continue;
		if (peer->have == CP_WHOLE ? peer->have_len == size :
		    peer->have == CP_PART && peer->have_len <= size) {
			if (peer->have_len != len) {
				ret = cp_hash(fd, peer->have_len, hash);
				len = peer->have_len;
			}
			if (ret)
				return ret;
			if (len == size) {
				memcpy(go->hash, hash, sizeof(hash));
				go->kind |= CP_HASHED;
			}
			if (!memcmp(hash, peer->have_hash, sizeof(hash)))
				good = len;
		}
		if (peer->have == CP_WHOLE && good == size)
			continue;
		all = false;
		if (good < least)
			least = good;
	}
	go->size = all ? size : least;
	if (all)
		go->kind |= CP_SKIPPED;
	return 0;
}

/* Ask what is there already; where to begin is in @go. */
static int negotiate(struct cp *cp, int fd, struct cp_wire *go, uint64_t size)
{
	unsigned int i, missing;
	int ret;

	do {
		missing = 0;
		for (i = 0; i < cp->npeers; i++)
			missing += cp->peers[i].uid != cp->own &&
				   cp->peers[i].state == CP_THERE && !cp->peers[i].answered;
		ret = missing ? pump(cp, go->index, true) : 0;
		if (!ret)
			ret = go_on(cp);
	} while (!ret && missing);
	if (!ret)
		ret = settle(cp, fd, size, go);
	if (ret) {
		/* they wait for it */
		go->size = 0;
		go->kind = 0;
	}
	i = cp_say(cp, CP_GO, go, NULL, 0);
	return ret ? ret : (int)i;
}

static int send_bytes(struct cp *cp, int fd, uint32_t index, uint64_t offset, uint64_t size)
{
	struct spindle_transfer t = {
		.id = index + 1ULL,
		.fd = fd,
		.offset = offset,
		.len = size - offset,
		.segment = cp->opt.segment,
		.progress = on_progress,
		.other = on_other,
		.user = cp,
	};

	return spindle_object_put(cp->sp, &t);
}

/* An error of the group, or of who is there to be told; not of a file. */
static bool is_fatal(int ret)
{
	switch (ret) {
	case -EINTR: case -EPIPE: case -ENETDOWN: case -ECONNABORTED: case -ENODEV:
	case -EPROTO: case -ENOTCONN: case -ENOBUFS: case -EHOSTDOWN:
		return true;
	}
	return false;
}

static int send_entry(struct cp *cp, const struct entry *e, const struct stat *st,
		      const char *target, uint32_t index)
{
	static char text[CP_TEXT];
	size_t len = strlen(e->name) + 1, more = strlen(target);
	struct cp_wire w = {
		.index = index,
		.kind = e->kind,
		.size = e->kind == CP_FILE ? st->st_size : 0,
		.mtime = st->st_mtim.tv_sec,
		.mtime_ns = st->st_mtim.tv_nsec,
		.mode = st->st_mode & 07777,
	};
	unsigned int i;

	for (i = 0; i < cp->npeers; i++)
		cp->peers[i].answered = false;
	memcpy(text, e->name, len);
	memcpy(text + len, target, more);
	return cp_say(cp, CP_ENTRY, &w, text, len + more);
}

static int send_file(struct cp *cp, const struct entry *e, uint32_t index)
{
	struct cp_wire go = { .index = index };
	struct stat st;
	int fd, ret;

	fd = open(e->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		cp_note(cp, errno, "%s", cp_shown(e->path));
		if (fd >= 0)
			close(fd);
		return 0;
	}
	if (!S_ISREG(st.st_mode)) {
		cp_note(cp, EINVAL, "%s: no file any more", cp_shown(e->path));
		close(fd);
		return 0;
	}
	cp->current = e->name;
	ret = send_entry(cp, e, &st, "", index);
	if (!ret && cp->opt.skip_same)
		ret = negotiate(cp, fd, &go, st.st_size);
	if (!ret && !(go.kind & CP_SKIPPED))
		ret = send_bytes(cp, fd, index, go.size, st.st_size);
	close(fd);
	if (ret && !is_fatal(ret)) {
		cp_note(cp, -ret, ret == -ESTALE ? "%s: it became shorter while it was sent" :
			"%s", cp_shown(e->path));
		/* also if there was no transfer that could have told them */
		go.error = -ret;
		ret = cp_say(cp, CP_GAVE_UP, &go, NULL, 0);
	} else if (!ret) {
		cp->nfiles++;
		/* not if nobody wants it */
		if (go.kind & CP_HASHED)
			cp->nsame += !!(go.kind & CP_SKIPPED);
		if (!(go.kind & CP_SKIPPED) || go.kind & CP_HASHED)
			cp->spared += go.size;
	}
	cp->base += st.st_size;
	cp->done = cp->base;
	return ret;
}

static int send_other(struct cp *cp, const struct entry *e, uint32_t index)
{
	char target[PATH_MAX] = "";
	struct stat st;
	ssize_t n = 0;

	if (lstat(e->path, &st))
		n = -1;
	else if (e->kind == CP_LINK)
		n = readlink(e->path, target, sizeof(target) - 1);
	if (n < 0 || (e->kind == CP_DIR && !S_ISDIR(st.st_mode))) {
		cp_note(cp, n < 0 ? errno : ENOTDIR, "%s", cp_shown(e->path));
		return 0;
	}
	target[n] = 0;
	if (e->kind == CP_DIR)
		cp->ndirs++;
	else
		cp->nlinks++;
	return send_entry(cp, e, &st, target, index);
}

static int send_list(struct cp *cp, const struct list *list)
{
	struct cp_wire w = { .index = list->n, .size = cp->total };
	uint32_t i;
	int ret;

	if (cp->opt.skip_same)
		w.kind = CP_SKIP_SAME;
	ret = cp_say(cp, CP_START, &w, NULL, 0);
	for (i = 0; !ret && i < list->n; i++) {
		const struct entry *e = &list->entries[i];

		ret = pump(cp, i, false);
		if (!ret)
			ret = go_on(cp);
		if (!ret)
			ret = e->kind == CP_FILE ? send_file(cp, e, i) : send_other(cp, e, i);
		cp_show(cp, false);
	}
	cp->current = NULL;
	w = (struct cp_wire) { .index = list->n, .error = ret < 0 ? -ret : 0 };
	if (ret) {
		if (ret == -EINTR)
			cp_say(cp, CP_CANCEL, &w, NULL, 0);
		return ret;
	}
	ret = cp_say(cp, CP_FINISH, &w, NULL, 0);
	while (!ret && left(cp) && !cp_signal)
		ret = pump(cp, ~0U, true);
	return ret ? ret : cp_signal ? -EINTR : 0;
}

/**
 * cp_send_all() - send what was named, and hear what became of it
 * @cp: all of it
 *
 * Return: status of the program.
 */
int cp_send_all(struct cp *cp)
{
	struct list list = { 0 };
	unsigned int i;
	int ret;

	ret = collect(cp, &list);
	if (ret)
		return 1;
	if (!list.n) {
		cp_warn("there is nothing to send");
		return 1;
	}
	ret = cp_enter(cp);
	if (ret)
		return 1;
	/* who is who comes first */
	while (!ret && !cp->npeers && !cp_signal)
		ret = pump(cp, ~0U, true);
	cp->sender = cp->own;
	cp->began = cp_now();
	if (!ret)
		ret = send_list(cp, &list);
	cp_show(cp, true);
	if (ret == -EINTR)
		cp_note(cp, EINTR, "ended by a signal");
	else if (ret == -EPIPE && !left(cp))
		cp_note(cp, EPIPE, "no receiver is left");
	else if (ret)
		cp_note(cp, -ret, "the group");
	cp_leave(cp);
	ret = ret || cp->nfailed;
	for (i = 0; i < cp->npeers; i++) {
		const struct cp_peer *peer = &cp->peers[i];

		if (peer->uid != cp->own && (peer->state != CP_IS_DONE || peer->failed))
			ret = 1;
	}
	return ret;
}
