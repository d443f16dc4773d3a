/* Sealing: AES-256-GCM of the system's OpenSSL, a run of packets by one call. Nothing of a cipher is written here: its
   functions are looked up when the module is loaded, and where they are not there is no `Gcm`. */

#include "kernel.h"

#if defined(__linux__)
#include <dlfcn.h>
#define LIBRARY "libcrypto.so.3"
#endif

/* The layout of sealed packets: ordercast/sealing/packet.py. */
enum {
    HEAD_SIZE = 22,
    NONCE_AT = 4,
    NONCE_SIZE = 12,
    NETWORKS_AT = 16,
    SEALED_AT = 17,
    TAG_SIZE = 16,
    GROWTH = SEALED_AT + TAG_SIZE - HEAD_SIZE,
    SECRET_SIZE = 32,
    PACKET_MAX = 0xffff
};

/* What is used of OpenSSL 3; the numbers are those of its <openssl/evp.h>. */
enum { GET_TAG = 0x10, SET_TAG = 0x11, SAME = -1 };

static struct {
    void *(*new_context)(void);
    void (*free_context)(void *);
    const void *(*aes_256_gcm)(void);
    int (*init)(void *, const void *, void *, const unsigned char *, const unsigned char *, int);
    int (*update)(void *, unsigned char *, int *, const unsigned char *, int);
    int (*final)(void *, unsigned char *, int *);
    int (*control)(void *, int, int, void *);
} crypto;

static PyObject *forged; /* the exception */

typedef struct {
    PyObject_HEAD
    void *sealing;
    void *opening;
} Gcm;

/* Who has the bytes, and how many there are; NULL and an error if these are no bytes, or not so many (-1: any). */
static unsigned char *bytes_from(PyObject *given, Py_ssize_t wanted, Py_ssize_t *size) {
    char *found;
    if (PyBytes_AsStringAndSize(given, &found, size) < 0)
        return NULL;
    if (wanted >= 0 && *size != wanted) {
        PyErr_Format(PyExc_ValueError, "%zd bytes are wanted, not %zd", wanted, *size);
        return NULL;
    }
    return (unsigned char *)found;
}

static PyObject *broken(void) {
    PyErr_SetString(PyExc_RuntimeError, "the cipher of OpenSSL failed");
    return NULL;
}

/* Begin a packet: its nonce, and what is authenticated beside it. */
static int begin(void *context, const unsigned char *nonce, const unsigned char *clear, Py_ssize_t clear_size) {
    int done;
    return crypto.init(context, NULL, NULL, NULL, nonce, SAME) == 1 &&
           (clear_size == 0 || crypto.update(context, NULL, &done, clear, (int)clear_size) == 1);
}

/* Seal so many bytes; the tag follows them. */
static int seal(Gcm *self, const unsigned char *nonce, const unsigned char *clear, Py_ssize_t clear_size,
                const unsigned char *from, Py_ssize_t size, unsigned char *to) {
    int done;
    return begin(self->sealing, nonce, clear, clear_size) &&
           crypto.update(self->sealing, to, &done, from, (int)size) == 1 &&
           crypto.final(self->sealing, to + size, &done) == 1 &&
           crypto.control(self->sealing, GET_TAG, TAG_SIZE, to + size) == 1;
}

/* Open so many bytes, behind which the tag stands; 0 when they were not sealed so. */
static int open_one(Gcm *self, const unsigned char *nonce, const unsigned char *clear, Py_ssize_t clear_size,
                    const unsigned char *from, Py_ssize_t size, unsigned char *to) {
    unsigned char tag[TAG_SIZE];
    int done;
    memcpy(tag, from + size, TAG_SIZE);
    return begin(self->opening, nonce, clear, clear_size) &&
           crypto.update(self->opening, to, &done, from, (int)size) == 1 &&
           crypto.control(self->opening, SET_TAG, TAG_SIZE, tag) == 1 &&
           crypto.final(self->opening, to + size, &done) == 1;
}

/* nonce, data, clear: the arguments of encrypt and decrypt; clear may be None. */
static int three(PyObject *arguments, unsigned char **nonce, unsigned char **data, Py_ssize_t *size,
                 unsigned char **clear, Py_ssize_t *clear_size) {
    PyObject *first, *second, *third;
    Py_ssize_t nonce_size;
    if (!PyArg_ParseTuple(arguments, "OOO", &first, &second, &third))
        return 0;
    *clear = NULL;
    *clear_size = 0;
    if ((*nonce = bytes_from(first, NONCE_SIZE, &nonce_size)) == NULL || (*data = bytes_from(second, -1, size)) == NULL)
        return 0;
    if (third != Py_None && (*clear = bytes_from(third, -1, clear_size)) == NULL)
        return 0;
    if (*size > PACKET_MAX || *clear_size > PACKET_MAX) {
        PyErr_SetString(PyExc_ValueError, "more bytes than a packet has");
        return 0;
    }
    return 1;
}

