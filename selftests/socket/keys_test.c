// SPDX-License-Identifier: GPL-2.0
/*
 * Groups with a secret: who has the right one comes in, who has another one, or
 * none, does not, by whatever way; and what may happen to the key afterwards.
 */
#include "spindle_selftest.h"

#define RIGHT	"0123456789abcdef0123456789abcdef"
#define WRONG	"0123456789abcdef0123456789abcdee"

/* The same description for all: what counts is the secret. */
static long have(const char *type, const char *description, const char *secret)
{
	return CHECK_OK(st_key_add(type, description, secret, strlen(secret),
				   KEY_SPEC_PROCESS_KEYRING));
}

static void have_all(void)
{
	have("user", "spindle:right", RIGHT);
	have("user", "spindle:again", RIGHT);
	have("logon", "spindle:logon", RIGHT);
	have("user", "spindle:wrong", WRONG);
	have("user", "spindle:other", "another secret of some length");
}

static int bound_with(unsigned int node, const char *key)
{
	int fd = st_bound(node);

	if (key)
		CHECK_OK(st_key(fd, key));
	return fd;
}

static int make(const char *name, unsigned int members, const char *key)
{
	struct st_config c = { .members = members, .max_members = 16 };
	struct spindle_group_create create = st_create_of(&c, name);
	int fd = bound_with(0, key);

	CHECK_OK(st_create(fd, &create));
	return fd;
}

static int come(int fd, const char *name, unsigned int contact)
{
	struct spindle_group_join join = { 0 };

	snprintf(join.name, sizeof(join.name), "%s", name);
	st_contact(&join, st_addr(contact));
	return st_join(fd, &join);
}

static int come_with(unsigned int node, const char *name, unsigned int contact, const char *key)
{
	int fd = bound_with(node, key);

	CHECK_OK(come(fd, name, contact));
	return fd;
}

/* Nobody comes by this contact but who has the secret. */
static void refuse(unsigned int node, const char *name, unsigned int contact)
{
	int fd = bound_with(node, NULL);

	CHECK_ERR(come(fd, name, contact), ENOKEY);
	CHECK_OK(st_key(fd, "spindle:wrong"));
	CHECK_ERR(come(fd, name, contact), EKEYREJECTED);
	CHECK_OK(st_key(fd, "spindle:other"));
	CHECK_ERR(come(fd, name, contact), EKEYREJECTED);
	CHECK_EQ(st_info(fd).state, SPINDLE_STATE_NONE);
	close(fd);
}

static void talk(const int *fd, unsigned int n)
{
	char text[32];
	unsigned int i, k;

	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "from %u", i);
		st_say(fd[i], text);
		for (k = 0; k < n; k++)
			st_expect(fd[k], text);
	}
}

static void keyed_file(const char *name, const char *want)
{
	char path[256], text[32];

	snprintf(path, sizeof(path), "/sys/kernel/spindle/%s/%s/keyed", st_addr(0), name);
	CHECK(st_read_file(path, text, sizeof(text)));
	if (strcmp(text, want))
		FAIL("%s: \"%s\", not \"%s\"", path, text, want);
}

TEST(key_descriptions)
{
	char secret[1025], text[SPINDLE_KEY_LEN + 1];
	int fd = st_bound(0);
	int value;
	socklen_t len = sizeof(value);

	memset(secret, 's', sizeof(secret));
	CHECK_ERR(st_key(fd, "spindle:nobody has it"), ENOKEY);
	CHECK_ERR(st_key(fd, "spindle:"), EINVAL);
	CHECK_ERR(st_key(fd, "spindle"), EINVAL);
	have("user", "cifs:somebody", RIGHT);
	CHECK_ERR(st_key(fd, "cifs:somebody"), EINVAL);
	have("user", "spindle:s", RIGHT);
	CHECK_OK(st_key(fd, "spindle:s"));
	CHECK_OK(st_key(fd, ""));
	CHECK_ERR(getsockopt(fd, SOL_SPINDLE, SPINDLE_KEY, &value, &len), ENOPROTOOPT);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_KEY, NULL, 10), EFAULT);
	memset(text, 'x', sizeof(text));
	memcpy(text, "spindle:", 8);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_KEY, text, SPINDLE_KEY_LEN + 1), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_KEY, text, SPINDLE_KEY_LEN), EINVAL);
	CHECK_ERR(setsockopt(fd, SOL_SPINDLE, SPINDLE_KEY, text, SPINDLE_KEY_LEN - 1), ENOKEY);
	CHECK_OK(st_key_add("user", "spindle:15", secret, 15, KEY_SPEC_PROCESS_KEYRING));
	CHECK_ERR(st_key(fd, "spindle:15"), ERANGE);
	CHECK_OK(st_key_add("user", "spindle:16", secret, 16, KEY_SPEC_PROCESS_KEYRING));
	CHECK_OK(st_key(fd, "spindle:16"));
	CHECK_OK(st_key_add("logon", "spindle:1024", secret, 1024, KEY_SPEC_PROCESS_KEYRING));
	CHECK_OK(st_key(fd, "spindle:1024"));
	CHECK_OK(st_key_add("user", "spindle:1025", secret, 1025, KEY_SPEC_PROCESS_KEYRING));
	CHECK_ERR(st_key(fd, "spindle:1025"), ERANGE);
}

