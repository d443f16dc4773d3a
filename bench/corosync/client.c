/* A load for Corosync's closed process groups, one process for each node.
 *
 * Joins a group, waits until all nodes are in it, multicasts in agreed order for some seconds, as fast as the daemon
 * takes it or at a fixed rate, and prints one line of JSON when it has delivered the end mark of every sender.
 *
 * Everything delivered is hashed as (sender, counter) in the order of delivery: members that delivered the same
 * messages in the same order print the same hash. Latency is taken at delivery against the time that the sender wrote
 * into the message: all nodes are on one machine, and so share the monotonic clock.
 *
 * A sender delivers when the daemon refuses a message. A daemon with real-time priority hardly ever does, so a sender
 * may find all its deliveries at the end: with a burst given, it also delivers after so many messages, as an
 * application would that has to act on what it hears. That is slower, and its latency says something.
 *
 * Senders with a rate take turns: each sends at its phase of the period, a part of it from 0 to 1, by the common clock.
 *
 *     client GROUP NODES SENDERS IS_SENDER SIZE SECONDS RATE PHASE BURST
 */
#include <corosync/cpg.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>

#define SECOND_NS 1000000000LL
#define NODES_MAX 256
#define JOIN_PATIENCE_NS (20 * SECOND_NS)
#define DRAIN_PATIENCE_NS (15 * SECOND_NS) /* after the last send: an overloaded cluster may never get there */
#define POLL_NS 10000000LL

struct stamp {
	uint32_t sender;
	uint32_t is_end;
	uint64_t counter;
	int64_t sent_ns;
};

static struct {
	size_t members;
	unsigned ended; /* senders whose end mark is here */
	uint64_t delivered;
	uint64_t gaps; /* a sender's counter that does not follow its last */
	uint64_t hash;
	uint64_t next[NODES_MAX];
	int64_t last_ns;
	uint32_t *latencies_us;
	size_t room;
} state = { .hash = 14695981039346656037ULL };

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void fail(const char *what, int code)
{
	printf("{\"error\": \"%s: %d\"}\n", what, code);
	exit(2);
}

/* FNV-1a, eight bytes at a time. */
static void hash_in(uint64_t value)
{
	state.hash = (state.hash ^ value) * 1099511628211ULL;
}

static void on_deliver(cpg_handle_t handle, const struct cpg_name *group, uint32_t node, uint32_t pid, void *data,
		       size_t size)
{
	struct stamp stamp;

	(void)handle, (void)group, (void)node, (void)pid;
	if (size < sizeof stamp)
		return;
	memcpy(&stamp, data, sizeof stamp);
	state.last_ns = now_ns();
	if (stamp.is_end) {
		state.ended++;
		return;
	}
	hash_in(stamp.sender);
	hash_in(stamp.counter);
	state.gaps += stamp.counter != state.next[stamp.sender % NODES_MAX];
	state.next[stamp.sender % NODES_MAX] = stamp.counter + 1;
	if (state.delivered == state.room) {
		state.room = state.room ? 2 * state.room : 65536;
		state.latencies_us = realloc(state.latencies_us, state.room * sizeof *state.latencies_us);
		if (!state.latencies_us)
			fail("no memory", errno);
	}
	state.latencies_us[state.delivered++] = (uint32_t)((state.last_ns - stamp.sent_ns) / 1000);
}

static void on_members(cpg_handle_t handle, const struct cpg_name *group, const struct cpg_address *members,
		       size_t count, const struct cpg_address *left, size_t left_count,
		       const struct cpg_address *joined, size_t joined_count)
{
	(void)handle, (void)group, (void)members, (void)left, (void)left_count, (void)joined, (void)joined_count;
	state.members = count;
}

/* Waits for something to deliver, not beyond the given time, and delivers all there is. */
static void dispatch_until(cpg_handle_t handle, int fd, int64_t until_ns)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	int64_t rest_ns = until_ns - now_ns();
	struct timespec patience = { 0, 0 };
	cs_error_t code;

	if (rest_ns > 0)
		patience = (struct timespec){ rest_ns / SECOND_NS, rest_ns % SECOND_NS };
	if (ppoll(&ready, 1, &patience, NULL) <= 0)
		return;
	code = cpg_dispatch(handle, CS_DISPATCH_ALL);
	if (code != CS_OK && code != CS_ERR_TRY_AGAIN)
		fail("dispatch", code);
}

static cpg_handle_t join(const char *name)
{
	cpg_callbacks_t callbacks = { .cpg_deliver_fn = on_deliver, .cpg_confchg_fn = on_members };
	struct timespec pause = { 0, 20000000 };
	struct cpg_name group = { .length = (uint32_t)strlen(name) };
	int64_t deadline_ns = now_ns() + JOIN_PATIENCE_NS;
	cpg_handle_t handle;
	cs_error_t code;

	memcpy(group.value, name, group.length);
	while ((code = cpg_initialize(&handle, &callbacks)) != CS_OK) {
		if (now_ns() > deadline_ns)
			fail("no daemon", code);
		nanosleep(&pause, NULL);
	}
	while ((code = cpg_join(handle, &group)) != CS_OK) {
		if (code != CS_ERR_TRY_AGAIN || now_ns() > deadline_ns)
			fail("join", code);
		nanosleep(&pause, NULL);
	}
	return handle;
}

