// SPDX-License-Identifier: MIT
/*
 * spindle-cp: who receives.
 *
 * A file is written under another name in the directory where it belongs, and
 * gets its own when it is complete and its hash is right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cp.h"

#define BEAT_MS		100

/* A directory that gets its mode and time when all is in it. */
struct later {
	char *name;
	mode_t mode;
	struct timespec mtime;
};

/**
 * struct receiver - one that receives
 * @cp: all of it
 * @dir: where to
 * @skip_same: the sender asks what is there
 * @next: index of the next entry
 * @gave_up: index of the entry that the sender has given up, and one more
 * @m: the last message
 * @later: directories
 * @nlater: how many
 */
struct receiver {
	struct cp *cp;
	int dir;
	bool skip_same;
	uint32_t next;
	uint32_t gave_up;
	struct cp_msg m;
	struct later *later;
	unsigned int nlater;
};

/**
 * struct file - a file that is received
 * @name: its name
 * @w: what the sender says of it
 * @parent: its directory
 * @last: its name there
 * @temp: the name that it has meanwhile
 * @fd: it; -1: nothing is to be written
 * @have: what there is of it
 * @len: so much
 * @hash: of that
 * @error: why it is not taken, negative
 */
struct file {
	char name[PATH_MAX];
	struct cp_wire w;
	int parent;
	const char *last;
	char temp[NAME_MAX + 1];
	int fd;
	enum cp_have have;
	uint64_t len;
	unsigned char hash[SPINDLE_HASH_LEN];
	int error;
};

/* An errno with which it makes no sense to go on. */
static bool is_hopeless(int err)
{
	switch (err) {
	case ENOSPC: case EDQUOT: case EROFS: case EIO: case ENOMEM: case EMFILE: case ENFILE:
		return true;
	}
	return false;
}

/* Tell the sender, and the user, that this one goes, and why. */
static int give_up(struct receiver *r, int ret, const char *what)
{
	struct cp_wire w = { .error = -ret };
	char text[1024];
	int n;

	n = snprintf(text, sizeof(text), "%s: %s", what, strerror(-ret));
	cp_note(r->cp, -ret, "%s", cp_shown(what));
	cp_say(r->cp, CP_LEAVING, &w, text, n < (int)sizeof(text) ? n : (int)sizeof(text) - 1);
	return ret;
}

/* This entry is not taken; all others are. */
static int refuse(struct receiver *r, uint32_t index, const char *name, int ret)
{
	struct cp_wire w = { .index = index, .error = -ret };
	char text[1024];
	int n;

	if (is_hopeless(-ret))
		return give_up(r, ret, name);
	n = snprintf(text, sizeof(text), "%.800s: %s", name, strerror(-ret));
	cp_note(r->cp, -ret, "%s", cp_shown(name));
	return cp_say(r->cp, CP_FAILED, &w, text, n);
}

/* A message of the sender, or an event; 1: it is in @r->m. */
static int hear(struct receiver *r, const struct spindle_msg *msg)
{
	struct cp *cp = r->cp;

	if (msg->flags & SPINDLE_MSG_EVENT) {
		cp_hear_event(cp, msg);
		return cp->lost ? -ECONNRESET : 0;
	}
	if (!cp_read(cp, msg, &r->m))
		return 0;
	if (cp->sender == ~0U && r->m.w.type == CP_START && r->m.uid != cp->own)
		cp->sender = r->m.uid;
	if (r->m.uid != cp->sender || cp->sender == ~0U)
		return 0;
	if (r->m.w.type == CP_CANCEL)
		return -ECANCELED;
	if (r->m.w.type == CP_GAVE_UP)
		r->gave_up = r->m.w.index + 1;
	return 1;
}

/* Wait for the next word of the sender. */
static int listen_to(struct receiver *r)
{
	struct spindle_msg msg;
	unsigned int n;
	int ret;

	for (;;) {
		if (cp_signal)
			return -EINTR;
		ret = spindle_peek(r->cp->sp, &msg, 1, &n);
		if (!ret) {
			ret = hear(r, &msg);
			spindle_release(r->cp->sp, msg.entry);
			if (ret)
				return ret;
			continue;
		}
		if (ret != -EAGAIN)
			return ret;
		ret = spindle_wait(r->cp->sp, SPINDLE_READABLE, SPINDLE_WAIT_ADAPTIVE, BEAT_MS);
		if (ret && ret != -ETIMEDOUT && ret != -EINTR)
			return ret;
	}
}

static int on_other(struct spindle_transfer *t, const struct spindle_msg *msg)
{
	struct receiver *r = t->user;
	int ret;

	ret = hear(r, msg);
	if (ret < 0)
		return ret;
	return r->gave_up == t->id ? -ECANCELED : 0;
}

