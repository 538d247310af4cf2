#include "load/connect_error.h"

static int too_many(const struct connect_failure *f, struct err *err)
{
    const char *target = db_display(f->target);
    struct db_facts facts = {0};

    if (f->session)
        db_describe(f->session, &facts);
    const char *setting = facts.max_connections_setting;
    if (f->clients == 0)
        err_set(err, ERR_USAGE,
                "%s: %s; raise the server's connection limit, or wait for others to leave", target,
                f->result->message);
    else if (setting && facts.max_connections > 0)
        err_set(err, ERR_USAGE,
                "--clients %d: %s had room for %d more connections (%s); use at most %d clients, "
                "or raise %s (it allows %d now)",
                f->clients, target, f->connected, f->result->message, f->connected, setting,
                facts.max_connections);
    else
        err_set(err, ERR_USAGE,
                "--clients %d: %s had room for %d more connections (%s); use fewer clients, or "
                "raise the server's limit%s%s",
                f->clients, target, f->connected, f->result->message, setting ? ", " : "",
                setting ? setting : "");
    db_facts_release(&facts);
    return -1;
}

int connect_error(const struct connect_failure *f, struct err *err)
{
    const char *remedy = "";

    switch (f->result->class) {
    case DB_TOO_MANY:
        return too_many(f, err);
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
    return err_set(err, ERR_USAGE, "%s: %s%s", db_display(f->target), f->result->message, remedy);
}
