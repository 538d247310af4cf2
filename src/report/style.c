// What a stream can show: colours, block characters, width.
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/report.h"

static bool locale_is_utf8(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", NULL);

    if (!locale)
        return false;
    bool utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return utf8;
}

struct report_style report_style_for(FILE *stream)
{
    const char *term = getenv("TERM");
    const char *no_colour = getenv("NO_COLOR");
    bool terminal = isatty(fileno(stream)) == 1;
    struct report_style style = {.columns = 80, .unicode = locale_is_utf8()};
    struct winsize size;

    style.colour = terminal && term && strcmp(term, "dumb") != 0 && !(no_colour && *no_colour);
    if (terminal && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        style.columns = size.ws_col;
    if (style.columns < 60)
        style.columns = 60;
    if (style.columns > 120)
        style.columns = 120;
    return style;
}