TEST(the_right_key)
{
	struct spindle_group_info info;
	char name[SPINDLE_NAME_LEN];
	int fd[4];
	unsigned int i;

	st_name(name);
	have_all();
	fd[0] = make(name, 4, "spindle:right");
	fd[1] = come_with(1, name, 0, "spindle:again");
	fd[2] = come_with(2, name, 0, "spindle:logon");
	fd[3] = come_with(2, name, 0, "spindle:right");
	for (i = 0; i < 4; i++)
		st_wait_state(fd[i], SPINDLE_STATE_ACTIVE);
	talk(fd, 4);
	info = st_info(fd[1]);
	CHECK_EQ(info.flags & SPINDLE_F_KEYED, SPINDLE_F_KEYED);
	keyed_file(name, "1");
	CHECK_ERR(st_key(fd[1], "spindle:wrong"), EISCONN);
	CHECK_ERR(st_key(fd[1], ""), EISCONN);
}

TEST(other_keys_before_the_first_view)
{
	char name[SPINDLE_NAME_LEN];
	int fd[3];
	unsigned int i;

	st_name(name);
	have_all();
	fd[0] = make(name, 3, "spindle:right");
	/* on its own node, by it, and by one that sends them on to it */
	refuse(0, name, 1);
	refuse(1, name, 0);
	fd[1] = come_with(1, name, 0, "spindle:right");
	refuse(1, name, 0);
	refuse(2, name, 1);
	refuse(2, name, 0);
	CHECK_EQ(st_info(fd[0]).state, SPINDLE_STATE_FORMING);
	fd[2] = come_with(2, name, 1, "spindle:logon");
	for (i = 0; i < 3; i++)
		st_wait_state(fd[i], SPINDLE_STATE_ACTIVE);
	talk(fd, 3);
}

TEST(other_keys_later)
{
	char name[SPINDLE_NAME_LEN];
	int fd[4];

	st_name(name);
	have_all();
	fd[0] = make(name, 1, "spindle:right");
	st_wait_state(fd[0], SPINDLE_STATE_ACTIVE);
	refuse(0, name, 1);
	refuse(1, name, 0);
	fd[1] = come_with(1, name, 0, "spindle:right");
	refuse(1, name, 0);
	refuse(2, name, 0);
	refuse(2, name, 1);
	CHECK_EQ(st_info(fd[0]).view, 2);
	fd[2] = come_with(2, name, 1, "spindle:logon");
	/* on a node that knows it */
	fd[3] = come_with(1, name, 2, "spindle:again");
	st_wait_members(fd[0], 4);
	st_wait_members(fd[1], 4);
	st_wait_members(fd[2], 4);
	st_wait_members(fd[3], 4);
	talk(fd, 4);
}

TEST(a_key_for_a_group_without)
{
	char name[SPINDLE_NAME_LEN];
	int fd[2], with;

	st_name(name);
	have_all();
	fd[0] = make(name, 2, NULL);
	with = bound_with(1, "spindle:right");
	CHECK_ERR(come(with, name, 0), EKEYREJECTED);
	fd[1] = come_with(1, name, 0, NULL);
	st_wait_state(fd[0], SPINDLE_STATE_ACTIVE);
	CHECK_ERR(come(with, name, 0), EKEYREJECTED);
	close(with);
	with = bound_with(0, "spindle:right");
	CHECK_ERR(come(with, name, 1), EKEYREJECTED);
	CHECK_EQ(st_info(fd[0]).flags & SPINDLE_F_KEYED, 0);
	keyed_file(name, "0");
	CHECK_OK(st_key(with, ""));
	CHECK_OK(come(with, name, 1));
}

/* Members of groups with a secret, with another, and without, on the same nodes. */
TEST(groups_that_share_links)
{
	static const char *const key[] = {
		"spindle:right", "spindle:other", NULL, "spindle:right",
	};
	char name[4][SPINDLE_NAME_LEN];
	int fd[4][3];
	unsigned int i, k;

	have_all();
	for (i = 0; i < 4; i++) {
		st_name(name[i]);
		fd[i][0] = make(name[i], 3, key[i]);
	}
	for (i = 0; i < 4; i++)
		for (k = 1; k < 3; k++)
			fd[i][k] = come_with(k, name[i], 0, key[i]);
	for (i = 0; i < 4; i++)
		for (k = 0; k < 3; k++)
			st_wait_state(fd[i][k], SPINDLE_STATE_ACTIVE);
	for (i = 0; i < 4; i++)
		talk(fd[i], 3);
	/* who is trusted in one is not in another */
	refuse(1, name[0], 0);
	refuse(2, name[3], 1);
}

