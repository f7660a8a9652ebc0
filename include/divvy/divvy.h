/**
 * @file divvy.h
 * All of divvy: a set of work, divided among the members of a pool, on ZooKeeper. SPDX-License-Identifier: Apache-2.0
 */
#ifndef DIVVY_DIVVY_H
#define DIVVY_DIVVY_H

#define DIVVY_VERSION_MAJOR 0
#define DIVVY_VERSION_MINOR 2
#define DIVVY_VERSION_PATCH 0
#define DIVVY_VERSION "0.2.0"

#include "divvy/assign.h"
#include "divvy/client.h"
#include "divvy/election.h"
#include "divvy/error.h"
#include "divvy/lock.h"
#include "divvy/metrics.h"
#include "divvy/partition.h"
#include "divvy/partitioner.h"
#include "divvy/partitioner_config.h"
#include "divvy/party.h"
#include "divvy/pool.h"
#include "divvy/registry.h"
#include "divvy/semaphore.h"
#include "divvy/workers.h"

#endif
