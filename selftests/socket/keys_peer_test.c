// SPDX-License-Identifier: GPL-2.0
/*
 * A node that does not know the secret of a group, and speaks the wire format:
 * whatever it says, it is told nothing but that it is to prove it, is believed
 * nothing, and the group goes on.
 */
#include "peer.h"

#define RIGHT	"0123456789abcdef0123456789abcdef"
#define EVIL	0	/* address of the one that does not know it */

static struct peer evil;
static struct peer_link *link0;
static unsigned int seen[32];		/* messages of each type */
static struct sp_msg_challenge challenge;
static struct sp_msg_answer answer;
static struct sp_msg_prove prove;
static char group[SPINDLE_NAME_LEN];
static int fd[2];

static void heard(const void *data)
{
	const struct sp_msg *msg = data;

	if ((s32)(msg->credits - link0->granted) > 0)
		link0->granted = msg->credits;
	CHECK(msg->type < ARRAY_SIZE(seen));
	seen[msg->type]++;
	if (msg->type == SP_MSG_CHALLENGE)
		memcpy(&challenge, data, sizeof(challenge));
	if (msg->type == SP_MSG_ANSWER)
		memcpy(&answer, data, sizeof(answer));
	if (msg->type == SP_MSG_PROVE)
		memcpy(&prove, data, sizeof(prove));
}

static void take(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(link0->cq, 1, &wc) == 1) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == ~0ULL) {
			link0->done++;
			continue;
		}
		heard(link0->mem->rx[wc.wr_id]);
		peer_post_recv(link0, wc.wr_id);
	}
}

/* So many of a type in all; it is the answer to what was said last. */
static void await(unsigned int type, unsigned int n)
{
	double end = st_now() + 2 * ST_SOON;

	while (seen[type] < n) {
		take();
		if (st_now() > end)
			FAIL("no message of type %u in %d s", type, 2 * ST_SOON);
		st_pause_us(200);
	}
	CHECK_EQ(seen[type], n);
}

static void say(void *msg, u16 type, u16 len)
{
	double end = st_now() + ST_SOON;

	while ((s32)(link0->granted - link0->said) <= 1) {
		take();
		CHECK(st_now() < end);
	}
	peer_say(&evil, link0, msg, type, len);
}

static struct sp_msg_join join_of(u32 keyed)
{
	struct sp_msg_join join = { .cookie = evil.cookie, .keyed = keyed };

	snprintf(join.name, sizeof(join.name), "%s", group);
	return join;
}

static void refused(struct sp_msg_join *join, int error)
{
	unsigned int n = seen[SP_MSG_ANSWER];

	say(join, SP_MSG_JOIN, sizeof(*join));
	await(SP_MSG_ANSWER, n + 1);
	CHECK_EQ(answer.error, error);
	CHECK_EQ(answer.gid, 0);
	CHECK_EQ(answer.config.members, 0);
}

/* Nothing that is for members has come, and they are as they were. */
static void in_peace(u64 view)
{
	static const unsigned int secret[] = {
		SP_MSG_VIEW, SP_MSG_KEYS, SP_MSG_TELL, SP_MSG_READY, SP_MSG_GO, SP_MSG_ROW,
		SP_MSG_WAKE,
	};
	struct sp_msg_join none = join_of(SP_JOIN_PLAIN);
	unsigned int i, k;

	/* behind all that was said before */
	refused(&none, -ENOKEY);
	for (i = 0; i < ARRAY_SIZE(secret); i++)
		CHECK_EQ(seen[secret[i]], 0);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(st_info(fd[i]).view, view);
		CHECK_EQ(st_info(fd[i]).state, SPINDLE_STATE_ACTIVE);
		st_say(fd[i], "we");
		for (k = 0; k < 2; k++)
			st_expect(fd[k], "we");
	}
}

static void begin(void)
{
	struct st_config c = { .members = 2, .max_members = 8 };
	struct spindle_group_create create;
	struct spindle_group_join join = { 0 };
	unsigned int i;

	st_name(group);
	create = st_create_of(&c, group);
	snprintf(join.name, sizeof(join.name), "%s", group);
	st_contact(&join, st_addr(1));
	CHECK_OK(st_key_add("user", "spindle:right", RIGHT, strlen(RIGHT),
			    KEY_SPEC_PROCESS_KEYRING));
	for (i = 0; i < 2; i++) {
		fd[i] = st_bound(1 + i);
		CHECK_OK(st_key(fd[i], "spindle:right"));
		CHECK_OK(i ? st_join(fd[i], &join) : st_create(fd[i], &create));
	}
	for (i = 0; i < 2; i++)
		st_wait_state(fd[i], SPINDLE_STATE_ACTIVE);
	evil.from = st_addr(EVIL);
	evil.incarnation = 4711;
	evil.cookie = 815;
	link0 = peer_connect(&evil, 0, st_addr(1));
}