static int on_progress(struct spindle_transfer *t)
{
	struct receiver *r = t->user;

	r->cp->done = r->cp->base + t->offset + t->done;
	cp_show(r->cp, false);
	return cp_signal ? -EINTR : 0;
}

static int set_times(int fd, const struct cp_wire *w)
{
	const struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = w->mtime, .tv_nsec = w->mtime_ns },
	};

	return futimens(fd, times) ? -errno : 0;
}

/* Is there one of this name already, and what? */
static void look_at(struct receiver *r, struct file *f)
{
	struct stat st;
	int fd;

	if (fstatat(f->parent, f->last, &st, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			f->error = -errno;
		return;
	}
	if (S_ISDIR(st.st_mode)) {
		f->error = -EISDIR;
		return;
	}
	if (r->skip_same && S_ISREG(st.st_mode) && (uint64_t)st.st_size == f->w.size) {
		fd = openat(f->parent, f->last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 && !cp_hash(fd, f->w.size, f->hash)) {
			f->have = CP_WHOLE;
			f->len = f->w.size;
		}
		if (fd >= 0)
			close(fd);
	}
	if (!r->cp->opt.overwrite && f->have == CP_NOTHING)
		f->error = -EEXIST;
}

static void look_for_part(struct file *f)
{
	struct stat st;

	f->fd = cp_leftover(f->parent, f->last, f->temp, sizeof(f->temp));
	if (f->fd < 0)
		return;
	if (!fstat(f->fd, &st) && (uint64_t)st.st_size <= f->w.size &&
	    !cp_hash(f->fd, st.st_size, f->hash)) {
		f->have = CP_PART;
		f->len = st.st_size;
		return;
	}
	/* it is of another file of this name, and may be of use to somebody */
	close(f->fd);
	f->fd = -1;
}

/* Say what is there, and hear where it begins: 1: nothing follows. */
static int negotiate(struct receiver *r, struct file *f, uint64_t *offset)
{
	struct cp_wire w = { .index = f->w.index, .kind = f->have, .size = f->len };
	const struct cp_wire *go = &r->m.w;
	int ret;

	if (f->error)
		w.kind = CP_NOT_WANTED;
	memcpy(w.hash, f->hash, sizeof(w.hash));
	ret = cp_say(r->cp, CP_ANSWER, &w, NULL, 0);
	if (!ret)
		ret = listen_to(r);
	if (ret < 0)
		return ret;
	if (go->type != CP_GO || go->index != f->w.index)
		return -EPROTO;
	if (go->kind & CP_SKIPPED) {
		/* it takes all that were asked to have it */
		return f->error || f->have == CP_WHOLE ? 1 : -EPROTO;
	}
	*offset = go->size;
	if (*offset > f->w.size)
		return -EPROTO;
	if (f->error)
		return 0;
	if (f->have == CP_WHOLE) {
		if (go->kind & CP_HASHED && !memcmp(go->hash, f->hash, sizeof(f->hash)))
			return 0;
		f->have = CP_NOTHING;
		f->len = 0;
		if (!r->cp->opt.overwrite)
			f->error = -EEXIST;
	}
	return *offset > f->len ? -EPROTO : 0;
}

/* What is to be written into. */
static int open_file(struct file *f, uint64_t offset)
{
	int ret;

	if (f->fd >= 0)
		return ftruncate(f->fd, offset) ? -errno : 0;
	ret = cp_temporary(f->parent, f->last, f->temp, sizeof(f->temp));
	if (ret)
		return ret;
	f->fd = openat(f->parent, f->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       0600);
	return f->fd < 0 ? -errno : 0;
}

static void drop(struct file *f)
{
	if (f->fd >= 0)
		unlinkat(f->parent, f->temp, 0);
}

static int publish(struct receiver *r, struct file *f)
{
	int ret;

	/* nobody is given rights by a stranger that go beyond a file's */
	ret = fchmod(f->fd, f->w.mode & 0777) ? -errno : 0;
	if (!ret)
		ret = set_times(f->fd, &f->w);
	if (!ret)
		ret = cp_publish(f->parent, f->temp, f->last, r->cp->opt.overwrite);
	if (!ret) {
		r->cp->nfiles++;
		return 0;
	}
	drop(f);
	return refuse(r, f->w.index, f->name, ret);
}

/* Could another run go on with what has come? */
static bool is_worth_keeping(int ret, const struct spindle_transfer *t)
{
	switch (ret) {
	case -ECONNRESET: case -EINTR: case -ENETDOWN: case -ECONNABORTED: case -ENODATA:
		return true;
	case -ECANCELED:
		return t->error == EINTR;
	}
	return false;
}

/* The bytes, or, where they are of no use, what stands for them in the stream. */
static int transfer(struct receiver *r, struct file *f, uint64_t offset)
{
	struct spindle_transfer t = {
		.id = f->w.index + 1ULL,
		.fd = f->fd,
		.offset = offset,
		.len = f->w.size - offset,
		.uid = r->cp->sender,
		.progress = on_progress,
		.other = on_other,
		.user = r,
	};
	int ret;

	ret = spindle_object_get(r->cp->sp, &t);
	/* what is behind it has no content yet */
	if (ret && f->fd >= 0 && ftruncate(f->fd, offset + t.done))
		drop(f);
	if (!ret && offset + t.len != f->w.size)
		ret = -EPROTO;
	if (ret && !(offset + t.done && is_worth_keeping(ret, &t)))
		drop(f);
	if (ret == -ECANCELED && (t.error || r->gave_up == t.id)) {
		cp_note(r->cp, t.error ? t.error : EIO, "%s: the sender has given it up",
			cp_shown(f->name));
		return 0;
	}
	if (ret == -EBADMSG)
		return refuse(r, f->w.index, f->name, ret);
	if (ret && is_hopeless(-ret))
		return give_up(r, ret, f->name);
	if (ret)
		return ret;
	return f->fd >= 0 ? publish(r, f) : 0;
}

static int take_open_file(struct receiver *r, struct file *f)
{
	uint64_t offset = 0;
	int ret = 0;

	if (!f->error)
		look_at(r, f);
	if (!f->error && r->skip_same && f->have == CP_NOTHING)
		look_for_part(f);
	if (r->skip_same)
		ret = negotiate(r, f, &offset);
	if (ret < 0)
		return ret;
	if (!f->error && f->have == CP_WHOLE)
		r->cp->nsame++;
	else if (!f->error)
		f->error = open_file(f, offset);
	if (f->error) {
		if (f->fd >= 0)
			close(f->fd);
		f->fd = -1;
		if (is_hopeless(-f->error))
			return give_up(r, f->error, f->name);
		ret = ret ? ret : transfer(r, f, offset);
		if (ret < 0)
			return ret;
		return refuse(r, f->w.index, f->name, f->error);
	}
	return ret ? 0 : transfer(r, f, offset);
}

static int take_file(struct receiver *r, const char *name)
{
	static struct file f;
	int ret;

	memset(&f, 0, sizeof(f));
	strcpy(f.name, name);
	f.w = r->m.w;
	f.fd = -1;
	if (f.w.size > INT64_MAX)
		return -EPROTO;
	r->cp->current = f.name;
	f.parent = cp_open_parent(r->dir, f.name, &f.last);
	if (f.parent < 0)
		f.error = f.parent;
	ret = take_open_file(r, &f);
	if (f.fd >= 0)
		close(f.fd);
	if (f.parent >= 0)
		close(f.parent);
	r->cp->base += f.w.size;
	r->cp->done = r->cp->base;
	r->cp->current = NULL;
	return ret;
}

static int make_dir(struct receiver *r, int parent, const char *last, const char *name)
{
	const struct cp_wire *w = &r->m.w;
	bool made = !mkdirat(parent, last, 0700);
	struct later *later;
	struct stat st;

	if (!made && errno != EEXIST)
		return -errno;
	if (!made) {
		if (fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW))
			return -errno;
		if (!S_ISDIR(st.st_mode))
			return -EEXIST;
	}
	r->cp->ndirs++;
	if (!made && !r->cp->opt.overwrite)
		return 0;
	later = reallocarray(r->later, r->nlater + 1, sizeof(*later));
	if (!later)
		return -ENOMEM;
	r->later = later;
	later += r->nlater;
	*later = (struct later) {
		.name = strdup(name),
		.mode = w->mode & 0777,
		.mtime = { .tv_sec = w->mtime, .tv_nsec = w->mtime_ns },
	};
	if (!later->name)
		return -ENOMEM;
	r->nlater++;
	return 0;
}

