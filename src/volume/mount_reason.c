// Two sources: the messages of a file system context (fsopen), where an unknown option is named;
// and the kernel's log, which has what the file system said when it looked at the device. The log
// may be forbidden (containers); the context needs Linux 5.2 and the right to mount.
#include "volume/mount_reason.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/mem.h"

// Takes "e ext4: Unknown parameter 'x'" and the like; the letter is the kind.
static void read_messages(int fd, struct str *out)
{
    char buf[1024];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf) - 1)) > 0) {
        while (n > 0 && isspace((unsigned char)buf[n - 1]))
            n--;
        buf[n] = '\0';
        const char *text = strchr("ewi", buf[0]) && buf[1] == ' ' ? buf + 2 : buf;
        if (*text)
            str_addf(out, "%s%s", out->len ? "; " : "", text);
    }
}

// One option of the list, as mount(8) would pass it: those of the mount itself are not the file
// system's.
static bool is_of_mount(const char *option)
{
    static const char *const words[] = {
        "rw",       "ro",         "noatime",     "atime",         "nodiratime", "diratime",
        "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime",   "nolazytime",
        "dev",      "nodev",      "exec",        "noexec",        "suid",       "nosuid",
        "sync",     "async",      "defaults",    "dirsync",       "loop",       "user",
        "users",    "auto",       "noauto",      "nofail",        NULL,
    };

    for (size_t i = 0; words[i]; i++)
        if (strcmp(option, words[i]) == 0)
            return true;
    return false;
}

static int set_options(int fd, char *options)
{
    for (char *option; (option = strsep(&options, ","));) {
        if (!*option || is_of_mount(option))
            continue;
        char *equals = strchr(option, '=');
        if (equals)
            *equals = '\0';
        int rc = equals ? fsconfig(fd, FSCONFIG_SET_STRING, option, equals + 1, 0)
                        : fsconfig(fd, FSCONFIG_SET_FLAG, option, NULL, 0);
        if (rc < 0)
            return -1;
    }
    return 0;
}

// Returns false when the kernel does not refuse at all.
static bool ask_context(const char *type, const char *options, const char *device, struct str *said)
{
    bool refused = true;
    int fd = fsopen(type, FSOPEN_CLOEXEC);
    char *copy = mem_strdup(options ? options : "");

    if (fd < 0) {
        if (errno == ENODEV)
            str_addf(said, "this kernel has no file system %s", type);
    } else if (fsconfig(fd, FSCONFIG_SET_STRING, "source", device, 0) == 0 &&
               set_options(fd, copy) == 0) {
        refused = fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0;
    }
    if (fd >= 0) {
        read_messages(fd, said);
        close(fd);
    }
    free(copy);
    return refused;
}

// "loop1" is not in "loop10".
static bool names_device(const char *line, const char *name)
{
    size_t len = strlen(name);

    for (const char *p = strstr(line, name); p; p = strstr(p + 1, name))
        if (!isalnum((unsigned char)p[len]))
            return true;
    return false;
}

// The lines of the kernel's log from here on that name the device.
static void read_log(int fd, const char *device, struct str *said)
{
    const char *name = strrchr(device, '/') ? strrchr(device, '/') + 1 : device;
    char buf[2048];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
        if (n < 0)
            continue; // lines were overwritten meanwhile
        buf[n] = '\0';
        char *text = strchr(buf, ';');
        if (!text || !names_device(text, name))
            continue;
        text[strcspn(text, "\n")] = '\0';
        if (!strstr(said->buf, text + 1))
            str_addf(said, "%s%s", said->len ? "; " : "", text + 1);
    }
}

void mount_reason(char *const *argv, struct str *why)
{
    const char *type = NULL, *options = NULL, *device = NULL;
    struct str said = STR_INIT;

    for (size_t i = 1; argv[i]; i++) {
        if (strcmp(argv[i], "-t") == 0 && argv[i + 1])
            type = argv[++i];
        else if (strcmp(argv[i], "-o") == 0 && argv[i + 1])
            options = argv[++i];
        else if (!device)
            device = argv[i];
    }
    if (!type || !device)
        return;
    int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (log >= 0)
        (void)lseek(log, 0, SEEK_END);
    bool refused = ask_context(type, options, device, &said);
    if (log >= 0) {
        read_log(log, device, &said);
        close(log);
    }
    if (refused && said.len) {
        str_clear(why);
        str_addf(why, "the kernel says: %s", said.buf);
    }
    str_release(&said);
}
