// One suite for both pollers: bytes arrive whole and in order, closes are told, slots can be given
// up at any moment, deadlines fire when nothing happens.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/str.h"
#include "load/poller.h"

#define SLOTS 8

struct seen {
    struct str bytes[SLOTS];
    int closed[SLOTS], gone[SLOTS];
    int events;
};

struct scene {
    struct poller *p;
    int peer[SLOTS], own[SLOTS];
    struct seen seen;
};

static void note(void *arg, const struct poller_event *event)
{
    struct seen *seen = arg;

    seen->events++;
    switch (event->kind) {
    case POLLER_BYTES:
        str_addn(&seen->bytes[event->slot], event->bytes, event->n);
        break;
    case POLLER_CLOSED:
        seen->closed[event->slot]++;
        break;
    case POLLER_GONE:
        seen->gone[event->slot]++;
        break;
    }
}

static bool make(struct scene *s, const struct poller_ops *ops)
{
    struct err err = ERR_INIT;

    memset(s, 0, sizeof(*s));
    if (ops->create(&s->p, SLOTS, &err) < 0) {
        print_message("%s\n", err.text);
        assert_int_equal(err.kind, ERR_ABSENT);
        return false;
    }
    for (int i = 0; i < SLOTS; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        s->own[i] = pair[0];
        s->peer[i] = pair[1];
        str_init(&s->seen.bytes[i]);
    }
    return true;
}

static void destroy(struct scene *s)
{
    s->p->ops->destroy(s->p);
    for (int i = 0; i < SLOTS; i++) {
        close(s->own[i]);
        if (s->peer[i] >= 0)
            close(s->peer[i]);
        str_release(&s->seen.bytes[i]);
    }
}

static void wait_ms(struct scene *s, int ms)
{
    s->p->ops->wait(s->p, clock_now_ns(&clock_system) + ms * NS_PER_MS, note, &s->seen);
}

// Takes the slot out, waiting for the poller where it must.
static void take_out(struct scene *s, int slot)
{
    if (poller_remove(s->p, slot))
        return;
    for (int i = 0; i < 100 && !s->seen.gone[slot]; i++)
        wait_ms(s, 20);
    assert_int_equal(s->seen.gone[slot], 1);
    s->seen.gone[slot] = 0;
}

static void bytes_go_both_ways(const struct poller_ops *ops)
{
    struct scene s;
    char text[64];

    if (!make(&s, ops))
        skip();
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(poller_add(s.p, i, s.own[i]), 0);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < SLOTS; i++)
            ops->send(s.p, i, "question", 8);
        wait_ms(&s, 0);
        for (int i = 0; i < SLOTS; i++) {
            assert_int_equal(read(s.peer[i], text, sizeof(text)), 8);
            assert_int_equal(write(s.peer[i], "answer", 6), 6);
        }
        for (int k = 0; k < 100; k++) {
            size_t least = SIZE_MAX;
            for (int i = 0; i < SLOTS; i++)
                least = s.seen.bytes[i].len < least ? s.seen.bytes[i].len : least;
            if (least >= (size_t)(round + 1) * 6)
                break;
            wait_ms(&s, 20);
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(s.seen.bytes[i].len, 600);
        assert_memory_equal(s.seen.bytes[i].buf, "answeranswer", 12);
        take_out(&s, i);
    }
    destroy(&s);
}

static void long_sends_arrive_whole_and_in_order(const struct poller_ops *ops)
{
    static char block[300000];
    struct scene s;
    size_t got = 0;

    if (!make(&s, ops))
        skip();
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (char)(i % 251);
    assert_int_equal(poller_add(s.p, 0, s.own[0]), 0);
    ops->send(s.p, 0, block, 100000); // far over the socket's buffer together
    ops->send(s.p, 0, block + 100000, 3);
    ops->send(s.p, 0, block + 100003, sizeof(block) - 100003);
    for (int turns = 0; got < sizeof(block) && turns < 10000; turns++) {
        char part[7001];
        ssize_t n = read(s.peer[0], part, sizeof(part));
        if (n > 0) {
            assert_memory_equal(part, block + got, (size_t)n);
            got += (size_t)n;
        }
        wait_ms(&s, n > 0 ? 0 : 5);
    }
    assert_int_equal(got, sizeof(block));
    take_out(&s, 0);
    destroy(&s);
}

static void a_close_is_told_after_the_bytes_before_it(const struct poller_ops *ops)
{
    struct scene s;

    if (!make(&s, ops))
        skip();
    assert_int_equal(poller_add(s.p, 3, s.own[3]), 0);
    assert_int_equal(write(s.peer[3], "last words", 10), 10);
    close(s.peer[3]);
    s.peer[3] = -1;
    for (int i = 0; i < 100 && !s.seen.closed[3]; i++)
        wait_ms(&s, 20);
    assert_true(s.seen.closed[3] >= 1);
    assert_int_equal(s.seen.bytes[3].len, 10);
    take_out(&s, 3);
    destroy(&s);
}