TEST(no_proof)
{
	struct sp_msg_join join;
	unsigned int i;
	u8 nonce[SP_NONCE_LEN];

	begin();
	join = join_of(SP_JOIN_PLAIN);
	refused(&join, -ENOKEY);
	/* proofs of nothing, and without having been asked */
	join = join_of(SP_JOIN_PROOF);
	refused(&join, -EKEYREJECTED);
	for (i = 0; i < 4; i++) {
		join = join_of(SP_JOIN_KEYED);
		say(&join, SP_MSG_JOIN, sizeof(join));
		await(SP_MSG_CHALLENGE, i + 1);
		CHECK_EQ(challenge.cookie, evil.cookie);
		CHECK_EQ(challenge.view, 1);
		/* never the same twice */
		CHECK(i == 0 || memcmp(nonce, challenge.nonce, sizeof(nonce)));
		memcpy(nonce, challenge.nonce, sizeof(nonce));
		join = join_of(SP_JOIN_PROOF);
		memcpy(join.nonce, nonce, sizeof(nonce));
		memcpy(join.mac, i & 1 ? nonce : challenge.nonce + 1, sizeof(join.mac) - 1);
		refused(&join, -EKEYREJECTED);
		/* one try */
		refused(&join, -EKEYREJECTED);
	}
	/* however often it asks, no more is kept than the last 64 */
	for (i = 0; i < 200; i++) {
		join = join_of(SP_JOIN_KEYED);
		join.cookie += i;
		say(&join, SP_MSG_JOIN, sizeof(join));
		await(SP_MSG_CHALLENGE, 5 + i);
	}
	in_peace(1);
}

TEST(its_own_words_back)
{
	struct sp_msg_prove hello = { .prove.view = 1 };
	struct sp_msg_join join;

	begin();
	join = join_of(SP_JOIN_KEYED);
	say(&join, SP_MSG_JOIN, sizeof(join));
	await(SP_MSG_CHALLENGE, 1);
	hello.gid = challenge.gid;
	memset(hello.prove.nonce, 7, sizeof(hello.prove.nonce));
	say(&hello, SP_MSG_PROVE, sizeof(hello));
	await(SP_MSG_PROVE, 1);
	CHECK(prove.prove.flags & SP_PROVE_MAC);
	/* that, as if it were ours; and with its nonce for ours */
	say(&prove, SP_MSG_PROVE, sizeof(prove));
	hello.prove = prove.prove;
	hello.prove.flags = 0;
	say(&hello, SP_MSG_PROVE, sizeof(hello));
	await(SP_MSG_PROVE, 2);
	say(&prove, SP_MSG_PROVE, sizeof(prove));
	prove.prove.flags &= ~SP_PROVE_OUT;
	say(&prove, SP_MSG_PROVE, sizeof(prove));
	prove.prove.flags |= SP_PROVE_OUT;
	say(&prove, SP_MSG_PROVE, sizeof(prove));
	in_peace(1);
}

TEST(what_only_members_may_say)
{
	u8 room[SP_MSG_MAX] = { 0 };
	struct sp_msg_join join;
	struct sp_msg_keys *keys = (struct sp_msg_keys *)room;
	struct sp_msg_tell *tell = (struct sp_msg_tell *)room;
	struct sp_msg_leave leave = { .cookie = evil.cookie };
	struct sp_msg_view *view = (struct sp_msg_view *)room;
	struct sp_msg_row row = { .ncells = 0, .view = 1 };
	struct sp_msg_bye bye = { .error = -ECONNABORTED };
	struct sp_msg_wake wake = { 0 };
	u32 i;

	begin();
	join = join_of(SP_JOIN_KEYED);
	say(&join, SP_MSG_JOIN, sizeof(join));
	await(SP_MSG_CHALLENGE, 1);
	bye.gid = challenge.gid;
	leave.gid = challenge.gid;
	say(&leave, SP_MSG_LEAVE, sizeof(leave));
	say(&bye, SP_MSG_BYE, sizeof(bye));
	keys->gid = challenge.gid;
	keys->count = 1;
	keys->view = 2;
	keys->keys[0].rkey = 1;
	say(keys, SP_MSG_KEYS, sizeof(*keys) + sizeof(keys->keys[0]));
	memset(room, 0, sizeof(room));
	tell->gid = challenge.gid;
	tell->total = 64;
	say(tell, SP_MSG_TELL, sizeof(*tell) + 64);
	memset(room, 0, sizeof(room));
	view->gid = challenge.gid;
	view->view = 1;
	view->total = 1;
	view->count = 1;
	say(view, SP_MSG_VIEW, sizeof(*view) + sizeof(view->members[0]));
	for (i = 0; i < 64; i++) {
		row.handle = i;
		say(&row, SP_MSG_ROW, sizeof(row));
		wake.handle = i;
		say(&wake, SP_MSG_WAKE, sizeof(wake));
	}
	in_peace(1);
}

int main(int argc, char **argv)
{
	/* The members have one of their own. */
	unsetenv("SPINDLE_TEST_KEY");
	return st_main(argc, argv);
}
