// Plans as data and as text.
#include "volume/plan.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/text.h"

static void add_word(char ***words, const char *word)
{
    size_t n = 0;

    while (*words && (*words)[n])
        n++;
    *words = mem_resize(*words, n + 2, sizeof(**words));
    (*words)[n] = mem_strdup(word);
    (*words)[n + 1] = NULL;
}

static void free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

struct plan_step *plan_command(struct plan_of_volume *plan, const char *word, ...)
{
    struct plan_step *step = ARR_PUSH(plan->steps, plan->n_steps, plan->cap_steps);
    va_list ap;

    va_start(ap, word);
    for (; word; word = va_arg(ap, const char *))
        add_word(&step->argv, word);
    va_end(ap);
    assert(step->argv);
    return step;
}

struct plan_step *plan_argv(struct plan_of_volume *plan, char *const *argv)
{
    struct plan_step *step = ARR_PUSH(plan->steps, plan->n_steps, plan->cap_steps);

    for (; *argv; argv++)
        add_word(&step->argv, *argv);
    assert(step->argv);
    return step;
}

void plan_word(struct plan_step *step, const char *word)
{
    add_word(&step->argv, word);
}

void plan_words(struct plan_step *step, const char *text)
{
    for (text += strspn(text, " \t\n"); *text; text += strspn(text, " \t\n")) {
        size_t len = strcspn(text, " \t\n");
        char *word = mem_strndup(text, len);
        add_word(&step->argv, word);
        free(word);
        text += len;
    }
}

void plan_undo(struct plan_step *step, enum plan_undo undo, const char *word, ...)
{
    va_list ap;

    assert(step->undo == PLAN_NOTHING && undo != PLAN_NOTHING && undo != PLAN_PROCESS);
    step->undo = undo;
    va_start(ap, word);
    for (; word; word = va_arg(ap, const char *))
        add_word(&step->undo_words, word);
    va_end(ap);
    assert(step->undo_words);
}

void plan_undo_argv(struct plan_step *step, enum plan_undo undo, char *const *words)
{
    assert(step->undo == PLAN_NOTHING && undo != PLAN_NOTHING && undo != PLAN_PROCESS);
    step->undo = undo;
    for (; *words; words++)
        add_word(&step->undo_words, *words);
    assert(step->undo_words);
}

void plan_device(struct plan_of_volume *plan, const char *device)
{
    add_word(&plan->devices, device);
}

// ---- as a shell script

const char *plan_variable(const struct plan_of_volume *plan, const char *word, size_t *ret_step)
{
    const char *dollar = strrchr(word, '$');

    if (!dollar || (dollar > word && dollar[-1] != '='))
        return NULL;
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].variable && strcmp(plan->steps[i].variable, dollar + 1) == 0) {
            *ret_step = i;
            return dollar;
        }
    }
    return NULL;
}

static void print_words(const struct plan_of_volume *plan, char *const *words, struct str *out)
{
    for (size_t i = 0; words[i]; i++) {
        if (i)
            str_addc(out, ' ');
        size_t step;
        const char *dollar = plan_variable(plan, words[i], &step);
        if (dollar) {
            char *front = mem_strndup(words[i], (size_t)(dollar - words[i]));
            if (*front)
                text_add_shell(out, front);
            str_addf(out, "\"%s\"", dollar);
            free(front);
        } else {
            text_add_shell(out, words[i]);
        }
    }
}

void plan_print_step(const struct plan_of_volume *plan, size_t index, struct str *out)
{
    const struct plan_step *step = &plan->steps[index];

    if (step->variable)
        str_addf(out, "%s=$(", step->variable);
    print_words(plan, step->argv, out);
    if (step->variable)
        str_addc(out, ')');
    if (step->started)
        str_add(out, " &");
}

void plan_print_up(const struct plan_of_volume *plan, struct str *out)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].destroys)
            str_add(out, "# what is there is lost:\n");
        plan_print_step(plan, i, out);
        str_addc(out, '\n');
    }
}

void plan_print_undo(const struct plan_of_volume *plan, size_t index, struct str *out)
{
    const struct plan_step *step = &plan->steps[index];
    static const char *const before[] = {
        [PLAN_FILE] = "rm -f ",     [PLAN_TREE] = "rm -rf --one-file-system ",
        [PLAN_UNMOUNT] = "umount ", [PLAN_COMMAND] = "",
        [PLAN_COMMAND_IF] = "",     [PLAN_DIR] = "rmdir ",
    };

    if (step->undo == PLAN_DETACH && step->variable)
        str_addf(out, "losetup --detach \"$%s\"", step->variable);
    else if (step->undo == PLAN_PROCESS)
        str_add(out, "kill $!");
    else if (step->undo != PLAN_NOTHING && step->undo != PLAN_DETACH) {
        str_add(out, before[step->undo]);
        print_words(plan, step->undo_words + (step->undo == PLAN_COMMAND_IF), out);
    }
}

void plan_print_down(const struct plan_of_volume *plan, struct str *out)
{
    for (size_t i = plan->n_steps; i-- > 0;) {
        size_t len = out->len;
        plan_print_undo(plan, i, out);
        if (out->len > len)
            str_addc(out, '\n');
    }
}

void plan_release(struct plan_of_volume *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        free_words(plan->steps[i].argv);
        free(plan->steps[i].variable);
        free(plan->steps[i].ready_path);
        free(plan->steps[i].moves);
        free_words(plan->steps[i].undo_words);
        free(plan->values ? plan->values[i] : NULL);
    }
    free(plan->values);
    free(plan->leftovers);
    free(plan->steps);
    free(plan->path);
    free(plan->file);
    free(plan->lock);
    free(plan->journal);
    plan_unlock(plan);
    free_words(plan->devices);
    *plan = (struct plan_of_volume){.lock_fd = -1};
}
