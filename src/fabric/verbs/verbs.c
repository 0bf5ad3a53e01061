/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs: the device and the table of operations. The map is in verbs.h.
 */
#include "fabric/verbs/verbs_int.h"
#include "base/rng.h"
#include "base/units.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

uint64_t verbs_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint32_t verbs_serial(struct verbs_fabric *f)
{
	return f->serial++ & VERBS_SERIAL_MASK;
}

void *verbs_pages(size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

void verbs_pages_free(void *mem, size_t bytes)
{
	if (mem)
		munmap(mem, bytes);
}

/* The table of operations. */

static uint64_t fab_now_ns(const struct fabric *f)
{
	(void)f;
	return verbs_now_ns();
}

static void fab_caps(const struct fabric *base, struct fabric_caps *out)
{
	const struct verbs_fabric *f = verbs_fabric_of(base);

	*out = (struct fabric_caps){
		.flags = FABRIC_CAP_ZERO_COPY | FABRIC_CAP_SILENT_LATE,
		.max_payload_bytes = f->payload,
		.max_train_bytes =
			FABRIC_RUN_MAX * (f->payload + (uint32_t)wire_data_packet_bytes(0)),
		.max_channels = FABRIC_MAX_CHANNELS,
		.workers = 0,
		.udp_port = 0,
		.mode = WIRE_ROCEV2,
		.max_ctrl_bytes = FABRIC_ROCEV2_CTRL_MAX,
		.generations = FABRIC_MAX_GENERATIONS,
		.late_ns = f->keys->late_ns,
	};
}

static void fab_table_set(struct fabric_qp *qp, struct rx_table *table)
{
	verbs_qp_of(qp)->table = table;
}

/* Each channel has one path. */
static int fab_path_use(struct fabric_qp *qp, uint32_t channel, uint32_t path)
{
	return channel < verbs_qp_of(qp)->channels && path == 0 ? 0 : -EINVAL;
}

static void fab_path_name(const struct fabric_qp *base, uint32_t channel, char *buf, size_t len)
{
	const struct verbs_qp *qp = verbs_qp_of(base);
	char text[VERBS_GID_TEXT];

	if (len == 0)
		return;
	buf[0] = '\0';
	if (!qp->connected || channel >= qp->peer.channels)
		return;
	verbs_gid_text(qp->peer_gid, text);
	snprintf(buf, len, "%s by %s", text, verbs_owner(qp)->device);
}

static uint32_t fab_path_payload(const struct fabric_qp *base)
{
	const struct verbs_qp *qp = verbs_qp_of(base);

	return qp->connected ? qp->peer.payload_bytes : verbs_owner(qp)->payload;
}

static void fab_channel_facts(const struct fabric_qp *base, uint32_t channel,
			      struct fabric_channel_facts *out)
{
	const struct verbs_qp *qp = verbs_qp_of(base);
	const struct verbs_chan *ch;

	memset(out, 0, sizeof(*out));
	if (channel >= qp->channels)
		return;
	ch = &qp->chan[channel];
	*out = ch->facts;
	if (out->packet_valid)
		out->newest_age_ns = u64_sub_floor(verbs_now_ns(), ch->newest_ns);
	out->up = qp->connected && channel < qp->peer.channels;
}

static void fab_counters(const struct fabric *base, uint64_t *sum)
{
	const struct verbs_fabric *f = verbs_fabric_of(base);

	for (int i = 0; i < SDR_CTR_COUNT; i++)
		sum[i] += f->counter[i];
}

static void fab_advice(const struct fabric *base, char *buf, size_t len)
{
	const struct verbs_fabric *f = verbs_fabric_of(base);
	char text[256];

	if (len == 0)
		return;
	buf[0] = '\0';
	if (f->port_down) {
		snprintf(buf, len,
			 "device %s port %u went down: nothing is sent or received until its "
			 "network interface is up again (`rdma link` names it)",
			 f->device, f->port);
	} else if (f->lock_failed) {
		verbs_memlock_text(text, sizeof(text));
		snprintf(buf, len, "device %s: %s", f->device, text);
	} else if (f->fork_unsafe) {
		snprintf(buf, len,
			 "device %s: libibverbs was in use before, without preparing for fork(): "
			 "set "
			 "RDMAV_FORK_SAFE=1 if this program makes child processes",
			 f->device);
	}
}

/* Takes what verbs_fabric_open has got so far. */
static void fabric_free(struct verbs_fabric *f)
{
	for (uint32_t i = 0; f->qps && i < f->attr.max_qps; i++)
		if (f->qps[i])
			verbs_qp_destroy(&f->qps[i]->base);
	if (f->keys)
		f->keys->close(f);
	verbs_tx_fini(f);
	verbs_cqs_free(f);
	if (f->comp)
		ibv_destroy_comp_channel(f->comp);
	if (f->pd)
		ibv_dealloc_pd(f->pd);
	if (f->ctx)
		ibv_close_device(f->ctx);
	if (f->wakefd >= 0)
		close(f->wakefd);
	if (f->epfd >= 0)
		close(f->epfd);
	free(f->qps);
	free(f->free_index);
	free(f);
}

static void fab_close(struct fabric *base)
{
	fabric_free(verbs_fabric_of(base));
}

static const struct fabric_ops verbs_fabric_ops = {
	.name = "verbs",
	.close = fab_close,
	.caps = fab_caps,
	.now_ns = fab_now_ns,
	.qp_create = verbs_qp_create,
	.qp_destroy = verbs_qp_destroy,
	.qp_local = verbs_qp_local,
	.table_set = fab_table_set,
	.qp_connect = verbs_qp_connect,
	.path_use = fab_path_use,
	.path_name = fab_path_name,
	.path_payload = fab_path_payload,
	.tx_busy = verbs_tx_busy,
	.post = verbs_post,
	.ctrl = verbs_ctrl,
	.poll = verbs_poll,
	.bind = verbs_bind,
	.fence_begin = verbs_fence_begin,
	.fence_done = verbs_fence_done,
	.mr_reg = verbs_mr_reg,
	.mr_dereg = verbs_mr_dereg,
	.wait = verbs_wait,
	.fd = verbs_fd,
	.wake = verbs_wake,
	.channel_facts = fab_channel_facts,
	.advice = fab_advice,
	.counters = fab_counters,
};

/* Opening. */

__attribute__((format(printf, 4, 5))) static int refuse(int err, char *why, size_t len,
							const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, len, fmt, ap);
	va_end(ap);
	return err;
}

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
	return value ? value : fallback;
}