static void a_slot_given_up_is_silent_and_can_be_used_again(const struct poller_ops *ops)
{
    struct scene s;

    if (!make(&s, ops))
        skip();
    for (int round = 0; round < 50; round++) {
        assert_int_equal(poller_add(s.p, 1, s.own[1 + round % 2]), 0);
        if (round % 3 == 0)
            wait_ms(&s, 0); // with the receive under way, and not yet
        ops->send(s.p, 1, "x", 1);
        take_out(&s, 1);
    }
    size_t before = s.seen.bytes[1].len;
    assert_int_equal(write(s.peer[1], "late", 4), 4);
    wait_ms(&s, 20);
    assert_int_equal(s.seen.bytes[1].len, before);
    assert_int_equal(poller_add(s.p, 1, s.own[1]), 0);
    for (int i = 0; i < 100 && s.seen.bytes[1].len == before; i++)
        wait_ms(&s, 20);
    assert_int_equal(s.seen.bytes[1].len, before + 4); // nothing was lost meanwhile
    take_out(&s, 1);
    destroy(&s);
}

// A session that is lost leaves its descriptor's number to the next one.
static void what_was_sent_never_reaches_the_next_file_of_the_number(const struct poller_ops *ops)
{
    struct scene s;
    char buf[8];

    if (!make(&s, ops))
        skip();
    assert_int_equal(poller_add(s.p, 0, s.own[0]), 0);
    ops->send(s.p, 0, "old", 3);
    take_out(&s, 0);
    assert_int_equal(dup2(s.own[1], s.own[0]), s.own[0]);
    assert_int_equal(poller_add(s.p, 0, s.own[0]), 0);
    wait_ms(&s, 20);
    assert_int_equal(read(s.peer[1], buf, sizeof(buf)), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(read(s.peer[0], buf, sizeof(buf)), 3);
    take_out(&s, 0);
    destroy(&s);
}

static void deadlines_fire_when_nothing_completes(const struct poller_ops *ops)
{
    struct scene s;

    if (!make(&s, ops))
        skip();
    assert_int_equal(poller_add(s.p, 0, s.own[0]), 0);
    int64_t begin = clock_now_ns(&clock_system);
    int turns = 0; // a signal, or the kernel's own work for this thread, may end a wait early
    for (; clock_now_ns(&clock_system) < begin + 50 * NS_PER_MS && turns < 5; turns++)
        s.p->ops->wait(s.p, begin + 50 * NS_PER_MS, note, &s.seen);
    int64_t took = clock_now_ns(&clock_system) - begin;
    assert_true(took >= 50 * NS_PER_MS && took < 10 * NS_PER_S);
    begin = clock_now_ns(&clock_system);
    s.p->ops->wait(s.p, 0, note, &s.seen); // the past: only looks
    assert_true(clock_now_ns(&clock_system) - begin < NS_PER_S);
    assert_int_equal(s.seen.events, 0);
    take_out(&s, 0);
    destroy(&s);
}

static void *wake_later(void *arg)
{
    struct poller *p = arg;

    usleep(30000);
    p->ops->wake(p);
    return NULL;
}

static void another_thread_can_wake_it(const struct poller_ops *ops)
{
    struct scene s;
    pthread_t thread;

    if (!make(&s, ops))
        skip();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&thread, NULL, wake_later, s.p), 0);
        s.p->ops->wait(s.p, INT64_MAX, note, &s.seen);
        pthread_join(thread, NULL);
    }
    destroy(&s);
}

#ifdef HAVE_URING
#define BY_URING &poller_uring
#else
#define BY_URING &poller_epoll // the same once more
#endif

#define BOTH(test)                            \
    static void test##_by_uring(void **state) \
    {                                         \
        (void)state;                          \
        test(BY_URING);                       \
    }                                         \
    static void test##_by_epoll(void **state) \
    {                                         \
        (void)state;                          \
        test(&poller_epoll);                  \
    }
BOTH(bytes_go_both_ways)
BOTH(long_sends_arrive_whole_and_in_order)
BOTH(a_close_is_told_after_the_bytes_before_it)
BOTH(a_slot_given_up_is_silent_and_can_be_used_again)
BOTH(what_was_sent_never_reaches_the_next_file_of_the_number)
BOTH(deadlines_fire_when_nothing_completes)
BOTH(another_thread_can_wake_it)

#define BOTH_TESTS(test) cmocka_unit_test(test##_by_uring), cmocka_unit_test(test##_by_epoll)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_TESTS(bytes_go_both_ways),
        BOTH_TESTS(long_sends_arrive_whole_and_in_order),
        BOTH_TESTS(a_close_is_told_after_the_bytes_before_it),
        BOTH_TESTS(a_slot_given_up_is_silent_and_can_be_used_again),
        BOTH_TESTS(what_was_sent_never_reaches_the_next_file_of_the_number),
        BOTH_TESTS(deadlines_fire_when_nothing_completes),
        BOTH_TESTS(another_thread_can_wake_it),
    };

    alarm(60); // a poller that hangs must not hang the suite
    return cmocka_run_group_tests(tests, NULL, NULL);
}
