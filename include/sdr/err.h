/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/err.h>: the error numbers of libsdr.
 *
 * Every function that can fail returns an int: 0 or more is success, negative is
 * either -errno or one of the codes below, which lie above the kernel's range
 * (4095). "Try again" is -EAGAIN. sdr_strerror() knows them all.
 */
#ifndef SDR_ERR_H
#define SDR_ERR_H

#include <sdr/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, number, text): the one table from which enum, text and docs follow. */
#define SDR_ERRORS(X)                                                                  \
	X(VERSION, 4101, "the two ends speak different protocol versions")             \
	X(FEATURE, 4102, "the peer requires a feature that this build does not offer") \
	X(NO_UDP, 4103, "the handshake arrived but no UDP packet came back")           \
	X(DEAD, 4104, "the peer stopped answering")                                    \
	X(RESET, 4105, "the peer reset the connection")                                \
	X(CLOSED, 4106, "the peer closed the connection")                              \
	X(ABORTED, 4107, "the sender aborted the message")                             \
	X(EARLY, 4108, "the receiver completed the message before all of it arrived")  \
	X(TOO_LONG, 4109, "the message is longer than the receive it matches")         \
	X(DEADLINE, 4110, "the deadline passed")                                       \
	X(BLOB, 4111, "the connection info is malformed or was cut short")             \
	X(MALFORMED, 4112, "the peer sent bytes that the protocol does not allow")     \
	X(BREAKER, 4113, "the circuit breaker opened: loss stayed too high for the configured rate")

enum sdr_error {
#define SDR_ERROR_ENUM(name, number, text) SDR_E_##name = (number),
	SDR_ERRORS(SDR_ERROR_ENUM)
#undef SDR_ERROR_ENUM
};

/*
 * The text for an error: a negative return value of this library or its absolute
 * value. Never NULL; the string lives as long as the calling thread does not call
 * sdr_strerror() again with an unknown number. Any thread.
 */
SDR_API const char *sdr_strerror(int err);

#ifdef __cplusplus
}
#endif
#endif
