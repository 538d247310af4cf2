#include "report/json_value.h"

#include <math.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/text.h"

json_t *json_value_text(const char *text)
{
    if (!text)
        return json_null();
    json_t *value = json_string(text);
    if (value)
        return value;
    struct str safe = STR_INIT; // not UTF-8: say so byte by byte rather than lose it
    text_add_safe(&safe, text);
    value = json_string(safe.buf);
    str_release(&safe);
    return value;
}

json_t *json_value_number(double value)
{
    if (!isfinite(value))
        return json_null();
    return json_real(round(value * 1e6) / 1e6);
}

json_t *json_value_us(double ns)
{
    return json_value_number(ns / NS_PER_US);
}

json_t *json_value_kvs(const struct kvs *list)
{
    json_t *object = json_object();

    for (size_t i = 0; i < list->n; i++) {
        const char *key = list->items[i].key;
        json_t *old = json_object_get(object, key);
        json_t *value = json_value_text(list->items[i].value);
        if (!old) {
            json_object_set_new(object, key, value);
        } else if (json_is_array(old)) {
            json_array_append_new(old, value);
        } else { // a key given several times (--define) becomes an array
            json_t *array = json_array();
            json_array_append(array, old);
            json_array_append_new(array, value);
            json_object_set_new(object, key, array);
        }
    }
    return object;
}

int json_value_dump(json_t *root, FILE *out)
{
    int rc = json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(15));

    json_decref(root);
    if (rc == 0 && (fputc('\n', out) == EOF || fflush(out) != 0))
        rc = -1;
    return rc;
}
