#include "db/wire_tls.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "db/wire.h"

#ifdef HAVE_OPENSSL

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

struct db_wire_tls {
    SSL *ssl;
    BIO *in, *out; // memory; the SSL object's as long as they are set
    BIO *before;   // the library's transport: a reference of ours
    char error[128];
};

struct db_wire_tls *db_wire_tls_begin(void *ssl, char *why, size_t size)
{
    struct db_wire_tls *tls = mem_calloc(1, sizeof(*tls));

    tls->ssl = ssl;
    tls->before = SSL_get_rbio(tls->ssl);
    // One object for both ways is what can be put back by one call.
    if (!tls->before || SSL_get_wbio(tls->ssl) != tls->before || !SSL_is_init_finished(tls->ssl)) {
        snprintf(why, size, "the connection's TLS is not in a state to be taken over");
        free(tls);
        return NULL;
    }
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (!tls->in || !tls->out) {
        snprintf(why, size, "OpenSSL is out of memory");
        BIO_free(tls->in);
        BIO_free(tls->out);
        free(tls);
        return NULL;
    }
    BIO_up_ref(tls->before);
    SSL_set0_rbio(tls->ssl, tls->in);
    SSL_set0_wbio(tls->ssl, tls->out);
    return tls;
}

void db_wire_tls_end(struct db_wire_tls *tls)
{
    if (!tls)
        return;
    SSL_set_bio(tls->ssl, tls->before, tls->before); // frees in and out, takes our reference
    free(tls);
}

static int fail(struct db_wire_tls *tls)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());

    snprintf(tls->error, sizeof(tls->error), "TLS: %s", reason ? reason : "protocol error");
    ERR_clear_error();
    return -1;
}

// Moves what TLS wants to send.
static void take_out(struct db_wire_tls *tls, struct str *out)
{
    char *bytes;
    long n = BIO_get_mem_data(tls->out, &bytes);

    if (n <= 0)
        return;
    str_addn(out, bytes, (size_t)n);
    (void)BIO_reset(tls->out);
}

int db_wire_seal(struct db_wire *wire, struct str *plain, struct str *out)
{
    struct db_wire_tls *tls = wire->tls;

    assert(tls);
    ERR_clear_error();
    for (size_t at = 0; at < plain->len;) {
        size_t n;
        // Memory takes everything. To wait for the peer would be a renegotiation, which PostgreSQL
        // has not done since 9.5 and TLS 1.3 has not at all.
        if (SSL_write_ex(tls->ssl, plain->buf + at, plain->len - at, &n) != 1)
            return fail(tls);
        at += n;
    }
    str_clear(plain);
    take_out(tls, out);
    return 0;
}

int db_wire_open(struct db_wire *wire, const char *bytes, size_t n, struct str *plain,
                 struct str *out)
{
    struct db_wire_tls *tls = wire->tls;
    int error = SSL_ERROR_NONE;

    assert(tls && n <= INT_MAX);
    ERR_clear_error();
    if (n > 0 && BIO_write(tls->in, bytes, (int)n) != (int)n)
        return fail(tls);
    while (BIO_ctrl_pending(tls->in) > 0 || SSL_has_pending(tls->ssl)) {
        size_t got;
        // What is given decrypts to less; the rest of an earlier record may come with it.
        str_reserve(plain, n + 512);
        if (SSL_read_ex(tls->ssl, plain->buf + plain->len, plain->cap - plain->len - 1, &got) ==
            1) {
            plain->len += got;
            plain->buf[plain->len] = '\0';
            continue;
        }
        error = SSL_get_error(tls->ssl, 0);
        break;
    }
    take_out(tls, out);
    // A farewell of TLS's is followed by the end of the stream, which the caller sees by itself.
    if (error == SSL_ERROR_NONE || error == SSL_ERROR_WANT_READ || error == SSL_ERROR_ZERO_RETURN)
        return 0;
    return fail(tls);
}

const char *db_wire_tls_error(const struct db_wire *wire)
{
    return wire->tls && wire->tls->error[0] ? wire->tls->error : NULL;
}

#else

struct db_wire_tls *db_wire_tls_begin(void *ssl, char *why, size_t size)
{
    (void)ssl;
    snprintf(why, size, "the connection uses TLS, and this prony was built without OpenSSL");
    return NULL;
}

void db_wire_tls_end(struct db_wire_tls *tls)
{
    (void)tls;
}

int db_wire_seal(struct db_wire *wire, struct str *plain, struct str *out)
{
    (void)plain, (void)out;
    assert(!wire->tls);
    return -1;
}

int db_wire_open(struct db_wire *wire, const char *bytes, size_t n, struct str *plain,
                 struct str *out)
{
    (void)bytes, (void)n, (void)plain, (void)out;
    assert(!wire->tls);
    return -1;
}

const char *db_wire_tls_error(const struct db_wire *wire)
{
    (void)wire;
    return NULL;
}

#endif
