#include "load/pacing.h"

#include <math.h>

#include "base/clock.h"

#define SPIN_SHARE    0.1
#define SPIN_WORTH_NS 2e3    // at rates that allow less than this per arrival: not at all
#define LEAD_START_NS 100e3  // before anything is known
#define LEAD_MAX_NS   300e3  // later than this is an accident, not a habit
#define LEAD_UP_NS    3200.0 // after waking up too late ...
#define LEAD_DOWN_NS  800.0  // ... and in time: balanced when one of five is late
#define SPUN_WEIGHT   (1.0 / 16)

void pacing_init(struct pacing *p, double rate_tps)
{
    double allowed_ns = rate_tps > 0 ? SPIN_SHARE * NS_PER_S / rate_tps : 0;

    *p = (struct pacing){
        .lead_ns = LEAD_START_NS,
        .allowed_ns = allowed_ns < SPIN_WORTH_NS ? 0 : allowed_ns,
    };
}

void pacing_learn(struct pacing *p, int64_t late_ns, int64_t spun_ns)
{
    p->spun_ns += SPUN_WEIGHT * ((double)spun_ns - p->spun_ns);
    if ((double)late_ns > p->lead_ns && p->spun_ns <= p->allowed_ns)
        p->lead_ns = fmin(p->lead_ns + LEAD_UP_NS, LEAD_MAX_NS);
    else
        p->lead_ns -= LEAD_DOWN_NS;
    if (p->spun_ns > p->allowed_ns)
        p->lead_ns -= LEAD_UP_NS;
    p->lead_ns = fmax(p->lead_ns, 0);
}
