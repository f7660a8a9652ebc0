/* The symbols that leave the library. SPDX-License-Identifier: Apache-2.0 */
#ifndef DIVVY_EXPORT_H
#define DIVVY_EXPORT_H

#if defined(__GNUC__)
#define DIVVY_API __attribute__((visibility("default")))
#else
#define DIVVY_API
#endif

#ifdef __cplusplus
#define DIVVY_EXTERN_C_BEGIN extern "C" {
#define DIVVY_EXTERN_C_END }
#else
#define DIVVY_EXTERN_C_BEGIN
#define DIVVY_EXTERN_C_END
#endif

#endif
