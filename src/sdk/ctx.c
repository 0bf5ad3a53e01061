/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: an opened device, its progress engine, timers and counters. One heap node a
 * QP holds the earliest of its deadlines; a list holds the QPs that have something to
 * say, so that idle QPs cost nothing.
 */
#include "base/rng.h"
#include "sdk/device.h"
#include "sdk/internal.h"

#define PROGRESS_ROUNDS 16 /* event batches a call; then timers get their turn */

const char *sdr_version(void)
{
#define STR2(x) #x
#define STR(x) STR2(x)
	return STR(SDR_VERSION_MAJOR) "." STR(SDR_VERSION_MINOR) "." STR(SDR_VERSION_PATCH);
#undef STR
#undef STR2
}

static const char *const counter_names[] = {
#define NAME(name, text) #name,
	SDR_COUNTERS(NAME)
#undef NAME
};

static const char *const counter_texts[] = {
#define TEXT(name, text) text,
	SDR_COUNTERS(TEXT)
#undef TEXT
};

const char *sdr_counter_name(unsigned int counter)
{
	return counter < SDR_CTR_COUNT ? counter_names[counter] : NULL;
}

const char *sdr_counter_text(unsigned int counter)
{
	return counter < SDR_CTR_COUNT ? counter_texts[counter] : NULL;
}

uint64_t sdk_now(const struct sdr_ctx *ctx)
{
	return ctx->fabric->ops->now_ns(ctx->fabric);
}

uint64_t sdr_now_ns(const struct sdr_ctx *ctx)
{
	return sdk_now(ctx);
}

/* ---- bitmap memory ---- */

static unsigned int pool_class(size_t nwords)
{
	unsigned int class = 0;

	while (((size_t)1 << class) < nwords)
		class ++;
	return class;
}

uint64_t *sdk_words_get(struct sdr_ctx *ctx, size_t nwords)
{
	unsigned int class = pool_class(nwords);
	void *mem;

	if (class >= SDK_POOL_CLASSES)
		return NULL;
	mem = ctx->pool.free[class];
	if (mem) {
		memcpy(&ctx->pool.free[class], mem, sizeof(void *));
		return mem; /* binding clears it */
	}
	return alloc_zeroed(ctx->alloc, ((size_t)1 << class) * 8);
}

void sdk_words_put(struct sdr_ctx *ctx, uint64_t *words, size_t nwords)
{
	unsigned int class = pool_class(nwords);

	if (!words)
		return;
	memcpy(words, &ctx->pool.free[class], sizeof(void *));
	ctx->pool.free[class] = words;
}

static void list_free(struct sdr_ctx *ctx, void *mem)
{
	while (mem) {
		void *next;

		memcpy(&next, mem, sizeof(next));
		alloc_free(ctx->alloc, mem);
		mem = next;
	}
}

static void pool_fini(struct sdr_ctx *ctx)
{
	for (unsigned int i = 0; i < SDK_POOL_CLASSES; i++)
		list_free(ctx, ctx->pool.free[i]);
	list_free(ctx, ctx->queues);
}

/* ---- opening ---- */

int sdk_ctx_open(struct fabric *f, const struct sdr_ctx_attr *attr, const struct sdr_alloc *alloc,
		 struct sdr_ctx **out)
{
	struct sdr_ctx *ctx = alloc_zeroed(alloc, sizeof(*ctx));

	if (!ctx)
		return -ENOMEM;
	ctx->alloc = alloc;
	ctx->fabric = f;
	ctx->listen = attr->listen;
	f->ops->caps(f, &ctx->caps);
	heap_init(&ctx->timers, ctx->alloc);
	heap_node_init(&ctx->sim_timer);
	ctx->owner_ns = UINT64_MAX;
	ctx->events = alloc_zeroed(ctx->alloc, SDK_EVENTS * sizeof(*ctx->events));
	ctx->rx_nworkers = (uint32_t)u64_max(1, ctx->caps.workers);
	ctx->rx_flags = ctx->caps.workers ? 0 : RX_SINGLE_THREAD;
	ctx->rx_workers = alloc_zeroed(ctx->alloc, ctx->rx_nworkers * sizeof(*ctx->rx_workers));
	if (!ctx->events || !ctx->rx_workers ||
	    rng_secret(&ctx->incarnation, sizeof(ctx->incarnation))) {
		alloc_free(ctx->alloc, ctx->events);
		alloc_free(ctx->alloc, ctx->rx_workers);
		alloc_free(ctx->alloc, ctx);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < ctx->rx_nworkers; i++)
		rx_worker_init(&ctx->rx_workers[i]);
	*out = ctx;
	return 0;
}

