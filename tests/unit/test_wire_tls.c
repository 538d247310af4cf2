// TLS of a wire without a socket: a client whose SSL object is taken over, and a server beside it
// in the same process. Both versions of the protocol; bytes whole and one at a time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/mem.h"
#include "db/wire.h"
#include "db/wire_tls.h"

struct pair {
    SSL_CTX *server_context, *client_context;
    SSL *server, *client;
    BIO *transport; // the client's before it is taken over
    struct db_wire wire;
};

static void use_certificate(SSL_CTX *context)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();

    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    assert_int_equal(X509_set_pubkey(certificate, key), 1);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void pair_init(struct pair *p, int version)
{
    BIO *server_end, *client_end;

    *p = (struct pair){.server_context = SSL_CTX_new(TLS_server_method()),
                       .client_context = SSL_CTX_new(TLS_client_method())};
    use_certificate(p->server_context);
    SSL_CTX_set_max_proto_version(p->client_context, version);
    p->server = SSL_new(p->server_context);
    p->client = SSL_new(p->client_context);
    assert_int_equal(BIO_new_bio_pair(&server_end, 0, &client_end, 0), 1);
    SSL_set_bio(p->server, server_end, server_end);
    SSL_set_bio(p->client, client_end, client_end);
    p->transport = client_end;
    SSL_set_accept_state(p->server);
    SSL_set_connect_state(p->client);
}

static void shake_hands(struct pair *p)
{
    for (int i = 0; i < 100 && (!SSL_is_init_finished(p->client) || SSL_in_init(p->server)); i++) {
        SSL_do_handshake(p->client);
        SSL_do_handshake(p->server);
    }
    assert_true(SSL_is_init_finished(p->client));
    assert_true(SSL_is_init_finished(p->server));
}

static void take_over(struct pair *p, int version)
{
    char why[200] = "";

    pair_init(p, version);
    shake_hands(p);
    p->wire.tls = db_wire_tls_begin(p->client, why, sizeof(why));
    assert_non_null(p->wire.tls);
    assert_ptr_not_equal(SSL_get_rbio(p->client), p->transport);
    // What the server has sent already (tickets) is still in the old transport, as it would be in a
    // socket.
    char buf[4096];
    int n = BIO_read(p->transport, buf, sizeof(buf));
    struct str plain = STR_INIT, out = STR_INIT;
    if (n > 0)
        assert_int_equal(db_wire_open(&p->wire, buf, (size_t)n, &plain, &out), 0);
    assert_int_equal(plain.len, 0);
    assert_int_equal(out.len, 0);
    str_release(&plain);
    str_release(&out);
}

static void pair_release(struct pair *p)
{
    db_wire_tls_end(p->wire.tls);
    assert_ptr_equal(SSL_get_rbio(p->client), p->transport);
    assert_ptr_equal(SSL_get_wbio(p->client), p->transport);
    SSL_free(p->client);
    SSL_free(p->server);
    SSL_CTX_free(p->client_context);
    SSL_CTX_free(p->server_context);
}

// What the server encrypts, as the bytes that would be received. Goes in pieces, for the pipe
// between the two has a bound.
static void server_says(struct pair *p, const char *text, size_t n, struct str *ret)
{
    char buf[32768];

    while (n > 0) {
        int step = n > 5000 ? 5000 : (int)n;
        assert_int_equal(SSL_write(p->server, text, step), step);
        int got = BIO_read(p->transport, buf, sizeof(buf));
        assert_true(got > 0);
        str_addn(ret, buf, (size_t)got);
        text += step;
        n -= (size_t)step;
    }
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static void what_is_sealed_reaches_the_server(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++) {
        struct pair p;
        struct str plain = STR_INIT, out = STR_INIT, heard = STR_INIT;
        char buf[2048];
        take_over(&p, versions[v]);
        for (int turn = 0; turn < 3; turn++) {
            str_clear(&out);
            str_clear(&heard);
            str_add(&out, "before");
            for (int i = 0; i < 3000; i++)
                str_addf(&plain, "%d of %d,", i, turn);
            char *text = mem_strdup(plain.buf);
            assert_int_equal(db_wire_seal(&p.wire, &plain, &out), 0);
            assert_int_equal(plain.len, 0);
            assert_memory_equal(out.buf, "before", 6);
            assert_null(memmem(out.buf, out.len, "99 of ", 6)); // short words occur by chance
            for (size_t at = 6; at < out.len;) {
                int n = BIO_write(p.transport, out.buf + at, (int)(out.len - at));
                if (n > 0)
                    at += (size_t)n;
                while ((n = SSL_read(p.server, buf, sizeof(buf))) > 0)
                    str_addn(&heard, buf, (size_t)n);
            }
            assert_string_equal(heard.buf, text);
            free(text);
        }
        str_release(&plain);
        str_release(&out);
        str_release(&heard);
        pair_release(&p);
    }
}

