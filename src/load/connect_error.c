#include "load/connect_error.h"

#include "load/worker.h"

static int too_many(struct threads *t, const struct worker *w, struct err *err)
{
    const char *target = db_display(t->shared->plan->target);
    const char *setting = NULL;
    struct db_facts facts = {0};
    int room = 0;

    for (int i = 0; i < t->n; i++) {
        if (atomic_load(&t->workers[i].phase) != WORKER_CONNECTED)
            continue;
        if (room++ == 0)
            db_describe(t->workers[i].session, &facts);
    }
    setting = facts.max_connections_setting;
    if (setting && facts.max_connections > 0)
        err_set(err, ERR_USAGE,
                "--clients %d: %s had room for %d more connections (%s); use at most %d clients, "
                "or raise %s (it allows %d now)",
                t->n, target, room, w->result.message, room, setting, facts.max_connections);
    else
        err_set(err, ERR_USAGE,
                "--clients %d: %s had room for %d more connections (%s); use fewer clients, or "
                "raise the server's limit%s%s",
                t->n, target, room, w->result.message, setting ? ", " : "", setting ? setting : "");
    db_facts_release(&facts);
    return -1;
}

int connect_error(struct threads *t, struct worker *w, struct err *err)
{
    const char *target = db_display(t->shared->plan->target);
    const char *remedy = "";

    switch (w->result.class) {
    case DB_TOO_MANY:
        return too_many(t, w, err);
    case DB_UNAVAILABLE:
        remedy = "; is the server running, and does the target name its host or socket?";
        break;
    case DB_DENIED:
        remedy = "; check user and password (a password file or option file keeps it out of the "
                 "command line)";
        break;
    case DB_NO_DATABASE:
        remedy = "; create it first, or name another one in the target";
        break;
    default:
        break;
    }
    return err_set(err, ERR_USAGE, "%s: %s%s", target, w->result.message, remedy);
}