int sdr_ctx_create(const struct sdr_ctx_attr *attr, struct sdr_ctx **out)
{
	struct sdr_ctx_attr a = {0};
	struct sockaddr_storage local;
	struct fabric *f;
	int err;

	if (attr)
		memcpy(&a, attr, u64_min(attr->size, sizeof(a)));
	if (a.why && a.why_len)
		a.why[0] = '\0';
	if (a.workers > FABRIC_MAX_WORKERS || a.max_qps > 65536)
		return -EINVAL;
	err = device_open(&a, &f, &local);
	if (err)
		return err;
	err = sdk_ctx_open(f, &a, &sdr_alloc_system, out);
	if (err)
		f->ops->close(f);
	else
		(*out)->local_addr = local;
	return err;
}

void sdr_ctx_destroy(struct sdr_ctx *ctx)
{
	if (!ctx)
		return;
	while (ctx->qps)
		sdr_qp_destroy(ctx->qps);
	if (ctx->sim)
		sdk_sim_ctx_gone(ctx);
	ctx->fabric->ops->close(ctx->fabric);
	heap_fini(&ctx->timers);
	pool_fini(ctx);
	alloc_free(ctx->alloc, ctx->events);
	alloc_free(ctx->alloc, ctx->rx_workers);
	alloc_free(ctx->alloc, ctx);
}

int sdr_ctx_query(const struct sdr_ctx *ctx, struct sdr_ctx_info *info)
{
	struct sdr_ctx_info out = {.size = info->size};

	out.caps = (ctx->caps.flags & FABRIC_CAP_NO_REWRITE ? SDR_CAP_NO_REWRITE : 0) |
		   (ctx->caps.flags & FABRIC_CAP_ZERO_COPY ? SDR_CAP_ZERO_COPY : 0) |
		   (ctx->caps.flags & FABRIC_CAP_VIRTUAL_TIME ? SDR_CAP_VIRTUAL_TIME : 0) |
		   (ctx->caps.flags & FABRIC_CAP_WORKERS ? SDR_CAP_WORKERS : 0) |
		   (ctx->caps.flags & FABRIC_CAP_SILENT_LATE ? SDR_CAP_SILENT_LATE : 0) |
		   (ctx->caps.flags & FABRIC_CAP_NO_PAYLOAD ? SDR_CAP_NO_PAYLOAD : 0) |
		   (sdk_is_rocev2(ctx) ? SDR_CAP_ROCEV2 : 0);
	out.max_channels = ctx->caps.max_channels;
	out.max_payload_bytes = ctx->caps.max_payload_bytes;
	out.workers = ctx->caps.workers;
	out.udp_port = ctx->caps.udp_port;
	memcpy(info, &out, u64_min(info->size, sizeof(out)));
	return 0;
}

/* ---- progress ---- */

void sdk_list_add(struct sdr_qp *qp, enum qp_list_id which)
{
	struct qp_list *list = &qp->ctx->list[which];
	struct qp_link *link = &qp->link[which];

	if (link->in)
		return;
	*link = (struct qp_link){.prev = list->tail, .in = true};
	if (list->tail)
		list->tail->link[which].next = qp;
	else
		list->head = qp;
	list->tail = qp;
	if (which == SDK_DIRTY && qp->ctx->sim)
		sdk_sim_ctx_touched(qp->ctx, false);
}

void sdk_list_remove(struct sdr_qp *qp, enum qp_list_id which)
{
	struct qp_list *list = &qp->ctx->list[which];
	struct qp_link *link = &qp->link[which];

	if (!link->in)
		return;
	if (link->prev)
		link->prev->link[which].next = link->next;
	else
		list->head = link->next;
	if (link->next)
		link->next->link[which].prev = link->prev;
	else
		list->tail = link->prev;
	link->in = false;
}

void sdk_qp_dirty(struct sdr_qp *qp)
{
	if (!qp->serving)
		sdk_list_add(qp, SDK_DIRTY);
}

static void qp_active(struct sdr_qp *qp)
{
	if (qp->attr.tell_active)
		sdk_list_add(qp, SDK_ACTIVE);
}