static int make_link(struct receiver *r, int parent, const char *last, const char *target)
{
	const struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = r->m.w.mtime, .tv_nsec = r->m.w.mtime_ns },
	};
	char temp[NAME_MAX + 1], there[PATH_MAX];
	ssize_t n;
	int ret;

	n = readlinkat(parent, last, there, sizeof(there));
	if (r->skip_same && n == (ssize_t)strlen(target) && !memcmp(there, target, n)) {
		r->cp->nsame++;
		r->cp->nlinks++;
		return 0;
	}
	ret = cp_temporary(parent, last, temp, sizeof(temp));
	if (ret)
		return ret;
	if (symlinkat(target, parent, temp))
		return -errno;
	/* not every file system has times of links */
	utimensat(parent, temp, times, AT_SYMLINK_NOFOLLOW);
	ret = cp_publish(parent, temp, last, r->cp->opt.overwrite);
	if (ret)
		unlinkat(parent, temp, 0);
	else
		r->cp->nlinks++;
	return ret;
}

static int take_entry(struct receiver *r)
{
	const struct cp_wire *w = &r->m.w;
	const char *name = r->m.text, *last;
	size_t len = strlen(name);
	const char *target = name + len + 1;
	uint32_t index = w->index;
	int parent, ret;

	if (w->index != r->next || w->mtime_ns >= 1000000000)
		return -EPROTO;
	r->next++;
	/* a name, a NUL, and of a link where it leads to */
	if (len >= w->len || !cp_name_is_good(name, len))
		return -EBADR;
	if (w->kind != CP_LINK && w->len != len + 1)
		return -EPROTO;
	if (w->kind == CP_FILE)
		return take_file(r, name);
	if (w->kind == CP_LINK ? strlen(target) != w->len - len - 1 || !*target ||
				 strlen(target) >= PATH_MAX : w->kind != CP_DIR)
		return -EPROTO;
	parent = cp_open_parent(r->dir, name, &last);
	if (parent < 0)
		return refuse(r, index, name, parent);
	ret = w->kind == CP_DIR ? make_dir(r, parent, last, name) :
				  make_link(r, parent, last, target);
	close(parent);
	return ret ? refuse(r, index, name, ret) : 0;
}