static PyObject *gcm_encrypt(PyObject *self, PyObject *arguments) {
    unsigned char *nonce, *data, *clear;
    Py_ssize_t size, clear_size;
    if (!three(arguments, &nonce, &data, &size, &clear, &clear_size))
        return NULL;
    PyObject *made = PyBytes_FromStringAndSize(NULL, size + TAG_SIZE);
    if (made && !seal((Gcm *)self, nonce, clear, clear_size, data, size, (unsigned char *)PyBytes_AsString(made))) {
        Py_DECREF(made);
        return broken();
    }
    return made;
}

static PyObject *gcm_decrypt(PyObject *self, PyObject *arguments) {
    unsigned char *nonce, *data, *clear;
    Py_ssize_t size, clear_size;
    if (!three(arguments, &nonce, &data, &size, &clear, &clear_size))
        return NULL;
    PyObject *made = size < TAG_SIZE ? NULL : PyBytes_FromStringAndSize(NULL, size - TAG_SIZE);
    if (made == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetNone(forged);
        return NULL;
    }
    if (!open_one((Gcm *)self, nonce, clear, clear_size, data, size - TAG_SIZE, (unsigned char *)PyBytes_AsString(made))) {
        Py_DECREF(made);
        PyErr_SetNone(forged);
        return NULL;
    }
    return made;
}

/* seal_run(data, at, end, size, opening, life, counter, networks, clear) */
static PyObject *gcm_seal_run(PyObject *self, PyObject *arguments) {
    PyObject *first, *fifth, *ninth;
    Py_ssize_t at, end, size, length, opening_size, clear_size;
    unsigned long long life, counter;
    unsigned char networks, *data, *opening, *clear;
    if (!PyArg_ParseTuple(arguments, "OnnnOKKbO", &first, &at, &end, &size, &fifth, &life, &counter, &networks, &ninth))
        return NULL;
    if ((data = bytes_from(first, -1, &length)) == NULL || (opening = bytes_from(fifth, NONCE_AT, &opening_size)) == NULL ||
        (clear = bytes_from(ninth, -1, &clear_size)) == NULL)
        return NULL;
    int is_sound = at >= 0 && at < end && end <= length && size > HEAD_SIZE && size <= PACKET_MAX - GROWTH &&
                   clear_size <= PACKET_MAX && life <= 0xffffffff && !(counter >> 48);
    Py_ssize_t rest = is_sound ? (end - at) % size : 0;
    if (!is_sound || (rest && rest <= HEAD_SIZE)) {
        PyErr_SetString(PyExc_ValueError, "these are no packets");
        return NULL;
    }
    Py_ssize_t count = (end - at) / size + (rest > 0);
    PyObject *made = PyBytes_FromStringAndSize(NULL, end - at + count * GROWTH);
    if (made == NULL)
        return NULL;
    unsigned char *to = (unsigned char *)PyBytes_AsString(made);
    for (; at < end; at += size, counter++) {
        Py_ssize_t whole = end - at < size ? end - at : size, body = whole - HEAD_SIZE;
        memcpy(to, opening, NONCE_AT);
        to[4] = (unsigned char)((whole + GROWTH) >> 8);
        to[5] = (unsigned char)(whole + GROWTH);
        for (int place = 0; place < 4; place++)
            to[6 + place] = (unsigned char)(life >> 8 * (3 - place));
        for (int place = 0; place < 6; place++)
            to[10 + place] = (unsigned char)(counter >> 8 * (5 - place));
        to[NETWORKS_AT] = networks;
        if (!seal((Gcm *)self, to + NONCE_AT, clear, clear_size, data + at + HEAD_SIZE, body, to + SEALED_AT)) {
            Py_DECREF(made);
            return broken();
        }
        to += whole + GROWTH;
    }
    return made;
}

/* open_run(data, size, head, clear) */
static PyObject *gcm_open_run(PyObject *self, PyObject *arguments) {
    PyObject *first, *third, *fourth;
    Py_ssize_t size, length, head_size, clear_size;
    unsigned char *data, *head, *clear;
    if (!PyArg_ParseTuple(arguments, "OnOO", &first, &size, &third, &fourth))
        return NULL;
    if ((data = bytes_from(first, -1, &length)) == NULL || (head = bytes_from(third, HEAD_SIZE, &head_size)) == NULL ||
        (clear = bytes_from(fourth, -1, &clear_size)) == NULL)
        return NULL;
    Py_ssize_t least = SEALED_AT + TAG_SIZE, rest = size > 0 ? length % size : 0;
    if (size < least || size > PACKET_MAX || length < size || (rest && rest < least) || clear_size > PACKET_MAX) {
        PyErr_SetString(PyExc_ValueError, "these are no packets");
        return NULL;
    }
    Py_ssize_t count = length / size + (rest > 0);
    PyObject *made = PyBytes_FromStringAndSize(NULL, length - count * GROWTH);
    if (made == NULL)
        return NULL;
    unsigned char *to = (unsigned char *)PyBytes_AsString(made);
    for (Py_ssize_t at = 0; at < length; at += size) {
        Py_ssize_t whole = length - at < size ? length - at : size;
        memcpy(to, head, HEAD_SIZE);
        if (whole < size) {
            to[LENGTH_AT] = (unsigned char)((whole - GROWTH) >> 8);
            to[LENGTH_AT + 1] = (unsigned char)(whole - GROWTH);
        }
        if (!open_one((Gcm *)self, data + at + NONCE_AT, clear, clear_size, data + at + SEALED_AT, whole - least,
                      to + HEAD_SIZE)) {
            Py_DECREF(made);
            PyErr_SetNone(forged);
            return NULL;
        }
        to += whole - GROWTH;
    }
    return made;
}

