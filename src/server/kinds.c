// The table of kinds.
#include "server/kind.h"

const struct server_kind *const server_kinds[] = {
    &server_kind_postgres,
    &server_kind_mariadb,
    &server_kind_mysql,
    NULL,
};

const char *const *server_kind_names(void)
{
    static const char *names[sizeof(server_kinds) / sizeof(server_kinds[0])];

    for (int i = 0; server_kinds[i]; i++)
        names[i] = server_kinds[i]->name;
    return names;
}
