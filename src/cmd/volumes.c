#include "cmd/volumes.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

// In the middle of something else only what cannot be undone is told.
static void say(void *arg, const char *line, bool destroys)
{
    (void)arg;
    if (destroys)
        fprintf(stderr, "prony: what is there is lost: %s\n", line);
}

static void tell_progress(void *arg, const char *line)
{
    (void)arg;
    fprintf(stderr, "%s\n", line);
}

int volumes_open(struct volumes_one *one, const char *text, const char *suffix,
                 const struct volumes_options *options, struct leftovers *leftovers,
                 const volatile sig_atomic_t *stop, struct err *err)
{
    size_t n_destroy = options ? options->destroy.n : 0;

    for (size_t i = 0; options && i < options->names.n; i++)
        if (volume_add_name(&one->names, options->names.items[i], err) < 0)
            return -1;
    one->destroy = mem_calloc(n_destroy + 1, sizeof(*one->destroy));
    for (size_t i = 0; i < n_destroy; i++)
        one->destroy[i] = mem_strdup(options->destroy.items[i]);
    if (!text)
        return 0;
    char *name = mem_printf("%d-%s", (int)getpid(), suffix);
    struct volume_wish wish = {
        .name = name,
        .names = &one->names,
        .destroy = one->destroy,
        .leftovers = leftovers,
        .stop = stop,
        .say = say,
        .image = one->image,
        .shares_image = one->shares_image,
        .progress = tell_progress,
    };
    int rc = volume_open(&one->volume, text, &wish, err);
    free(name);
    return rc;
}

void volumes_close(struct volumes_one *one, struct str *report)
{
    (void)volume_down(one->volume, report);
    volume_free(one->volume);
    for (size_t i = 0; one->destroy && one->destroy[i]; i++)
        free(one->destroy[i]);
    free(one->destroy);
    kvs_release(&one->names);
    *one = (struct volumes_one){0};
}