/* in_a_row(data, size): whether packets are alike, and their counters in a row. */
PyObject *in_a_row(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (!has_arguments("in_a_row", count, 2))
        return NULL;
    Py_ssize_t length, size = PyLong_AsSsize_t(arguments[1]);
    if (PyErr_Occurred())
        return NULL;
    const unsigned char *data = bytes_from(arguments[0], -1, &length);
    if (data == NULL)
        return NULL;
    Py_ssize_t rest = size > 0 ? length % size : 0;
    if (size < SEALED_AT || length < size || (rest && rest < SEALED_AT)) {
        PyErr_SetString(PyExc_ValueError, "these are no packets");
        return NULL;
    }
    uint32_t counter = number32(data + 12);
    for (Py_ssize_t at = size; at < length; at += size) {
        const unsigned char *packet = data + at;
        int is_last = length - at < size;
        unsigned wanted = is_last ? (unsigned)(rest & 0xffff) : number16(data + LENGTH_AT);
        if (memcmp(packet, data, NONCE_AT) || number16(packet + LENGTH_AT) != wanted ||
            memcmp(packet + 6, data + 6, 6) || number32(packet + 12) != ++counter ||
            packet[NETWORKS_AT] != data[NETWORKS_AT])
            Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

static PyObject *gcm_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    PyObject *given;
    Py_ssize_t size;
    unsigned char *secret;
    if (named && PyDict_Size(named)) {
        PyErr_SetString(PyExc_TypeError, "Gcm takes a secret alone");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O", &given) || (secret = bytes_from(given, SECRET_SIZE, &size)) == NULL)
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Gcm *self = (Gcm *)allocate(type, 0);
    if (self == NULL)
        return NULL;
    self->sealing = crypto.new_context();
    self->opening = crypto.new_context();
    const void *cipher = crypto.aes_256_gcm();
    if (self->sealing == NULL || self->opening == NULL || cipher == NULL ||
        crypto.init(self->sealing, cipher, NULL, secret, NULL, 1) != 1 ||
        crypto.init(self->opening, cipher, NULL, secret, NULL, 0) != 1) {
        Py_DECREF(self);
        return broken();
    }
    return (PyObject *)self;
}

static void gcm_free(PyObject *object) {
    Gcm *self = (Gcm *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->sealing)
        crypto.free_context(self->sealing);
    if (self->opening)
        crypto.free_context(self->opening);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyMethodDef METHODS[] = {
    {"encrypt", gcm_encrypt, METH_VARARGS, "Return data sealed, with a tag behind."},
    {"decrypt", gcm_decrypt, METH_VARARGS, "Return what was sealed."},
    {"seal_run", gcm_seal_run, METH_VARARGS, "Return packets sealed."},
    {"open_run", gcm_open_run, METH_VARARGS, "Return packets opened."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot SLOTS[] = {
    {Py_tp_new, (void *)gcm_new},
    {Py_tp_dealloc, (void *)gcm_free},
    {Py_tp_methods, METHODS},
    {Py_tp_doc, (void *)"One key of AES-256-GCM of the system's OpenSSL."},
    {0, NULL},
};

static PyType_Spec SPEC = {
    .name = "ordercast_fast.Gcm",
    .basicsize = sizeof(Gcm),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = SLOTS,
};

#if defined(__linux__)
static int look_up(void) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const char *names[] = {"EVP_CIPHER_CTX_new", "EVP_CIPHER_CTX_free", "EVP_aes_256_gcm",    "EVP_CipherInit_ex",
                           "EVP_CipherUpdate",   "EVP_CipherFinal_ex",  "EVP_CIPHER_CTX_ctrl"};
    void *found[sizeof names / sizeof *names];
    if (library == NULL)
        return 0;
    for (size_t index = 0; index < sizeof names / sizeof *names; index++)
        if ((found[index] = dlsym(library, names[index])) == NULL)
            return 0;
    memcpy(&crypto, found, sizeof crypto);
    return 1;
}
#else
static int look_up(void) { return 0; }
#endif

/* Add `Gcm` and `Forged` to the module, if the system has the cipher. */
int add_seal(PyObject *module) {
    if (!look_up())
        return 0;
    if (forged == NULL)
        forged = PyErr_NewException("ordercast_fast.Forged", NULL, NULL);
    PyObject *type = PyType_FromSpec(&SPEC);
    int failed = forged == NULL || type == NULL || PyModule_AddObjectRef(module, "Forged", forged) < 0 ||
                 PyModule_AddObjectRef(module, "Gcm", type) < 0;
    Py_XDECREF(type);
    return failed ? -1 : 0;
}
