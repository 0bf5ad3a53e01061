/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A net and the one connection that a subcommand works on: opening with the options,
 * connecting or accepting, hello and greeting, waiting, events told to a person, an
 * orderly end. Knows nothing of files or benchmarks.
 *
 * A server serves one connection at a time. Others may connect meanwhile: they wait
 * with one small receive each for their hello, are answered PINGs by the library, and
 * are taken in the order of their hellos.
 *
 * Invariants
 *  1. Completions of `conn` go to the caller of session_poll(); those of waiting
 *     connections, hello and greeting never do.
 *  2. Once `over` is set, status and text say why, and nothing more is posted.
 *  3. A connection is destroyed only with the completion queue drained of it.
 */
#ifndef SDR_TOOL_SESSION_H
#define SDR_TOOL_SESSION_H

#include "tool/hello.h"
#include "tool/opts.h"

#include <sdr/conn.h>

#define SESSION_WAITING_MAX 64

enum session_flags {
	SESSION_LISTEN = 1u << 0,
	SESSION_THREAD = 1u << 1, /* the library gets a thread: this one may block on disks */
};

struct waiting {
	struct sdr_conn *conn;
	uint8_t buf[HELLO_BYTES];
	uint64_t turn; /* order of hellos; 0: none yet */
	struct hello hello;
};

struct session {
	const struct net_opts *opts;
	struct sdr_net *net;
	struct sdr_conn *conn; /* the one that is served or was connected */
	char peer[96];
	int busy; /* poll without sleeping */
	struct {
		uint8_t *addr;
		size_t len;
		struct sdr_mr *mr;
	} region;
	int connected, greeted;
	int over;   /* the connection has ended */
	int status; /* ... 0: closed in order */
	char text[512];
	uint64_t turns;
	struct waiting waiting[SESSION_WAITING_MAX];
	uint8_t hello_buf[HELLO_BYTES], greeting_buf[GREETING_MAX];
	int greeting_sent; /* the greeting's write has ended */
};

/* Opens the net; says what is wrong and returns -1. */
int session_open(struct session *s, const struct net_opts *opts, unsigned int flags);
void session_fini(struct session *s);
/* Registers the memory that writes and receives use; one at a time, the caller's. */
void session_register(struct session *s, void *addr, size_t len);
void session_unregister(struct session *s);
/* Says which port is listened on, and what would help this host. */
void session_listening(struct session *s, const char *who);

/* Connects and waits for UDP to answer; -1: s->text is what went wrong, for the caller to say. */
int session_connect(struct session *s, const struct target *to);
/* Client: posts the receive of the greeting and the hello. */
int session_hello(struct session *s, const struct hello *h);

/*
 * Server: waits for a peer's hello of the kind and takes its connection; others are
 * refused. Returns 0, or -1 when told to stop.
 */
int session_accept(struct session *s, enum hello_kind kind, const char *me, struct hello *h);
/* Server: welcomes (text NULL) or refuses; refusing also ends the connection. */
void session_greet(struct session *s, const char *refusal);

/*
 * Waits up to wait_ns for completions of the connection and takes up to max of them.
 * Events are handled and said. Returns how many; look at s->over too.
 */
int session_poll(struct session *s, struct sdr_completion *c, int max, uint64_t wait_ns);
uint64_t session_now(const struct session *s);
/* 0, -EAGAIN, or an error after which the session is over. */
int session_write(struct session *s, const void *buf, uint64_t len, const uint32_t *imm,
		  void *cookie);
int session_recv(struct session *s, void *buf, uint64_t len, void *cookie);

/* Ends the connection in order, waiting up to wait_ns for the other end. */
void session_close(struct session *s, uint64_t wait_ns);
/* Waits for the other end to close; then, or after wait_ns, drops the connection. */
void session_linger(struct session *s, uint64_t wait_ns);
/* Ends it now; the peer gets a RESET. */
void session_drop(struct session *s);
/* The connection ends with an error of the caller's: the text is said by whom it ends. */
void session_fail(struct session *s, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