static int attr_take(struct verbs_fabric *f, const struct verbs_fabric_attr *attr, char *why,
		     size_t len)
{
	uint32_t want = attr->max_payload;

	f->attr = *attr;
	f->attr.device = f->attr.bind_addr = NULL;
	f->attr.rq_depth = or_default(attr->rq_depth, VERBS_DEFAULT_RQ_DEPTH);
	f->attr.sq_depth = or_default(attr->sq_depth, VERBS_DEFAULT_SQ_DEPTH);
	f->attr.max_qps = or_default(attr->max_qps, VERBS_DEFAULT_MAX_QPS);
	f->attr.bounce_bytes = or_default(attr->bounce_bytes, VERBS_DEFAULT_BOUNCE_BYTES);
	if (f->attr.rq_depth < VERBS_MIN_RQ_DEPTH || f->attr.rq_depth > VERBS_MAX_DEPTH)
		return refuse(-EINVAL, why, len, "%u receives posted: it must be %u .. %u",
			      attr->rq_depth, VERBS_MIN_RQ_DEPTH, VERBS_MAX_DEPTH);
	if (f->attr.sq_depth < FABRIC_RUN_MAX || f->attr.sq_depth > VERBS_MAX_DEPTH)
		return refuse(-EINVAL, why, len, "%u packets under way: it must be %u .. %u",
			      attr->sq_depth, FABRIC_RUN_MAX, VERBS_MAX_DEPTH);
	if (f->attr.max_qps > VERBS_LIMIT_QPS)
		return refuse(-EINVAL, why, len, "%u QPs: it must be at most %u", attr->max_qps,
			      VERBS_LIMIT_QPS);
	if (want && want != 1024 && want != 2048 && want != 4096)
		return refuse(-EINVAL, why, len,
			      "a largest payload of %u bytes: a device takes 1024, 2048 or 4096",
			      want);
	if (f->attr.bounce_bytes < FABRIC_RUN_MAX * 4096u)
		return refuse(-EINVAL, why, len,
			      "%u bytes for copies: at least %u are needed, one train",
			      attr->bounce_bytes, FABRIC_RUN_MAX * 4096u);
	return 0;
}

static int keys_take(struct verbs_fabric *f, char *why, size_t len)
{
	enum verbs_keys keys = f->attr.keys;
	const char *env = getenv("SDR_VERBS_KEYS");

	if (keys == VERBS_KEYS_AUTO && env && strcmp(env, "mlx5") == 0)
		keys = VERBS_KEYS_MLX5;
	else if (keys == VERBS_KEYS_AUTO && env && *env && strcmp(env, "rereg") != 0)
		return refuse(-EINVAL, why, len,
			      "SDR_VERBS_KEYS=%s: it can be \"rereg\" (the default) or \"mlx5\"",
			      env);
	if (keys != VERBS_KEYS_MLX5) {
		f->keys = &verbs_keys_rereg;
		return 0;
	}
#ifdef SDR_HAVE_MLX5DV
	f->keys = &verbs_keys_mlx5;
	return 0;
#else
	return refuse(
		-EOPNOTSUPP, why, len,
		"keys of kind \"mlx5\" were left out of this build (libmlx5 with mlx5dv.h was "
		"not found): unset SDR_VERBS_KEYS");
#endif
}

