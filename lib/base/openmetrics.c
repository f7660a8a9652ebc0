/* Metrics as a text that Prometheus reads, without memory of its own. SPDX-License-Identifier: Apache-2.0 */
#include "base/openmetrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { NUMBER_BYTES = 24 };

/* ---- bytes ---- */

static void flush(dv_metrics_writer *writer) {
    if (writer->used > 0 && !writer->error) writer->error = writer->write(writer->user, writer->buffer, writer->used);
    writer->used = 0;
}

static void put(dv_metrics_writer *writer, const char *text, size_t bytes) {
    while (bytes > 0) {
        if (writer->used == sizeof writer->buffer) flush(writer);
        size_t room = sizeof writer->buffer - writer->used;
        size_t part = bytes < room ? bytes : room;
        memcpy(writer->buffer + writer->used, text, part);
        writer->used += part;
        text += part;
        bytes -= part;
    }
}

static void put_text(dv_metrics_writer *writer, const char *text) {
    put(writer, text, strlen(text));
}

/* The two formats escape alike in labels. In a help text OpenMetrics escapes the quote as well, and readers of the
 * older format would show the backslash: so our help texts have neither. */
static void put_label_value(dv_metrics_writer *writer, const char *value) {
    const unsigned char *at = (const unsigned char *)value;
    while (*at) {
        uint32_t code_point;
        size_t bytes = dv_utf8_read(at, &code_point);
        char escaped[4];
        if (bytes == 0) {
            snprintf(escaped, sizeof escaped, "%%%02X", (unsigned)*at);
            put_text(writer, escaped);
            bytes = 1;
        } else if (*at == '\n') {
            put(writer, "\\n", 2);
        } else {
            if (*at == '"' || *at == '\\') put(writer, "\\", 1);
            put(writer, (const char *)at, bytes);
        }
        at += bytes;
    }
}

/* Writes seconds, as short as it goes, or with one decimal at least, as OpenMetrics wants a bucket's bound. */
static void print_seconds(char out[NUMBER_BYTES], uint64_t us, bool with_decimal) {
    int length = snprintf(out, NUMBER_BYTES, "%" PRIu64 ".%06u", us / 1000000, (unsigned)(us % 1000000));
    assert(length > 0 && length < NUMBER_BYTES);
    while (out[length - 1] == '0') out[--length] = '\0';
    if (out[length - 1] != '.') return;
    if (with_decimal) out[length++] = '0';
    else length--;
    out[length] = '\0';
}

/* ---- families ---- */

static void put_name(dv_metrics_writer *writer) {
    put_text(writer, writer->family->name);
    if (writer->family->type == DV_METRIC_COUNTER && writer->format == DV_METRICS_PROMETHEUS)
        put_text(writer, "_total");
}

static void put_about(dv_metrics_writer *writer, const char *keyword, const char *text) {
    put_text(writer, keyword);
    put_name(writer);
    put(writer, " ", 1);
    put_text(writer, text);
    put(writer, "\n", 1);
}

static void show_family(dv_metrics_writer *writer) {
    static const char *const types[] = {
        [DV_METRIC_GAUGE] = "gauge", [DV_METRIC_COUNTER] = "counter", [DV_METRIC_HISTOGRAM] = "histogram"};
    const dv_metric_family *family = writer->family;
    if (writer->family_shown) return;
    writer->family_shown = true;
    put_about(writer, "# HELP ", family->help);
    put_about(writer, "# TYPE ", types[family->type]);
    /* The older format has no such line. */
    if (family->unit && writer->format == DV_METRICS_OPENMETRICS) put_about(writer, "# UNIT ", family->unit);
}

/* Returns whether a unit stands at the end of the name, as OpenMetrics wants it. */
static bool has_unit(const dv_metric_family *family) {
    if (!family->unit) return true;
    size_t name = strlen(family->name), unit = strlen(family->unit);
    return name > unit + 1 && strcmp(family->name + name - unit, family->unit) == 0 &&
           family->name[name - unit - 1] == '_';
}

