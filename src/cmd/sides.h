// What is compared, from the words on the command line.
#pragma once

#include "report/comparison.h"

// Reads one side:
//   462+-104/17, JFS=462+-104/17    published: mean, standard deviation, number of runs (or "±")
//   FILE                            an exported run, or another results file with a single run
//   FILE:RUNS                       runs of another results file
//   RUNS                            of the results file (store_select): number, 3,5,7-12, label,
//                                   baseline:NAME, start of a uuid, last
// store_path: --store, or NULL. Runs that did not end well are left out and counted. The caller
// releases ret, also after an error.
int side_read(const char *text, const char *store_path, struct side *ret, struct err *err);
