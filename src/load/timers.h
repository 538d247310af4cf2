// Deadlines of one worker's clients: a binary heap with places, so that one can be moved or
// removed. Slots are numbers from 0; each has at most one deadline. No allocation after
// timers_init.
#pragma once

#include <stdint.h>

struct timers {
    int n, size;
    int *heap;        // slots, the earliest first
    int *place;       // by slot: index in heap, -1: none
    int64_t *when_ns; // by slot
};

void timers_init(struct timers *t, int size);
void timers_release(struct timers *t);
void timers_set(struct timers *t, int slot, int64_t when_ns); // replaces an earlier one
void timers_clear(struct timers *t, int slot);
int64_t timers_first_ns(const struct timers *t);   // INT64_MAX: none
int timers_take(struct timers *t, int64_t now_ns); // removes and returns a slot that is due, or -1