/* Directories get their mode and time, those within others first. */
static void finish_dirs(struct receiver *r)
{
	const char *last;
	int parent, fd;

	while (r->nlater) {
		const struct later *later = &r->later[--r->nlater];
		const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, later->mtime };

		parent = cp_open_parent(r->dir, later->name, &last);
		fd = parent < 0 ? -1 : openat(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
					      O_CLOEXEC);
		if (fd < 0 || futimens(fd, times) || fchmod(fd, later->mode))
			cp_note(r->cp, errno, "%s", cp_shown(later->name));
		if (fd >= 0)
			close(fd);
		if (parent >= 0)
			close(parent);
		free(later->name);
	}
}

static int receive(struct receiver *r)
{
	struct cp *cp = r->cp;
	struct cp_wire w;
	int ret;

	for (;;) {
		ret = listen_to(r);
		if (ret < 0)
			return ret;
		switch (r->m.w.type) {
		case CP_START:
			if (cp->began)
				return -EPROTO;
			cp->began = cp_now();
			cp->total = r->m.w.size;
			r->skip_same = r->m.w.kind & CP_SKIP_SAME;
			break;
		case CP_ENTRY:
			ret = take_entry(r);
			if (ret)
				return ret;
			cp_show(cp, false);
			break;
		case CP_FINISH:
			finish_dirs(r);
			w = (struct cp_wire) {
				.kind = cp->nfailed, .mode = cp->nsame, .size = cp->done,
			};
			return cp_say(cp, CP_DONE, &w, NULL, 0);
		}
	}
}

/* What has ended it, in words; of what it has said itself nothing more. */
static void explain(struct receiver *r, int ret)
{
	struct cp *cp = r->cp;

	if (ret == -ECONNRESET)
		cp_note(cp, -ret, "the sender is lost");
	else if (ret == -ECANCELED)
		cp_note(cp, r->m.w.error ? (int)r->m.w.error : ECANCELED, "the sender has given up");
	else if (ret == -ENODATA)
		cp_note(cp, ECONNRESET, "the group has ended");
	else if (ret == -EINTR)
		give_up(r, ret, "ended by a signal");
	else if (ret == -EBADR)
		give_up(r, -EPROTO, "the sender has sent a name that is not allowed");
	else if (ret == -EPROTO || ret == -EFBIG)
		give_up(r, -EPROTO, "the sender does not keep to the rules");
	else if (!is_hopeless(-ret) || !cp->error)
		cp_note(cp, -ret, "the group");
}

/**
 * cp_receive_all() - receive what is sent
 * @cp: all of it
 *
 * Return: status of the program.
 */
int cp_receive_all(struct cp *cp)
{
	static struct receiver r;
	int ret;

	r.cp = cp;
	umask(0);
	r.dir = open(cp->opt.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r.dir < 0) {
		cp_warn("%s: %s", cp_shown(cp->opt.dir), strerror(errno));
		return 1;
	}
	if (cp_enter(cp))
		return 1;
	ret = receive(&r);
	cp_show(cp, true);
	if (ret)
		explain(&r, ret);
	cp_leave(cp);
	return ret || cp->nfailed ? 1 : 0;
}