/* Which device, port and GID. */
static int choose(struct verbs_fabric *f, const struct verbs_fabric_attr *attr, char *why,
		  size_t len)
{
	const struct verbs_want want = {.device = attr->device,
					.port = attr->port,
					.gid_index_set = attr->gid_index_set,
					.gid_index = attr->gid_index,
					.bind_addr = attr->bind_addr};
	const struct verbs_port *port;
	const struct verbs_gid *gid;
	struct verbs_port *list;
	int n = verbs_fabric_list(&list), err;

	if (n < 0)
		return refuse(n, why, len, "the RDMA devices cannot be listed: %s", strerror(-n));
	err = verbs_choose(list, (size_t)n, &want, &port, &gid, why, len);
	if (err == 0) {
		memcpy(f->device, port->device, sizeof(f->device));
		f->port = port->port;
		f->gid = *gid;
		f->payload = port->mtu;
	}
	verbs_list_free(list);
	if (err == 0 && f->attr.max_payload > f->payload)
		return refuse(-EMSGSIZE, why, len,
			      "device %s port %u: its MTU leaves %u bytes to a packet, and %u are "
			      "asked for: raise the MTU of its network interface",
			      f->device, f->port, f->payload, f->attr.max_payload);
	if (err == 0 && f->attr.max_payload)
		f->payload = f->attr.max_payload;
	return err;
}

static struct ibv_context *open_by_name(const struct verbs_keys_ops *keys, const char *name)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	errno = ENODEV; /* it was there a moment ago */
	for (int i = 0; devices && devices[i]; i++)
		if (strcmp(ibv_get_device_name(devices[i]), name) == 0)
			ctx = keys->device_open(devices[i]);
	if (devices)
		ibv_free_device_list(devices);
	return ctx;
}

static int tables_init(struct verbs_fabric *f)
{
	f->free_count = f->attr.max_qps;
	f->qps = calloc(f->attr.max_qps, sizeof(*f->qps));
	f->free_index = calloc(f->attr.max_qps, sizeof(*f->free_index));
	if (f->qps == NULL || f->free_index == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->free_count; i++)
		f->free_index[i] = i;
	return rng_secret(&f->flow_label, sizeof(f->flow_label));
}

static int device_init(struct verbs_fabric *f)
{
	struct ibv_device_attr dev;
	int err = tables_init(f);

	if (err < 0)
		return err;
	f->flow_label &= 0xfffff;
	f->ctx = open_by_name(f->keys, f->device);
	if (f->ctx == NULL)
		return verbs_err(errno);
	err = verbs_err(ibv_query_device(f->ctx, &dev));
	if (err < 0)
		return err;
	f->max_cqe = dev.max_cqe > 0 ? (uint32_t)dev.max_cqe : 0;
	f->pd = ibv_alloc_pd(f->ctx);
	f->comp = f->pd ? ibv_create_comp_channel(f->ctx) : NULL;
	if (f->comp == NULL)
		return verbs_err(errno);
	err = verbs_events_init(f);
	if (err == 0)
		err = verbs_tx_init(f);
	return err < 0 ? err : f->keys->open(f);
}

static int open_all(struct verbs_fabric *f, const struct verbs_fabric_attr *attr, char *why,
		    size_t len)
{
	char lock[256] = "";
	int err = attr_take(f, attr, why, len);

	if (err == 0)
		err = keys_take(f, why, len);
	if (err == 0)
		err = choose(f, attr, why, len);
	if (err < 0)
		return err;
	err = device_init(f);
	if (err == -ENOMEM || err == -EPERM)
		verbs_memlock_text(lock, sizeof(lock));
	if (err < 0)
		return refuse(err, why, len, "device %s port %u, GID index %u, keys \"%s\": %s%s%s",
			      f->device, f->port, f->gid.index, f->keys->name, strerror(-err),
			      lock[0] ? "; " : "", lock);
	return attr->no_probe ? 0 : verbs_probe(f, why, len);
}

int verbs_fabric_open(const struct verbs_fabric_attr *attr, struct fabric **out, char *why,
		      size_t why_len)
{
	struct verbs_fabric *f = calloc(1, sizeof(*f));
	int err;

	if (why_len > 0)
		why[0] = '\0';
	if (f == NULL)
		return refuse(-ENOMEM, why, why_len, "no memory for a device");
	f->base.ops = &verbs_fabric_ops;
	f->epfd = f->wakefd = -1;
	/* Before any memory is registered, or it does nothing. */
	f->fork_unsafe = ibv_fork_init() != 0;
	err = open_all(f, attr, why, why_len);
	if (err < 0) {
		fabric_free(f);
		return err;
	}
	*out = &f->base;
	return 0;
}
