// A study as a page for the terminal and as one JSON document (docs/study.md).
#pragma once

#include "report/report.h"
#include "study/outcome.h"

struct report_study_doubt {
    char *id, *text; // of the first run that had it
    int runs;
};

struct report_study {
    const struct study_plan *plan;
    const struct study_outcome *outcome;
    const char *name;     // label of its runs
    const char *target;   // as typed, where there is one; NULL
    const char *workload; // "tpcb"
    const char *carried;  // words when the data is carried from run to run; NULL: fresh
    double seconds;       // all of it
    double run_s;         // of one load
    double alpha;
    enum stop stop; // STOP_NOT_YET: as many blocks as asked for
    bool is_interrupted;
    int n_runs, n_failed;
    int64_t first_run, last_run; // in the results file; 0: none was kept
    char **limits;               // [cell] of its last run; NULL: none
    struct report_study_doubt *doubts;
    size_t n_doubts, cap_doubts;
};

void report_study_text(const struct report_study *study, const struct report_style *style,
                       FILE *out);

// Negative when writing failed (errno is set).
int report_study_json(const struct report_study *study, FILE *out);

#define REPORT_STUDY_SCHEMA "prony.study/1"
