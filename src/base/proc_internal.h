// Between proc.c and proc_stop.c.
#pragma once

#include <stdint.h>

#include "base/clock.h"

#define PROC_KILL_WAIT_NS (5 * NS_PER_S) // a killed process may still sit in a system call

// Sleeps at most until the time given; pauses grow from 0.2 to 20 ms, so that short waits end soon
// and long ones cost little. *pause_ns begins at 0.
void proc_pause(int64_t *pause_ns, int64_t until_ns);