static void on_writable(struct sdr_ctx *ctx)
{
	struct sdr_qp *qp;

	while ((qp = ctx->list[SDK_BLOCKED].head)) {
		sdk_list_remove(qp, SDK_BLOCKED);
		sdk_qp_dirty(qp);
		qp_active(qp);
	}
}

static void on_event(struct sdr_ctx *ctx, const struct fabric_event *ev, uint64_t now)
{
	struct sdr_qp *qp = ev->cookie;

	if (!qp) {
		on_writable(ctx);
		return;
	}
	if (!qp->live)
		return;
	qp_active(qp);
	switch (ev->type) {
	case FABRIC_EV_CTRL:
		ctrl_on_datagram(qp, ev, now);
		break;
	case FABRIC_EV_READY:
		qp->live->rx.ready_hint = true;
		qp->live->heard_ns = now;
		ping_used(qp, now);
		qp->live->refused = false;
		break;
	case FABRIC_EV_LATE:
		qp->live->heard_ns = now;
		grant_on_late(qp, now);
		break;
	case FABRIC_EV_MTU:
		if (ev->value >= SDK_PAYLOAD_MIN && ev->value < qp->live->tx.payload_wish)
			payload_change(qp, ev->value, now);
		break;
	case FABRIC_EV_REFUSED:
		qp->live->refused = true;
		break;
	case FABRIC_EV_WRITABLE:
		break;
	}
}

static void qp_serve(struct sdr_qp *qp, uint64_t now)
{
	uint64_t at;

	if (qp->state != SDR_QP_ERROR) {
		ping_service(qp, now);
		train_service(qp, now);
		if (qp->state == SDR_QP_CONNECTED) {
			payload_service(qp, now);
			grant_service(qp, now);
			sdk_tx_pump(qp, now);
		}
	}
	ctrl_flush(qp, now);
	if (qp->state == SDR_QP_ERROR) {
		heap_remove(&qp->ctx->timers, &qp->timer);
		return;
	}
	at = u64_min(ping_deadline(qp), sdk_tx_deadline(qp, now));
	at = u64_min(at, train_deadline(qp));
	if (qp->state == SDR_QP_CONNECTED)
		at = u64_min(at, grant_deadline(qp));
	if (qp->live->queue_len)
		at = u64_min(at, now + SDK_RETRY_NS);
	if (at == UINT64_MAX)
		heap_remove(&qp->ctx->timers, &qp->timer);
	else if (heap_set(&qp->ctx->timers, &qp->timer, at, 0))
		sdk_list_add(qp, SDK_DIRTY); /* no memory for the timer: looked at every time */
}

static void qp_service(struct sdr_qp *qp, uint64_t now)
{
	if (!qp->live || qp->state == SDR_QP_INIT)
		return;
	qp->serving = true;
	qp_serve(qp, now);
	qp->serving = false;
}

static void serve_dirty(struct sdr_ctx *ctx, uint64_t now)
{
	const struct sdr_qp *last = ctx->list[SDK_DIRTY].tail;
	struct sdr_qp *qp;

	/* Those only that are in the list now: whoever comes again waits for the next turn. */
	while (last && (qp = ctx->list[SDK_DIRTY].head)) {
		sdk_list_remove(qp, SDK_DIRTY);
		qp_service(qp, now);
		if (qp == last)
			break;
	}
}

static struct sdr_qp *timer_qp(struct heap_node *node)
{
	return (struct sdr_qp *)(void *)((char *)node - offsetof(struct sdr_qp, timer));
}

int sdr_progress(struct sdr_ctx *ctx)
{
	const struct fabric_ops *ops = ctx->fabric->ops;
	uint64_t now = sdk_now(ctx);
	struct heap_node *node;
	int did = 0;

	for (int round = 0; round < PROGRESS_ROUNDS; round++) {
		int n = ops->poll(ctx->fabric, ctx->events, SDK_EVENTS);

		if (n < 0)
			return n;
		/* Ages are of the moment when they were taken: no earlier one goes with them. */
		now = sdk_now(ctx);
		for (int i = 0; i < n; i++)
			on_event(ctx, &ctx->events[i], now);
		did += n;
		if (n < (int)SDK_EVENTS)
			break;
	}
	while ((node = heap_first(&ctx->timers)) && node->key <= now) {
		heap_remove(&ctx->timers, node);
		sdk_qp_dirty(timer_qp(node));
		qp_active(timer_qp(node));
		did++;
	}
	serve_dirty(ctx, now);
	if (ctx->sim)
		sdk_sim_ctx_touched(ctx, true);
	return did;
}