TEST(a_key_that_goes)
{
	char name[SPINDLE_NAME_LEN];
	int fd[4];
	long id;

	st_name(name);
	have_all();
	id = have("user", "spindle:mine", RIGHT);
	fd[0] = make(name, 1, "spindle:mine");
	st_wait_state(fd[0], SPINDLE_STATE_ACTIVE);
	fd[1] = bound_with(1, "spindle:mine");
	/* revoked: what was taken from it is good, and nothing more is taken */
	CHECK_OK(syscall(SYS_keyctl, KEYCTL_REVOKE, id));
	fd[3] = st_bound(3);
	CHECK_ERR(st_key(fd[3], "spindle:mine"), ENOKEY);
	CHECK_OK(come(fd[1], name, 0));
	/* a group that begins on new links, and one who comes by that */
	fd[2] = come_with(2, name, 1, "spindle:again");
	CHECK_OK(syscall(SYS_keyctl, KEYCTL_UNLINK, id, KEY_SPEC_PROCESS_KEYRING));
	CHECK_ERR(st_key(fd[3], "spindle:mine"), ENOKEY);
	CHECK_OK(st_key(fd[3], "spindle:again"));
	CHECK_OK(come(fd[3], name, 2));
	st_wait_members(fd[0], 4);
	st_wait_members(fd[1], 4);
	st_wait_members(fd[2], 4);
	st_wait_members(fd[3], 4);
	talk(fd, 4);
	/* changed: another secret */
	id = have("user", "spindle:mine", RIGHT);
	id = have("user", "spindle:mine", WRONG);
	close(fd[3]);
	fd[3] = bound_with(3, "spindle:mine");
	CHECK_ERR(come(fd[3], name, 0), EKEYREJECTED);
}

TEST(a_key_that_expires)
{
	long id = have("user", "spindle:mine", RIGHT);
	int fd = st_bound(0);

	CHECK_OK(st_key(fd, "spindle:mine"));
	CHECK_OK(syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, id, 1));
	WAIT_UNTIL(st_key(fd, "spindle:mine") && errno == ENOKEY, ST_SOON);
}

TEST(who_may_not)
{
	int fd = st_bound(0);
	pid_t pid;

	have_all();
	pid = CHECK_OK(fork());
	if (!pid) {
		have_all();
		CHECK_OK(st_key(fd, "spindle:right"));
		CHECK_OK(setgid(3999));
		CHECK_OK(setuid(3999));
		CHECK_ERR(st_key(fd, "spindle:right"), EPERM);
		CHECK_ERR(st_key(fd, ""), EPERM);
		_exit(0);
	}
	st_reap(pid);
}

/* Many at once, by several contacts, some with the wrong key. */
TEST_SECONDS(many_at_once, 120)
{
	enum { N = 14 };
	char name[SPINDLE_NAME_LEN];
	unsigned int i, left = 0;
	int ready[2], fd[2];
	pid_t pid[N];
	char c;

	st_name(name);
	have_all();
	fd[0] = make(name, 1, "spindle:right");
	st_wait_state(fd[0], SPINDLE_STATE_ACTIVE);
	fd[1] = come_with(1, name, 0, "spindle:right");
	CHECK_OK(pipe(ready));
	for (i = 0; i < N; i++) {
		bool right = i % 3;

		left += right;
		pid[i] = CHECK_OK(fork());
		if (pid[i])
			continue;
		have_all();
		close(ready[1]);
		CHECK_EQ(read(ready[0], &c, 1), 0);
		fd[0] = bound_with(2 + i / 2, right ? "spindle:right" : "spindle:wrong");
		if (!right) {
			CHECK_ERR(come(fd[0], name, i % 2), EKEYREJECTED);
			_exit(0);
		}
		CHECK_OK(come(fd[0], name, i % 2));
		for (i = 0; i < 5; i++)
			st_say(fd[0], "here");
		CHECK_OK(setsockopt(fd[0], SOL_SPINDLE, SPINDLE_SYNC,
				    &(int){ SPINDLE_SYNC_RECEIVED }, sizeof(int)));
		_exit(0);
	}
	close(ready[1]);
	for (i = 0; i < 5 * left; i++) {
		st_expect(fd[0], "here");
		st_expect(fd[1], "here");
	}
	for (i = 0; i < N; i++)
		st_reap(pid[i]);
	st_wait_members(fd[0], 2);
	talk(fd, 2);
}

int main(int argc, char **argv)
{
	/* Each says for itself which one it has. */
	unsetenv("SPINDLE_TEST_KEY");
	return st_main(argc, argv);
}
