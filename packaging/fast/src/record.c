/* Recording: stamps of messages, and digests of many messages at once. */

#include "kernel.h"

enum { COUNTER_SIZE = 6, WORD_SIZE = 4 };

static char *bytes_of(PyObject *payloads, Py_ssize_t index, Py_ssize_t *size) {
    PyObject *item = item_of(payloads, index);
    *size = PyBytes_Size(item);
    return PyBytes_AsString(item);
}

/* stamp(owner, first, payloads): each payload behind the owner and a counter, which go on from the first. */
PyObject *stamp(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (!has_arguments("stamp", count, 3))
        return NULL;
    char *owner;
    Py_ssize_t width, size;
    unsigned long long counter = PyLong_AsUnsignedLongLong(arguments[1]);
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(arguments[0], &owner, &width) < 0)
        return NULL;
    PyObject *payloads = all_bytes(arguments[2]);
    Py_ssize_t number = payloads ? PySequence_Size(payloads) : 0;
    if (number && counter > (1ULL << 8 * COUNTER_SIZE) - (unsigned long long)number) {
        PyErr_SetString(PyExc_OverflowError, "a counter is too large for a stamp");
        Py_DECREF(payloads);
        return NULL;
    }
    PyObject *stamped = payloads ? PyList_New(number) : NULL;
    for (Py_ssize_t index = 0; stamped && index < number; index++, counter++) {
        const char *payload = bytes_of(payloads, index, &size);
        PyObject *made = PyBytes_FromStringAndSize(NULL, width + COUNTER_SIZE + size);
        if (made == NULL) {
            Py_CLEAR(stamped);
            break;
        }
        char *at = PyBytes_AsString(made);
        memcpy(at, owner, (size_t)width);
        for (int place = 0; place < COUNTER_SIZE; place++)
            at[width + place] = (char)(counter >> 8 * (COUNTER_SIZE - 1 - place));
        memcpy(at + width + COUNTER_SIZE, payload, (size_t)size);
        PyList_SetItem(stamped, index, made);
    }
    Py_XDECREF(payloads);
    return stamped;
}

/* cut(payloads, begin): each payload without its first bytes. */
PyObject *cut(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (!has_arguments("cut", count, 2))
        return NULL;
    Py_ssize_t begin = PyLong_AsSsize_t(arguments[1]), size;
    if (PyErr_Occurred())
        return NULL;
    PyObject *payloads = all_bytes(arguments[0]);
    Py_ssize_t number = payloads ? PySequence_Size(payloads) : 0;
    PyObject *left = payloads ? PyList_New(number) : NULL;
    for (Py_ssize_t index = 0; left && index < number; index++) {
        const char *payload = bytes_of(payloads, index, &size);
        Py_ssize_t from = begin < size ? begin : size;
        PyObject *made = PyBytes_FromStringAndSize(payload + from, size - from);
        if (made == NULL)
            Py_CLEAR(left);
        else
            PyList_SetItem(left, index, made);
    }
    Py_XDECREF(payloads);
    return left;
}

static inline uint64_t word_at(const unsigned char *at) {
#if PY_LITTLE_ENDIAN
    uint32_t word;
    memcpy(&word, at, WORD_SIZE);
    return word;
#else
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
#endif
}

static inline uint64_t product(const unsigned char *data, const uint64_t *weights, Py_ssize_t index) {
    return word_at(data + WORD_SIZE * index) * weights[index];
}

/* The digest of ordercast/trace/digests.py; four sums, since a multiplication need not wait for the one before it. */
static uint32_t digest_of(const unsigned char *data, Py_ssize_t size, const uint64_t *weights) {
    uint64_t one = 0, two = 0, three = 0, four = 0;
    Py_ssize_t words = size / WORD_SIZE, rest = size % WORD_SIZE, index = 0;
    for (; index + 4 <= words; index += 4) {
        one += product(data, weights, index);
        two += product(data, weights, index + 1);
        three += product(data, weights, index + 2);
        four += product(data, weights, index + 3);
    }
    uint64_t sum = one + two + three + four;
    for (; index < words; index++)
        sum += product(data, weights, index);
    uint64_t last = 0;
    for (Py_ssize_t place = 0; place < rest; place++)
        last |= (uint64_t)data[WORD_SIZE * words + place] << 8 * place;
    if (rest)
        sum += last * weights[words];
    return (uint32_t)(sum >> 32);
}

/* look(payloads, head, weights): of all payloads the sizes and the digests, numbers of 64 bits as this processor has
   them, and the first `head` bytes, zeros where a payload is shorter. */
PyObject *look(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (!has_arguments("look", count, 3))
        return NULL;
    Py_ssize_t head = PyLong_AsSsize_t(arguments[1]), size, known;
    char *given;
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(arguments[2], &given, &known) < 0)
        return NULL;
    PyObject *payloads = all_bytes(arguments[0]);
    if (payloads == NULL)
        return NULL;
    Py_ssize_t number = PySequence_Size(payloads);
    PyObject *found[3] = {PyBytes_FromStringAndSize(NULL, 8 * number), PyBytes_FromStringAndSize(NULL, 8 * number),
                          head < 0 ? PyErr_Format(PyExc_ValueError, "a head has no bytes")
                                   : PyBytes_FromStringAndSize(NULL, head * number)};
    int failed = !found[0] || !found[1] || !found[2];
    for (Py_ssize_t index = 0; !failed && index < number; index++) {
        const unsigned char *data = (const unsigned char *)bytes_of(payloads, index, &size);
        if ((size + WORD_SIZE - 1) / WORD_SIZE > known / 8) {
            PyErr_SetString(PyExc_ValueError, "a message has more words than there are weights");
            failed = 1;
            break;
        }
        int64_t numbers[2] = {size, digest_of(data, size, (const uint64_t *)given)};
        for (int which = 0; which < 2; which++)
            memcpy(PyBytes_AsString(found[which]) + 8 * index, &numbers[which], 8);
        char *into = PyBytes_AsString(found[2]) + head * index;
        Py_ssize_t there = head < size ? head : size;
        memcpy(into, data, (size_t)there);
        memset(into + there, 0, (size_t)(head - there));
    }
    PyObject *all = failed ? NULL : PyTuple_Pack(3, found[0], found[1], found[2]);
    for (int which = 0; which < 3; which++)
        Py_XDECREF(found[which]);
    Py_DECREF(payloads);
    return all;
}