void dv_metrics_family(dv_metrics_writer *writer, const dv_metric_family *family) {
    assert(strpbrk(family->help, "\\\"\n") == NULL && has_unit(family));
    (void)has_unit;
    writer->family = family;
    writer->family_shown = false;
}

/* ---- samples ---- */

static void put_label(dv_metrics_writer *writer, size_t *count, const dv_metric_label *label) {
    if (!label->name) return;
    put(writer, (*count)++ == 0 ? "{" : ",", 1);
    put_text(writer, label->name);
    put(writer, "=\"", 2);
    put_label_value(writer, label->value);
    put(writer, "\"", 1);
}

/* Writes one line. `bound`: the value of the label `le`, or NULL. */
static void put_line(dv_metrics_writer *writer, const char *suffix, const dv_metric_label *labels, size_t label_count,
                     const char *bound, const char *value) {
    show_family(writer);
    put_text(writer, writer->family->name);
    put_text(writer, suffix);
    size_t count = 0;
    put_label(writer, &count, &writer->common);
    for (size_t i = 0; i < label_count; i++) put_label(writer, &count, &labels[i]);
    if (bound) put_label(writer, &count, &(dv_metric_label){"le", bound});
    if (count > 0) put(writer, "}", 1);
    put(writer, " ", 1);
    put_text(writer, value);
    put(writer, "\n", 1);
}

static void put_integer(dv_metrics_writer *writer, const char *suffix, const dv_metric_label *labels,
                        size_t label_count, const char *bound, uint64_t value) {
    char number[NUMBER_BYTES];
    snprintf(number, sizeof number, "%" PRIu64, value);
    put_line(writer, suffix, labels, label_count, bound, number);
}

static const char *suffix_of(const dv_metric_family *family) {
    assert(family->type != DV_METRIC_HISTOGRAM);
    return family->type == DV_METRIC_COUNTER ? "_total" : "";
}

void dv_metrics_put(dv_metrics_writer *writer, const dv_metric_label *labels, size_t label_count, uint64_t value) {
    put_integer(writer, suffix_of(writer->family), labels, label_count, NULL, value);
}

void dv_metrics_put_us(dv_metrics_writer *writer, const dv_metric_label *labels, size_t label_count,
                       uint64_t value_us) {
    char number[NUMBER_BYTES];
    print_seconds(number, value_us, false);
    put_line(writer, suffix_of(writer->family), labels, label_count, NULL, number);
}

void dv_metrics_put_histogram(dv_metrics_writer *writer, const dv_metric_label *labels, size_t label_count,
                              const dv_histogram *histogram) {
    assert(writer->family->type == DV_METRIC_HISTOGRAM);
    char number[NUMBER_BYTES];
    uint64_t count = 0;
    for (size_t i = 0; i < DV_HISTOGRAM_BOUNDS; i++) {
        count += histogram->counts[i];
        print_seconds(number, dv_histogram_bounds_us[histogram->scale][i], true);
        put_integer(writer, "_bucket", labels, label_count, number, count);
    }
    count += histogram->counts[DV_HISTOGRAM_BOUNDS];
    put_integer(writer, "_bucket", labels, label_count, "+Inf", count);
    put_integer(writer, "_count", labels, label_count, NULL, count);
    print_seconds(number, histogram->sum_us, false);
    put_line(writer, "_sum", labels, label_count, NULL, number);
}

/* ---- the whole ---- */

void dv_metrics_begin(dv_metrics_writer *writer, dv_metrics_format format, dv_metrics_write_fn write, void *user) {
    *writer = (dv_metrics_writer){.format = format, .write = write, .user = user};
}

void dv_metrics_label_all(dv_metrics_writer *writer, const dv_metric_label *label) {
    writer->common = *label;
}

int dv_metrics_end(dv_metrics_writer *writer) {
    if (writer->format == DV_METRICS_OPENMETRICS) put_text(writer, "# EOF\n");
    flush(writer);
    return writer->error;
}
