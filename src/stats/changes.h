// Where the level of a series of runs changed: for `prony history`, and to see whether runs of one
// set-up drifted apart. Pure functions; random numbers are seeded, so that the same series always
// gives the same answer.
//
// Method: the largest standardised difference of means (CUSUM, Page 1954) over a fixed family of
// intervals of many lengths (seeded binary segmentation, Kovacs, Li, Buhlmann and Munk 2023), so
// that a change up does not hide one down; the noise is taken from the steps between neighbours
// (von Neumann 1941), which changes hardly inflate, and far values count for no more than six
// robust deviations from the median. It is a change if at most 1 % of the same values in random
// order (Pitman 1937) show as much; then both sides are searched. A change needs at least three
// values on either side, and about ten in all.
#pragma once

#define CHANGES_SIDE_MIN 3

struct change {
    int at;       // the first value of the new level
    double ratio; // of the geometric means of the two stretches beside it: new / old
    double p;     // share of random orders that show as much; limited by their number (1000)
};

// values: positive, in the order of time. ret: room for n / CHANGES_SIDE_MIN. Returns how many
// changes, ascending. At most some 0.3 s for 1000 values.
int changes_find(const double *values, int n, struct change *ret);
