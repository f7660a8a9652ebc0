/* The making of the client's backend; free of the native client's header. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_BACKEND_H
#define DV_BACKEND_H

#include "znode/znode.h"

/* A dv_backend_new_fn: a session of our own on the native client. */
int dv_apache_new(dv_znode **out, const dv_backend_config *config, const char **reason, void *context);

#endif
