// TLS for a wire: the SSL object that the client library has negotiated is taken over, with memory
// in place of the socket (db_wire_seal and db_wire_open in db/wire.h). Needs OpenSSL, the library
// that the client library itself uses; built without it, sessions with TLS cannot be taken over.
#pragma once

#include <stddef.h>

struct db_wire_tls;

// ssl is the SSL object (OpenSSL) of an established session, which stays the client library's.
// NULL: not possible, and why says so.
struct db_wire_tls *db_wire_tls_begin(void *ssl, char *why, size_t size);

// Gives the SSL object its transport back, so that the client library can close it. NULL allowed.
void db_wire_tls_end(struct db_wire_tls *tls);
