/* SPDX-License-Identifier: Apache-2.0 */
/* What session.c and session_server.c share; nobody else includes it. */
#ifndef SDR_TOOL_SESSION_IMPL_H
#define SDR_TOOL_SESSION_IMPL_H

#include "tool/session.h"

struct sdr_conn_attr session_conn_attr(const struct net_opts *o);
void session_wait_add(struct session *s, struct sdr_conn *conn);
void session_wait_event(struct session *s, const struct sdr_event *ev);
void session_wait_completion(struct session *s, const struct sdr_completion *c);
void session_drop_waiting(struct session *s);

#endif
