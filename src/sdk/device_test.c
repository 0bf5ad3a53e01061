/* SPDX-License-Identifier: Apache-2.0 */
/* Devices by name: what is refused, and with which sentence. Opens no RDMA device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sdr/sdr.h>
#include <string.h>

static char why[512];

static int opened_at(const char *device, const char *addr, uint32_t max_payload)
{
	const struct sdr_ctx_attr attr = {.size = sizeof(attr),
					  .device = device,
					  .bind_addr = addr,
					  .max_payload_bytes = max_payload,
					  .why = why,
					  .why_len = sizeof(why)};
	struct sdr_ctx *ctx = NULL;
	int err = sdr_ctx_create(&attr, &ctx);

	sdr_ctx_destroy(ctx);
	return err;
}

static int opened(const char *device, uint32_t max_payload)
{
	return opened_at(device, "127.0.0.1", max_payload);
}

static void test_names(void **state)
{
	(void)state;
	assert_int_equal(opened("infiniband", 0), -ENODEV);
	assert_non_null(strstr(why, "\"infiniband\""));
	assert_int_equal(opened("verbs:", 0), -ENODEV);
	assert_non_null(strstr(why, "verbs:NAME"));
	assert_int_equal(opened("verbs:none_such", 0), -ENODEV);
	assert_true(strlen(why) > 0);
	assert_int_equal(opened_at("udp", "localhost", 0), -EINVAL);
	assert_non_null(strstr(why, "\"localhost\""));
	assert_int_equal(opened("udp", 0), 0);
	assert_string_equal(why, "");
}

static void test_payload_is_a_path_mtu(void **state)
{
	static const char *const rocev2[] = {"roce", "verbs", "verbs:none_such"};

	(void)state;
	for (size_t i = 0; i < sizeof(rocev2) / sizeof(rocev2[0]); i++) {
		int err = opened(rocev2[i], 1023);

		if (err == -ENODEV && strstr(why, "this build"))
			continue; /* without libibverbs */
		assert_int_equal(err, -EINVAL);
		assert_non_null(strstr(why, "1023 bytes"));
		assert_non_null(strstr(why, "1024"));
	}
	/* Any other bound is rounded down: then it is the name that is refused. */
	assert_int_equal(opened("verbs:none_such", 1024), -ENODEV);
	assert_int_equal(opened("verbs:none_such", 1500), -ENODEV);
	assert_int_equal(opened("verbs:none_such", 9000), -ENODEV);
	assert_int_equal(opened("udp", 100), 0);
}

/* Entries have the caller's size, be it an older or a newer struct than ours. */
static void test_list_keeps_to_sizes(void **state)
{
	struct sdr_device_info list[2] = {{.size = sizeof(list[0])}};
	struct {
		struct sdr_device_info info;
		uint64_t more;
	} larger[2] = {{.info.size = sizeof(larger[0]), .more = 7}, {.more = 8}};

	(void)state;
	assert_true(sdr_device_list(list, 2) >= 2);
	assert_string_equal(list[0].name, "udp");
	assert_string_equal(list[1].name, "roce");
	assert_int_equal(list[1].size, sizeof(list[0]));
	assert_true(sdr_device_list(&larger[0].info, 2) >= 2);
	assert_string_equal(larger[1].info.name, "roce");
	assert_int_equal(larger[0].more, 7);
	assert_int_equal(larger[1].more, 8);
	/* "verbs:" and the longest name that RDMA devices have. */
	assert_true(sizeof(list[0].name) >= 6 + 63 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_payload_is_a_path_mtu),
		cmocka_unit_test(test_list_keeps_to_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