static void what_the_server_says_is_opened_whole_and_torn(void **state)
{
    char text[30000];

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i % 23);
    for (int v = 0; v < 2; v++)
        for (size_t step = 1; step < 100000; step = step * 37 + 1) {
            struct pair p;
            struct str heard = STR_INIT, plain = STR_INIT, out = STR_INIT;
            take_over(&p, versions[v]);
            server_says(&p, text, sizeof(text), &heard);
            str_add(&plain, "before");
            for (size_t at = 0; at < heard.len; at += step) {
                size_t n = heard.len - at < step ? heard.len - at : step;
                char *copy = mem_resize(NULL, n, 1); // a look beyond is seen by the sanitizer
                memcpy(copy, heard.buf + at, n);
                assert_int_equal(db_wire_open(&p.wire, copy, n, &plain, &out), 0);
                free(copy);
            }
            assert_int_equal(plain.len, 6 + sizeof(text));
            assert_memory_equal(plain.buf + 6, text, sizeof(text));
            assert_int_equal(out.len, 0);
            assert_null(db_wire_tls_error(&p.wire));
            str_release(&heard);
            str_release(&plain);
            str_release(&out);
            pair_release(&p);
        }
}

static void a_damaged_record_fails_with_its_reason(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++) {
        struct pair p;
        struct str heard = STR_INIT, plain = STR_INIT, out = STR_INIT;
        take_over(&p, versions[v]);
        server_says(&p, "good", 4, &heard);
        size_t n = heard.len;
        server_says(&p, "bad", 3, &heard);
        heard.buf[n + 7] ^= 1;
        assert_true(db_wire_open(&p.wire, heard.buf, heard.len, &plain, &out) < 0);
        assert_string_equal(plain.buf, "good"); // what came before it counts
        assert_int_equal(strncmp(db_wire_tls_error(&p.wire), "TLS: ", 5), 0);
        assert_true(out.len > 0); // the alert
        assert_true(db_wire_open(&p.wire, heard.buf, n, &plain, &out) < 0);
        str_add(&plain, "more");
        assert_true(db_wire_seal(&p.wire, &plain, &out) < 0);
        str_release(&heard);
        str_release(&plain);
        str_release(&out);
        pair_release(&p);
    }
}

static void a_farewell_is_no_failure(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++) {
        struct pair p;
        struct str heard = STR_INIT, plain = STR_INIT, out = STR_INIT;
        char buf[1000];
        take_over(&p, versions[v]);
        server_says(&p, "last words", 10, &heard);
        SSL_shutdown(p.server);
        int n = BIO_read(p.transport, buf, sizeof(buf));
        assert_true(n > 0);
        str_addn(&heard, buf, (size_t)n);
        assert_int_equal(db_wire_open(&p.wire, heard.buf, heard.len, &plain, &out), 0);
        assert_string_equal(plain.buf, "last words");
        str_release(&heard);
        str_release(&plain);
        str_release(&out);
        pair_release(&p);
    }
}

// The client library goes on where the wire has stopped: its own transport, the same keys.
static void the_session_goes_on_after_the_wire(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++) {
        struct pair p;
        struct str plain = STR_INIT, out = STR_INIT;
        char buf[100];
        take_over(&p, versions[v]);
        str_add(&plain, "by wire");
        assert_int_equal(db_wire_seal(&p.wire, &plain, &out), 0);
        assert_int_equal(BIO_write(p.transport, out.buf, (int)out.len), out.len);
        assert_int_equal(SSL_read(p.server, buf, sizeof(buf)), 7);
        db_wire_tls_end(p.wire.tls);
        p.wire.tls = NULL;
        assert_int_equal(SSL_write(p.client, "by hand", 7), 7);
        assert_int_equal(SSL_read(p.server, buf, sizeof(buf)), 7);
        assert_memory_equal(buf, "by hand", 7);
        assert_int_equal(SSL_write(p.server, "answer", 6), 6);
        assert_int_equal(SSL_read(p.client, buf, sizeof(buf)), 6);
        str_release(&plain);
        str_release(&out);
        pair_release(&p);
    }
}

static void a_session_before_its_handshake_is_not_taken(void **state)
{
    struct pair p;
    char why[200] = "";

    (void)state;
    pair_init(&p, TLS1_3_VERSION);
    assert_null(db_wire_tls_begin(p.client, why, sizeof(why)));
    assert_true(why[0]);
    pair_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sealed_reaches_the_server),
        cmocka_unit_test(what_the_server_says_is_opened_whole_and_torn),
        cmocka_unit_test(a_damaged_record_fails_with_its_reason),
        cmocka_unit_test(a_farewell_is_no_failure),
        cmocka_unit_test(the_session_goes_on_after_the_wire),
        cmocka_unit_test(a_session_before_its_handshake_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
