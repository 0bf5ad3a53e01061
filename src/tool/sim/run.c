// SPDX-License-Identifier: Apache-2.0
/*
 * See run.h.
 */
#include "tool/sim/run.h"

#include "tool/sim/engine.h"

#include <errno.h>
#include <stdlib.h>

struct runner {
	struct model *model;
};

struct runner *runner_create(void)
{
	struct runner *r = calloc(1, sizeof(*r));

	if (r)
		r->model = model_create();
	if (r && r->model)
		return r;
	free(r);
	return NULL;
}

void runner_destroy(struct runner *r)
{
	if (!r)
		return;
	model_destroy(r->model);
	free(r);
}

void runner_run(struct runner *r, const struct sweep *s, const struct sim_point *p, uint64_t run,
		const volatile sig_atomic_t *stop, struct run_result *out)
{
	uint64_t seed = point_seed(s, p, run);

	*out = (struct run_result){0};
	if (sweep_uses_engine(s, p->scheme))
		engine_run(s, p, seed, stop, out);
	else
		model_run(r->model, s, p, seed, out);
}
