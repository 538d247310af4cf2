// A probe told to people and programs. Pure, as report/report.h.
#pragma once

#include <stdio.h>

#include "base/kv.h"
#include "report/report.h"
#include "volume/probe.h"
#include "watch/storage.h"

struct report_probe {
    const struct probe_result *probe;
    const struct storage *place;   // what lies under the directory
    const struct kvs *environment; // host.*, place.*
    const char *version;           // of prony
    const char *command;
};

// The answer, what lies under the path, the table, what it means, doubts.
void report_probe_text(const struct report_probe *report, const struct report_style *style,
                       FILE *out);

// One JSON document (docs/json.md). Negative when writing failed (errno is set).
int report_probe_json(const struct report_probe *report, FILE *out);

#define REPORT_PROBE_SCHEMA "prony.probe/1"