struct sdr_qp *sdr_next_active(struct sdr_ctx *ctx)
{
	struct sdr_qp *qp = ctx->list[SDK_ACTIVE].head;

	if (qp)
		sdk_list_remove(qp, SDK_ACTIVE);
	return qp;
}

uint64_t sdr_next_deadline_ns(const struct sdr_ctx *ctx)
{
	const struct heap_node *node = heap_first(&ctx->timers);

	if (ctx->list[SDK_DIRTY].head)
		return sdk_now(ctx);
	return node ? u64_min(node->key, ctx->owner_ns) : ctx->owner_ns;
}

void sdr_ctx_deadline_set(struct sdr_ctx *ctx, uint64_t at_ns)
{
	if (ctx->owner_ns == at_ns)
		return;
	ctx->owner_ns = at_ns;
	if (ctx->sim)
		sdk_sim_ctx_touched(ctx, false);
}

int sdr_wait(struct sdr_ctx *ctx, uint64_t deadline_ns)
{
	uint64_t until = u64_min(deadline_ns, sdr_next_deadline_ns(ctx));

	if (until > sdk_now(ctx)) {
		int err = ctx->fabric->ops->wait(ctx->fabric, until);

		if (err < 0 && err != -EINTR)
			return err;
	}
	return sdr_progress(ctx);
}

int sdr_fd(struct sdr_ctx *ctx)
{
	return ctx->fabric->ops->fd(ctx->fabric);
}

void sdr_wake(struct sdr_ctx *ctx)
{
	ctx->fabric->ops->wake(ctx->fabric);
}

int sdr_counters_get(const struct sdr_ctx *ctx, uint64_t *out, size_t n)
{
	uint64_t sum[SDR_CTR_COUNT];

	memcpy(sum, ctx->counter, sizeof(sum));
	ctx->fabric->ops->counters(ctx->fabric, sum);
	memcpy(out, sum, u64_min(n, SDR_CTR_COUNT) * sizeof(*out));
	return SDR_CTR_COUNT;
}

int sdr_ctx_advice(const struct sdr_ctx *ctx, char *buf, size_t len)
{
	if (!len)
		return -EINVAL;
	buf[0] = '\0';
	ctx->fabric->ops->advice(ctx->fabric, buf, len);
	return 0;
}

/* ---- memory ---- */

static int mr_reg(struct sdr_ctx *ctx, const struct fabric_mr_attr *attr, struct sdr_mr **out)
{
	struct sdr_mr *mr = alloc_zeroed(ctx->alloc, sizeof(*mr));
	int err;

	if (!mr)
		return -ENOMEM;
	mr->ctx = ctx;
	mr->host = !attr->dmabuf;
	err = ctx->fabric->ops->mr_reg(ctx->fabric, attr, &mr->fabric_mr);
	if (err) {
		alloc_free(ctx->alloc, mr);
		return err;
	}
	*out = mr;
	return 0;
}

int sdr_mr_reg(struct sdr_ctx *ctx, void *addr, size_t len, uint32_t flags, struct sdr_mr **out)
{
	const struct fabric_mr_attr attr = {.addr = addr, .len = len};

	return flags ? -EINVAL : mr_reg(ctx, &attr, out);
}

int sdr_mr_reg_dmabuf(struct sdr_ctx *ctx, int fd, uint64_t offset, size_t len, void *addr,
		      struct sdr_mr **out)
{
	const struct fabric_mr_attr attr = {
		.addr = addr, .len = len, .dmabuf = true, .dmabuf_fd = fd, .dmabuf_offset = offset};

	return fd < 0 ? -EBADF : mr_reg(ctx, &attr, out);
}

int sdr_mr_is_host(const struct sdr_mr *mr)
{
	return mr->host;
}

void sdr_mr_dereg(struct sdr_mr *mr)
{
	if (!mr)
		return;
	mr->ctx->fabric->ops->mr_dereg(mr->ctx->fabric, mr->fabric_mr);
	alloc_free(mr->ctx->alloc, mr);
}
