// SPDX-License-Identifier: MIT
/*
 * spindle-cp: names and files where it receives. Nothing is ever made outside of
 * the directory that the user has named: names are looked at here, and paths are
 * opened by the kernel's own rules for that.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cp.h"

#define MARK		".spindle-"
#define RANDOMS		6		/* characters behind it */
#define KEPT		200		/* bytes of the name in a temporary one */
#define TRIES		100
#define PIECE		(128U << 10)

/**
 * cp_name_is_good() - may a file have this name here
 * @name: relative, from somebody who may mean harm
 * @len: bytes that it has
 *
 * Return: true if it is one or more components, none of them ".", ".." or too
 * long, and not too many.
 */
bool cp_name_is_good(const char *name, size_t len)
{
	unsigned int depth = 0;
	size_t n;

	if (!len || len >= PATH_MAX || strlen(name) != len)
		return false;
	for (;; name += n + 1) {
		n = strcspn(name, "/");
		if (!n || n > NAME_MAX || ++depth > CP_MAX_DEPTH)
			return false;
		if (name[0] == '.' && (n == 1 || (n == 2 && name[1] == '.')))
			return false;
		if (!name[n])
			return true;
	}
}

/* A name that does a terminal no harm, until the next call. */
const char *cp_shown(const char *name)
{
	static char shown[4 * 256];
	size_t i = 0;

	for (; *name && i < sizeof(shown) - 5; name++) {
		unsigned char c = *name;

		if (c < ' ' || c == 0x7f || c == '\\')
			i += sprintf(shown + i, "\\%03o", c);
		else
			shown[i++] = c;
	}
	shown[i] = 0;
	return shown;
}

/**
 * cp_open_parent() - open the directory that a name is in
 * @dir: where names begin
 * @name: one that is good
 * @last: its last component
 *
 * Nothing outside of @dir is ever reached, and no symbolic link is followed.
 *
 * Return: a descriptor for what ends in "at", or a negative errno.
 */
int cp_open_parent(int dir, const char *name, const char **last)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	const char *slash = strrchr(name, '/');
	char path[PATH_MAX] = ".";
	long fd;

	*last = slash ? slash + 1 : name;
	if (slash) {
		memcpy(path, name, slash - name);
		path[slash - name] = 0;
	}
	do
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

static size_t temporary_prefix(const char *last, char *temp, size_t size)
{
	return snprintf(temp, size, ".%.*s" MARK, KEPT, last);
}

/**
 * cp_temporary() - a name that nothing has
 * @parent: directory
 * @last: the file's name
 * @temp: where the other name goes
 * @size: NAME_MAX and one more
 *
 * Return: 0 or a negative errno.
 */
int cp_temporary(int parent, const char *last, char *temp, size_t size)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
	size_t n = temporary_prefix(last, temp, size);
	unsigned char random[RANDOMS];
	unsigned int i, tries;
	struct stat st;

	for (tries = 0; tries < TRIES; tries++) {
		/* a guest that was just booted may lack better ones */
		if (getrandom(random, sizeof(random), GRND_INSECURE) != sizeof(random))
			return -EIO;
		for (i = 0; i < RANDOMS; i++)
			temp[n + i] = letters[random[i] % 32];
		temp[n + RANDOMS] = 0;
		if (fstatat(parent, temp, &st, AT_SYMLINK_NOFOLLOW))
			return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

/* That may be written, and is nobody else's. */
static int open_leftover(int parent, const char *name)
{
	struct stat st;
	int fd;

	fd = openat(parent, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    st.st_nlink == 1 && st.st_size)
		return fd;
	close(fd);
	return -1;
}

/**
 * cp_leftover() - what an earlier run has left of a file
 * @parent: directory
 * @last: the file's name
 * @temp: where the name of what is left goes
 * @size: NAME_MAX and one more
 *
 * Return: it, open for reading and writing; -1: nothing.
 */
int cp_leftover(int parent, const char *last, char *temp, size_t size)
{
	char prefix[NAME_MAX + 1];
	size_t n = temporary_prefix(last, prefix, sizeof(prefix));
	struct dirent *e;
	int fd = -1;
	DIR *d;

	fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	fd = -1;
	while (fd < 0 && (e = readdir(d))) {
		if (strlen(e->d_name) != n + RANDOMS || memcmp(e->d_name, prefix, n))
			continue;
		fd = open_leftover(parent, e->d_name);
		if (fd >= 0)
			snprintf(temp, size, "%s", e->d_name);
	}
	closedir(d);
	return fd;
}

/**
 * cp_publish() - give a finished file its name
 * @parent: directory
 * @temp: the name that it has
 * @last: the name that it gets
 * @overwrite: also if there is one of that name
 *
 * Return: 0; -EEXIST, or another negative errno.
 */
int cp_publish(int parent, const char *temp, const char *last, bool overwrite)
{
	if (overwrite)
		return renameat(parent, temp, parent, last) ? -errno : 0;
	if (!syscall(SYS_renameat2, parent, temp, parent, last, 1U /* RENAME_NOREPLACE */))
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* a file system that cannot do that */
	if (linkat(parent, temp, parent, last, 0))
		return -errno;
	unlinkat(parent, temp, 0);
	return 0;
}

/* XXH3 of the first @len bytes of a file. */
int cp_hash(int fd, uint64_t len, unsigned char *hash)
{
	XXH3_state_t *state = XXH3_createState();
	unsigned char *piece = malloc(PIECE);
	XXH128_canonical_t canonical;
	uint64_t off = 0;
	ssize_t n = 0;
	int ret = 0;

	if (!state || !piece)
		ret = -ENOMEM;
	if (!ret)
		XXH3_128bits_reset(state);
	while (!ret && off < len && !cp_signal) {
		n = pread(fd, piece, len - off < PIECE ? len - off : PIECE, off);
		if (n < 0 && errno != EINTR)
			ret = -errno;
		if (!n)
			ret = -ESTALE;
		if (n > 0) {
			XXH3_128bits_update(state, piece, n);
			off += n;
		}
	}
	if (!ret && off < len)
		ret = -EINTR;
	if (!ret) {
		XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
		memcpy(hash, &canonical, SPINDLE_HASH_LEN);
	}
	XXH3_freeState(state);
	free(piece);
	return ret;
}