static int multicast(cpg_handle_t handle, struct stamp stamp, char *message, size_t size)
{
	struct iovec part = { .iov_base = message, .iov_len = size };
	cs_error_t code;

	stamp.sent_ns = now_ns();
	memcpy(message, &stamp, sizeof stamp);
	code = cpg_mcast_joined(handle, CPG_TYPE_AGREED, &part, 1);
	if (code != CS_OK && code != CS_ERR_TRY_AGAIN)
		fail("multicast", code);
	return code == CS_OK;
}

/* Sends until the time is over, then the end mark. Returns how many. */
static uint64_t send_all(cpg_handle_t handle, int fd, struct stamp stamp, size_t size, int64_t end_ns, double rate,
			 double phase, uint64_t burst)
{
	char *message = calloc(1, size);
	int64_t start_ns = now_ns();
	int64_t now;

	if (rate > 0) {
		double period_ns = SECOND_NS / rate;

		start_ns = (int64_t)(((double)(int64_t)((double)start_ns / period_ns) + 1 + phase) * period_ns);
	}

	if (!message)
		fail("no memory", errno);
	while ((now = now_ns()) < end_ns) {
		int64_t due_ns = rate > 0 ? start_ns + (int64_t)((double)stamp.counter * SECOND_NS / rate) : 0;

		if (now < due_ns)
			dispatch_until(handle, fd, due_ns < end_ns ? due_ns : end_ns);
		else if (!multicast(handle, stamp, message, size))
			dispatch_until(handle, fd, now + POLL_NS);
		else if (++stamp.counter % burst == 0)
			dispatch_until(handle, fd, now);
	}
	stamp.is_end = 1;
	while (!multicast(handle, stamp, message, size) && now_ns() < end_ns + DRAIN_PATIENCE_NS)
		dispatch_until(handle, fd, now_ns() + POLL_NS);
	free(message);
	return stamp.counter;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t percentile(unsigned percent)
{
	return state.delivered ? state.latencies_us[(state.delivered - 1) * percent / 100] : 0;
}

int main(int argc, char **argv)
{
	unsigned nodes, senders, is_sender, me;
	struct stamp stamp = { 0 };
	struct rusage usage;
	cpg_handle_t handle;
	int64_t start_ns, end_ns, deadline_ns;
	uint64_t sent = 0, burst;
	size_t size;
	double cpu_s;
	int fd;

	if (argc != 10)
		fail("arguments: GROUP NODES SENDERS IS_SENDER SIZE SECONDS RATE PHASE BURST", argc - 1);
	nodes = (unsigned)atoi(argv[2]);
	senders = (unsigned)atoi(argv[3]);
	is_sender = (unsigned)atoi(argv[4]);
	size = (size_t)atol(argv[5]);
	burst = strtoull(argv[9], NULL, 10);
	if (size < sizeof stamp)
		size = sizeof stamp;

	handle = join(argv[1]);
	if (cpg_fd_get(handle, &fd) != CS_OK || cpg_local_get(handle, &me) != CS_OK)
		fail("no descriptor", 0);
	stamp.sender = me;
	for (deadline_ns = now_ns() + JOIN_PATIENCE_NS; state.members < nodes;) {
		if (now_ns() > deadline_ns)
			fail("members", (int)state.members);
		dispatch_until(handle, fd, deadline_ns);
	}

	start_ns = now_ns();
	end_ns = start_ns + (int64_t)(atof(argv[6]) * SECOND_NS);
	if (is_sender)
		sent = send_all(handle, fd, stamp, size, end_ns, atof(argv[7]), atof(argv[8]),
				burst ? burst : UINT64_MAX);
	while (state.ended < senders && now_ns() < end_ns + DRAIN_PATIENCE_NS)
		dispatch_until(handle, fd, now_ns() + POLL_NS);

	getrusage(RUSAGE_SELF, &usage);
	cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	qsort(state.latencies_us, state.delivered, sizeof *state.latencies_us, by_value);
	printf("{\"node\": %u, \"sent\": %" PRIu64 ", \"delivered\": %" PRIu64 ", \"seconds\": %.6f, \"is_drained\": %s, "
	       "\"gaps\": %" PRIu64 ", \"hash\": \"%016" PRIx64 "\", \"p50_us\": %u, \"p90_us\": %u, \"p99_us\": %u, "
	       "\"cpu_s\": %.6f}\n",
	       me, sent, state.delivered, state.last_ns > start_ns ? (double)(state.last_ns - start_ns) / 1e9 : 0.0,
	       state.ended == senders ? "true" : "false", state.gaps, state.hash, percentile(50), percentile(90),
	       percentile(99), cpu_s);
	fflush(stdout);
	cpg_finalize(handle);
	return 0;
}
